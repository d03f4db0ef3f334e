"""`rebalance-lab zookeeper`: a real ZooKeeper of one's own, in the foreground or detached."""

from __future__ import annotations

import os
from pathlib import Path

import click

from comparison.cli.by_hand import state_option
from comparison.cli.detaching import StopSignal, detach
from comparison.cli.state import forget, read_state, state_dir, stop_server, this_process, write_state
from comparison.exits import Exit
from kernel.errors import EnvironmentFault
from kernel.zookeeper.counters import four_letter, read_counters
from kernel.zookeeper.embedded import EmbeddedZooKeeper

NAME = "zookeeper"
DEFAULT_PORT = 2181


@click.group(
    epilog="""\b
Examples:
  rebalance-lab zookeeper start                 until Ctrl-C
  rebalance-lab zookeeper start --detach --port 2182
  rebalance-lab zookeeper status
  rebalance-lab zookeeper stop"""
)
def zookeeper() -> None:
    """Start, look at and stop a ZooKeeper server (the one in the PySpark wheel; no Java needed)."""


@zookeeper.command(
    epilog="""\b
Examples:
  rebalance-lab zookeeper start
  rebalance-lab zookeeper start --port 0 --detach     on a free port, in the background

\b
To have two at once, give each a folder of its own, and the same to the commands that are to use it:
  rebalance-lab zookeeper start --state ./second --port 0 --detach
  rebalance-lab broker --state ./second --port 0 --detach
  rebalance-lab consume --state ./second --design eager --group g --topic orders"""
)
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option("--folder", type=click.Path(path_type=Path), help="Data and log; by default beside the state file.")
@click.option("--detach", "in_background", is_flag=True, help="Return once it serves; end it with `zookeeper stop`.")
@state_option
def start(port: int, folder: Path | None, in_background: bool) -> None:
    """Start a server; prints what clients connect to."""
    running = read_state(NAME)
    if running is not None and running.running:
        raise EnvironmentFault(
            f"a ZooKeeper runs already at {running.address} (pid {running.pid}): stop it first, or give this one a"
            " folder of its own with --state"
        )
    if in_background:
        arguments = ["zookeeper", "start", "--port", str(port)]
        arguments += ["--folder", str(folder.absolute())] if folder else []
        click.echo(detach(arguments, NAME, state_dir() / f"zookeeper-starting-{os.getpid()}.log").address)
        return
    stopping = StopSignal()
    with EmbeddedZooKeeper(folder or state_dir() / NAME, port=port or None) as server:
        state = this_process(NAME, server.connect_string, server.servers[0].data_dir)
        write_state(state)
        try:
            click.echo(server.connect_string)
            click.echo(f"log: {server.servers[0].log_path}; stop with Ctrl-C", err=True)
            while not stopping.wait(0.5):
                if not server.servers[0].running:
                    raise EnvironmentFault(f"the ZooKeeper server has ended; see {server.servers[0].log_path}")
        finally:
            forget(state)


@zookeeper.command(
    epilog="""\b
Example:
  rebalance-lab zookeeper status || rebalance-lab zookeeper start --detach"""
)
@state_option
def status() -> int:
    """Whether the started server serves; exit code 1 when it does not."""
    state = read_state(NAME)
    if state is None or not state.running:
        click.echo("no ZooKeeper started from here is running", err=True)
        return Exit.NOT_AS_EXPECTED
    host, _, port = state.address.partition(":")
    answer = four_letter(host, int(port), "ruok")
    counters = read_counters(host, int(port))
    click.echo(f"{state.address} {counters.mode} pid={state.pid} watches={counters.watch_count} folder={state.folder}")
    return Exit.AS_EXPECTED if answer.strip() == "imok" else Exit.NOT_AS_EXPECTED


@zookeeper.command(
    epilog="""\b
Example:
  rebalance-lab zookeeper stop"""
)
@state_option
def stop() -> int:
    """Stop the server that `zookeeper start` started: pid and start time must both be its own."""
    state = read_state(NAME)
    if state is None:
        click.echo("no ZooKeeper was started from here", err=True)
        return Exit.NOT_AS_EXPECTED
    if not stop_server(state):
        click.echo(f"the ZooKeeper started as pid {state.pid} is gone already; nothing was stopped", err=True)
        return Exit.NOT_AS_EXPECTED
    click.echo(f"stopped {state.address}", err=True)
    return Exit.AS_EXPECTED
