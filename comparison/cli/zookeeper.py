"""`rebalance-lab zookeeper`: a real ZooKeeper server, in the foreground or in the background."""

from __future__ import annotations

import contextlib
import queue
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.by_hand import started_zookeeper, state_option, zookeeper_at
from comparison.cli.detaching import detach
from comparison.cli.documents import print_document, print_found
from comparison.cli.options import form_option, port_option, zookeeper_option
from comparison.cli.state import forget, read_state, state_dir, stop_server, this_process, write_state
from comparison.exits import Exit
from comparison.interruptible import run
from comparison.interrupts import reacting
from comparison.playground.play.znodes import TreeReader
from comparison.screen.printable import printable
from kernel.decimals import decimal
from kernel.errors import EnvironmentFault, UserError
from kernel.platform.whole_file import require_text
from kernel.zookeeper.counters import four_letter, read_counters
from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.playground.live.tree import Seen
    from kernel.zookeeper.server import ServerProcess

NAME = "zookeeper"


@click.group(
    epilog="""\b
Examples:
  rebalance-lab zookeeper start                       until Ctrl-C
  rebalance-lab zookeeper start --detach --port 2182
  rebalance-lab zookeeper status
  rebalance-lab zookeeper znodes /consumers/g         a group's znodes
  rebalance-lab zookeeper stop"""
)
def zookeeper() -> None:
    """Start, check and stop a ZooKeeper server, and look into it.

    It is the one in the PySpark wheel, and runs on a bundled Java.
    """


@zookeeper.command(
    epilog="""\b
Examples:
  rebalance-lab zookeeper start
  rebalance-lab zookeeper start --port 0 --detach
      on a free port, in the background

\b
To run two at once, give each its own --state folder, and give that folder to
the commands that use it:
  rebalance-lab zookeeper start --state ./second --port 0 --detach
  rebalance-lab broker --state ./second --port 0 --detach
  rebalance-lab consume --state ./second --design eager --group g \\
      --topic orders"""
)
@port_option(2181)
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Folder for data and log.  [default: in the state folder]"
)
@click.option("--detach", "in_background", is_flag=True, help="Run in the background; stop it with `zookeeper stop`.")
@state_option
def start(port: int, folder: Path | None, in_background: bool) -> None:
    """Start a server and print its address."""
    running = read_state(NAME)
    if running is not None and running.running:
        raise EnvironmentFault(
            f"a ZooKeeper runs already at {running.address} (pid {running.pid}). Stop it first, or choose another "
            "folder with --state"
        )
    if in_background:
        arguments = ["zookeeper", "start", "--port", str(port)]
        arguments += ["--folder", str(folder.absolute())] if folder else []
        click.echo(detach(arguments, NAME).address)
        return
    # Not an Event: a handler that interrupts its `wait` may need the lock that `wait` holds.
    stopping: queue.SimpleQueue[None] = queue.SimpleQueue()
    data = require_text(folder or state_dir() / NAME, "choose one with --folder")
    with EmbeddedZooKeeper(data, port=port or None) as server:
        state = this_process(NAME, server.connect_string, server.servers[0].data_dir)
        write_state(state)
        try:
            with reacting(lambda: stopping.put(None)):
                click.echo(server.connect_string)
                click.echo(f"log: {server.servers[0].log_path}; stop with Ctrl-C", err=True)
                _until_stopped(stopping, server.servers[0])
        finally:
            forget(state)


def _until_stopped(stopping: queue.SimpleQueue[None], server: ServerProcess) -> None:
    """Raises `EnvironmentFault` if the server ends by itself."""
    while server.running:
        with contextlib.suppress(queue.Empty):
            return stopping.get(timeout=0.5)
    raise EnvironmentFault(f"the ZooKeeper server has ended. See {server.log_path}")


