"""`rebalance-lab broker`: one broker with the coordinator, in the foreground or in the background."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.by_hand import report_silence, started_zookeeper, state_option, zookeeper_at
from comparison.cli.coordinating import coordinator
from comparison.cli.detaching import detach
from comparison.cli.documents import print_found
from comparison.cli.hand_run import trace_in
from comparison.cli.options import form_option, port_option, refuse_beside, settings_option, zookeeper_option
from comparison.cli.state import forget, state_dir, states, stop_server, this_process, write_state
from comparison.exits import Exit
from comparison.interruptible import run, stopped_by_signals
from comparison.scenarios.plan.configuration import for_part
from comparison.scenarios.processes.broker_composition import broker_of
from kernel.broker.loop.measured_loop import MeasuredLoop
from kernel.broker.settings.configuration import BrokerConfig
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.errors import EnvironmentFault
from kernel.platform.descriptors import require_descriptors
from kernel.platform.whole_file import require_text
from kernel.runtime import REAL
from kernel.settings import split_pairs
from kernel.trace.events import Role
from kernel.trace.writer import SilentTracer, TraceIdentity, TraceWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.broker.broker import Broker
    from kernel.trace.writer import Tracer

#: Instead of Kafka's defaults: with a replication factor of 3 a single broker could not coordinate any group, and of a
#: topic's single partition only one member could own anything.
LAB_DEFAULTS = {"offsets.topic.replication.factor": "1", "num.partitions": "6"}


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  rebalance-lab broker --zookeeper 127.0.0.1:2181 --port 9092
  rebalance-lab broker --port 9093 --set broker.id=2 \\
      --set group.initial.rebalance.delay.ms=0 --detach
  rebalance-lab broker status
  rebalance-lab broker coordinator g  which broker coordinates a group
  rebalance-lab broker stop --port 9093

\b
A broker restarted with the same data folder keeps its id, topics and offsets,
after Ctrl-C and after kill -9. Without broker.id it takes the id that last
used its port, or else an id of the folder that is not running. Set broker.id
only to choose between several.
All brokers of a cluster need one data folder: they take over each other's
partitions by reading each other's files. A broker with another folder, or
with a copy that may lack records, does not start, and its error names the
right one.
--set takes Kafka's setting names. A Kafka setting that is not implemented
causes a warning, one of consumers or an unknown name an error.
offsets.topic.replication.factor defaults to 1, so that one broker can
coordinate groups; no other broker takes over.
num.partitions defaults to 6, so that several members can share a topic.
To see a takeover, start three brokers with offsets.topic.replication.factor=3
and default.replication.factor=3.""",
)
@zookeeper_option
@port_option(9092)
@settings_option("Kafka broker")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Data folder, the same for all brokers of the cluster.  [default: in the state folder]",
)
@click.option(
    "--adopt-folder",
    is_flag=True,
    help="Start even if the cluster's brokers have used another data folder, or this one since it was copied."
    " Records that only the other one has are lost.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FOLDER|FILE.jsonl",
    help="Trace into this run folder, as `consume --trace` does, or to a file of its own.",
)
@click.option("--detach", "in_background", is_flag=True, help="Run in the background; stop it with `broker stop`.")
@state_option
@click.pass_context
def broker(  # noqa: PLR0913  # click hands each option over by its name
    context: click.Context,
    connect: str | None,
    port: int,
    pairs: tuple[str, ...],
    folder: Path | None,
    adopt_folder: bool,
    trace: Path | None,
    in_background: bool,
) -> None:
    """Run one broker and print its address. All brokers of a cluster share one data folder."""
    if context.invoked_subcommand is not None:
        starting = (each.name for each in context.command.params if each.expose_value)
        refuse_beside(f"`{context.invoked_subcommand}`, which starts no broker", *filter(None, starting))
        return
    given, warnings = for_part(BROKER_SETTINGS, split_pairs(pairs))
    settings = {"port": str(port), **LAB_DEFAULTS, **given}
    _print_warnings(warnings)
    connect = zookeeper_at(connect) if connect else started_zookeeper()
    if in_background:
        arguments = ["broker", "--port", str(port)]
        arguments += [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
        arguments += ["--zookeeper", connect]
        arguments += ["--folder", str(folder.absolute())] if folder else []
        arguments += ["--adopt-folder"] if adopt_folder else []
        arguments += ["--trace", str(trace.absolute())] if trace else []
        config, _ = BrokerConfig.from_settings(settings)
        report_silence(connect, config.number("zookeeper.connection.timeout.ms"))
        click.echo(detach(arguments, "broker-").address)
        return
    serving = _serve(connect, settings, folder or state_dir() / "data", trace, adopt_folder=adopt_folder)
    run(serving, loop=MeasuredLoop)


async def _serve(
    connect: str, settings: dict[str, str], folder: Path, trace: Path | None, *, adopt_folder: bool
) -> None:
    require_descriptors()
    with contextlib.ExitStack() as stack:
        tracer: Tracer = SilentTracer()
        if trace is not None:
            tracer = stack.enter_context(contextlib.closing(_trace_writer(trace)))
        _writable(folder)
        server, _ = broker_of(settings, connect, folder, tracer, adopt_folder=adopt_folder)
        waits_ms = server.config.number("zookeeper.connection.timeout.ms")
        await REAL.threads.compute(lambda: report_silence(connect, waits_ms), "silence")
        try:
            await server.start()
            state = this_process(
                f"broker-{server.address.port}", f"127.0.0.1:{server.address.port}", folder, zookeeper=connect
            )
            write_state(state)
            stack.callback(forget, state)
            click.echo(state.address)
            click.echo(f"broker {server.address.node_id}, data in {folder}; stop with Ctrl-C", err=True)
            with stopped_by_signals() as stopping:
                await _stopped_or_failed(stopping, server)
        finally:
            await server.stop()


def _trace_writer(path: Path) -> TraceWriter:
    if path.suffix != ".jsonl":
        return trace_in(path, Role.BROKER)
    return TraceWriter(path, TraceIdentity(run="", scenario="", design="", role=Role.BROKER, process="broker"))


async def _stopped_or_failed(stopping: asyncio.Event, server: Broker) -> None:
    """Wait for a signal. Raises the error that made the broker unusable, if a bug of ours did."""
    waiting = [asyncio.create_task(stopping.wait()), asyncio.create_task(server.failed())]
    _, failed = waiting
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    if failed.done():
        raise await server.failed()


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _writable(folder: Path) -> None:
    require_text(folder, "choose one with --folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write the data folder {folder}: {error.strerror}. Choose one with --folder"
        ) from error


@broker.command(
    epilog="""\b
Example:
  rebalance-lab broker status"""
)
@form_option
@state_option
def status(form: str) -> int:
    """List the running brokers started by `rebalance-lab broker`; exit code 1 if there are none."""
    running = [state for state in states("broker-") if state.running]
    found = [
        {"address": state.address, "pid": state.pid, "zookeeper": state.details.get("zookeeper", "")}
        for state in running
    ]
    print_found(form, found, map("{address} pid={pid} zookeeper={zookeeper}".format_map, found))
    if not running:
        click.echo("no broker started by `rebalance-lab broker` is running", err=True)
    return Exit.AS_EXPECTED if running else Exit.NOT_AS_EXPECTED


@broker.command(
    epilog="""\b
Examples:
  rebalance-lab broker stop
  rebalance-lab broker stop --port 9093"""
)
@click.option("--port", type=click.IntRange(1, 65535), help="Stop only the broker on this port.  [default: all]")
@state_option
def stop(port: int | None) -> int:
    """Stop brokers started by `rebalance-lab broker`, identified by pid and start time."""
    found = [state for state in states("broker-") if port is None or state.name == f"broker-{port}"]
    stopped = [state for state in found if stop_server(state)]
    for state in stopped:
        click.echo(f"stopped {state.address}", err=True)
    if not stopped:
        click.echo("no such broker is running; nothing was stopped", err=True)
    return Exit.AS_EXPECTED if stopped else Exit.NOT_AS_EXPECTED


broker.add_command(coordinator)
