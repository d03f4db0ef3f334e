"""`rebalance-lab zookeeper znodes`: znodes with their data, below one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.cli.by_hand import started_zookeeper, state_option, zookeeper_at
from comparison.cli.documents import print_found
from comparison.cli.options import form_option, zookeeper_option
from comparison.exits import Exit
from comparison.interruptible import run
from comparison.playground.play.znodes import TreeReader
from comparison.screen.printable import printable
from kernel.decimals import decimal
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.playground.live.tree import Seen

#: The most of a znode's data that is shown.
DATA_MAX = 200


@click.command(
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