@zookeeper.command(
    epilog="""\b
Example:
  rebalance-lab zookeeper status || rebalance-lab zookeeper start --detach"""
)
@form_option
@state_option
def status(form: str) -> int:
    """Show whether the server started by `zookeeper start` is serving; exit code 1 if it is not."""
    state = read_state(NAME)
    if state is None or not state.running:
        if form == "json":
            print_document(None)
        click.echo("no ZooKeeper started by `zookeeper start` is running", err=True)
        return Exit.NOT_AS_EXPECTED
    host, _, port = state.address.partition(":")
    answer = four_letter(host, int(port), "ruok")
    counters = read_counters(host, int(port))
    found = {"mode": counters.mode, "pid": state.pid, "watches": counters.watch_count, "folder": state.folder}
    text = " ".join(f"{name}={value}" for name, value in found.items() if name != "mode")
    print_found(form, {"address": state.address, **found}, [f"{state.address} {counters.mode} {text}"])
    return Exit.AS_EXPECTED if answer.strip() == "imok" else Exit.NOT_AS_EXPECTED


@zookeeper.command(
    epilog="""\b
Example:
  rebalance-lab zookeeper stop"""
)
@state_option
def stop() -> int:
    """Stop the server started by `zookeeper start`, identified by pid and start time."""
    state = read_state(NAME)
    if state is None:
        click.echo("no ZooKeeper was started by `zookeeper start`", err=True)
        return Exit.NOT_AS_EXPECTED
    if not stop_server(state):
        click.echo(f"the ZooKeeper with pid {state.pid} has already ended; nothing was stopped", err=True)
        return Exit.NOT_AS_EXPECTED
    click.echo(f"stopped {state.address}", err=True)
    return Exit.AS_EXPECTED


# -- `rebalance-lab zookeeper znodes`: znodes with their data, below one of them ---------------------------------------

#: The most of a znode's data that is shown.
DATA_MAX = 200


@zookeeper.command(
    epilog="""\b
Examples:
  rebalance-lab zookeeper znodes /consumers/g
  rebalance-lab zookeeper znodes /brokers --zookeeper 127.0.0.1:2181"""
)
@click.argument("path", default="/")
@zookeeper_option
@form_option
@state_option
def znodes(path: str, connect: str | None, form: str) -> int:
    """Show a znode and all below it, with their data; exit code 1 if it does not exist.

    An ephemeral znode disappears with the session of the client that created it.
    """
    if not path.startswith("/"):
        raise UserError(f"{path}: the path of a znode begins with /")
    root = path.rstrip("/") or "/"
    found = run(_read(zookeeper_at(connect) if connect else started_zookeeper(), root))
    print_found(
        form,
        [{"path": path, **found[path]._asdict()} for path in sorted(found, key=_by_name)],
        lines_of(found),
    )
    if not found:
        click.echo(f"no znode {path}", err=True)
    return Exit.AS_EXPECTED if found else Exit.NOT_AS_EXPECTED


async def _read(connect: str, root: str) -> Mapping[str, Seen]:
    reader = await TreeReader.open(connect, root)
    try:
        return await reader.read()
    finally:
        await reader.close()


def lines_of(found: Mapping[str, Seen]) -> list[str]:
    """A line for each znode that has data or none below it, sorted by path; numbers by their value."""
    inner = {path.rpartition("/")[0] or "/" for path in found if path != "/"}
    shown = [path for path, node in found.items() if node.data or path not in inner]
    return [_line(path, found[path]) for path in sorted(shown, key=_by_name)]


def _by_name(path: str) -> list[tuple[int, str]]:
    return [(-1 if (number := decimal(name)) is None else number, name) for name in path.split("/")]


def _line(path: str, node: Seen) -> str:
    data = node.data if len(node.data) <= DATA_MAX else f"{node.data[:DATA_MAX]}..."
    return printable(f"{path}{f' = {data}' if data else ''}{' (ephemeral)' if node.ephemeral else ''}")
