"""`rebalance-lab broker`: one broker with the coordinator, in the foreground or detached."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.detaching import detach
from comparison.exits import Exit
from comparison.scenarios.broker_composition import broker_of
from comparison.scenarios.configuration import for_part
from comparison.state import forget, read_state, state_dir, states, stop_server, this_process, write_state
from kernel.broker import measured_loop
from kernel.broker.configuration import BROKER_SETTINGS, BrokerConfig
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.settings import split_pairs
from kernel.trace.events import Role
from kernel.trace.writer import SilentTracer, TraceIdentity, TraceWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.broker.broker import Broker
    from kernel.trace.writer import Tracer

#: Kafka's default of 3 would keep a single broker from ever coordinating a group.
ONE_BROKER = {"offsets.topic.replication.factor": "1"}
DEFAULT_PORT = 9092


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  rebalance-lab broker --zookeeper 127.0.0.1:2181 --port 9092
  rebalance-lab broker --port 9093 --set broker.id=2 --set group.initial.rebalance.delay.ms=0 --detach
  rebalance-lab broker status
  rebalance-lab broker stop --port 9093

\b
A broker that is started again with the same data folder is the same broker, with its topics and offsets, after Ctrl-C
and after kill -9. Without broker.id it becomes the one of that folder that last had its port, or else one that does
not run; broker.id is only needed to choose between several.
--set takes Kafka's own names. A Kafka setting that is not implemented warns; any other name is an error.
offsets.topic.replication.factor is 1 unless set, so that one broker is enough for groups; nobody takes over from it.
To see a takeover start three, each with offsets.topic.replication.factor=3 and default.replication.factor=3.""",
)
@click.option("--zookeeper", "connect", help="HOST:PORT[,HOST:PORT...][/chroot]; default: the one started from here.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option(
    "--set", "-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting by its name; repeatable."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Data; by default beside the state file.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write the broker's events to this file.")
@click.option("--detach", "in_background", is_flag=True, help="Return once it serves; end it with `broker stop`.")
@click.pass_context
def broker(
    context: click.Context,
    connect: str | None,
    port: int,
    pairs: tuple[str, ...],
    folder: Path | None,
    trace: Path | None,
    in_background: bool,
) -> None:
    """Run one broker; prints its address. Brokers of one machine share the data folder."""
    if context.invoked_subcommand is not None:
        return
    given, warnings = for_part(BROKER_SETTINGS, split_pairs(pairs))
    settings = {"port": str(port), **ONE_BROKER, **given}
    _tell(warnings)
    if in_background:
        _, listened = BrokerConfig.from_settings(settings)[0].listener
        if listened == 0:
            raise ConfigurationError("--detach needs a port of your choice: `broker stop --port` names it by that")
        arguments = ["broker", "--port", str(port)]
        arguments += [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
        arguments += ["--zookeeper", connect] if connect else []
        arguments += ["--folder", str(folder.absolute())] if folder else []
        arguments += ["--trace", str(trace.absolute())] if trace else []
        name = f"broker-{listened}"
        click.echo(detach(arguments, name, state_dir() / f"{name}.log").address)
        return
    measured_loop.run(_serve(connect or started_zookeeper(), settings, folder or state_dir() / "data", trace))


def started_zookeeper() -> str:
    """The address of the ZooKeeper started from here; raises `EnvironmentFault` when there is none."""
    state = read_state("zookeeper")
    if state is None or not state.running:
        raise EnvironmentFault(
            "no ZooKeeper: start one with `rebalance-lab zookeeper start`, or name one with --zookeeper HOST:PORT"
        )
    return state.address


async def _serve(connect: str, settings: dict[str, str], folder: Path, trace: Path | None) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    with contextlib.ExitStack() as stack:
        tracer: Tracer = SilentTracer()
        if trace is not None:
            writer = TraceWriter(
                trace, TraceIdentity(run="", scenario="", design="", role=Role.BROKER, process="broker")
            )
            tracer = stack.enter_context(contextlib.closing(writer))
        _writable(folder)
        server, _ = broker_of(settings, connect, folder, tracer)
        try:
            await server.start()
            state = this_process(
                f"broker-{server.address.port}", f"127.0.0.1:{server.address.port}", folder, zookeeper=connect
            )
            write_state(state)
            stack.callback(forget, state)
            click.echo(state.address)
            click.echo(f"broker {server.address.node_id}, data in {folder}; stop with Ctrl-C", err=True)
            await _told_or_failed(told, server)
        finally:
            await server.stop()


async def _told_or_failed(told: asyncio.Event, server: Broker) -> None:
    """Until it is told to stop. Raises what made it useless, if a mistake of ours did."""
    waiting = [asyncio.create_task(told.wait()), asyncio.create_task(server.failed())]
    _, failed = waiting
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    if failed.done():
        raise await server.failed()


def _tell(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write the data folder {folder}: {error.strerror}; choose one with --folder"
        ) from error


@broker.command(
    epilog="""\b
Example:
  rebalance-lab broker status"""
)
def status() -> int:
    """The brokers started from here; exit code 1 when none runs."""
    running = [state for state in states("broker-") if state.running]
    for state in running:
        click.echo(f"{state.address} pid={state.pid} zookeeper={state.details.get('zookeeper', '')}")
    if not running:
        click.echo("no broker started from here is running", err=True)
    return Exit.AS_EXPECTED if running else Exit.NOT_AS_EXPECTED


@broker.command(
    epilog="""\b
Examples:
  rebalance-lab broker stop
  rebalance-lab broker stop --port 9093"""
)
@click.option("--port", type=click.IntRange(1, 65535), help="Only the broker on this port; default: all of them.")
def stop(port: int | None) -> int:
    """Stop brokers started from here: pid and start time must both be theirs."""
    found = [state for state in states("broker-") if port is None or state.name == f"broker-{port}"]
    stopped = [state for state in found if stop_server(state)]
    for state in stopped:
        click.echo(f"stopped {state.address}", err=True)
    if not stopped:
        click.echo("no such broker is running; nothing was stopped", err=True)
    return Exit.AS_EXPECTED if stopped else Exit.NOT_AS_EXPECTED
