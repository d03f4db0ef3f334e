"""`rebalance-lab watch`: a group as it is now, in the columns of Kafka's own tools."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from comparison.cli.by_hand import bootstrap_of, started_zookeeper, state_option, zookeeper_at
from comparison.cli.complaints import error_line
from comparison.cli.hand_observer import HandObserver
from comparison.cli.idle import PATIENCE_S
from comparison.cli.options import form_option, refuse_beside
from comparison.cli.part_options import chosen_parts, part_options
from comparison.cli.quantities import Number
from comparison.cli.state import states
from comparison.exits import Exit
from comparison.group_readers.cluster import open_client
from comparison.group_readers.columns import GroupSeen, Keeper, Part, tables
from comparison.group_readers.coordinator import CoordinatorReader
from comparison.group_readers.idle_reasons import Saying, has_idle_members, reasons_of_members
from comparison.group_readers.zookeeper import ZooKeeperReader
from comparison.interruptible import run
from comparison.screen.printable import printable
from kernel.client.bootstrap import addresses
from kernel.errors import ConfigurationError, ProtocolError, Unavailable
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from comparison.group_readers.columns import Table
    from comparison.group_readers.idle_reasons import GroupFacts

#: States of a group without anything to show.
_ABSENT = frozenset({"", "Dead"})
_CHANGED = "bold green"
#: How long `--once` waits for what is unavailable, and how often it reads again.
_ONCE_S, _AGAIN_S = 5.0, 0.25


@click.command(
    epilog="""\b
Examples:
  rebalance-lab watch --group g
  rebalance-lab watch --group g --once
  rebalance-lab watch --group g --offsets --interval 0.2
  rebalance-lab watch --group g --zookeeper 127.0.0.1:2181
      works for Kafka's own consumers, too
  rebalance-lab watch --group g --bootstrap-server broker:9092
      a group on a real Kafka, 0.9 to 4.1
  rebalance-lab watch --group g --once --format json
  rebalance-lab watch --group g --trace runs/mine
      stop it after the consumers have ended

\b
Columns are those of Kafka's tools: ConsumerOffsetChecker's for a group in
ZooKeeper (Pid is a partition's number), and kafka-consumer-groups' for a
group with a coordinator. A group of the server design has its ids in
ZooKeeper and its offsets with the coordinator. On a terminal the tables are
redrawn, with what has changed in bold; elsewhere they are printed whenever
something has changed. Ctrl-C ends it.
It is not a member, and sets no watches without --trace: docs/by-hand.md says
what it reads."""
)
@click.option("--group", required=True, help="The group to watch.")
@click.option("--zookeeper", "connect", help="ZooKeeper that keeps the group: HOST:PORT[,HOST:PORT...][/chroot].")
@click.option(
    "--bootstrap-server", "bootstrap", help="Brokers of a group with a coordinator: HOST:PORT[,HOST:PORT...]."
)
@part_options
@click.option("--once", is_flag=True, help="Show the group once; exit code 1 if there is no such group.")
@click.option(
    "--interval",
    "interval_s",
    type=Number(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Trace what ZooKeeper says into this run folder, as `consume --trace` does what members believe.",
)
@form_option
@state_option
def watch(
    group: str,
    connect: str | None,
    bootstrap: str | None,
    once: bool,
    interval_s: float,
    trace: Path | None,
    form: str,
    **parts: bool,
) -> int:
    """Show a group: members, owners, offsets, lag, coordinator and state.

    Without --zookeeper and --bootstrap-server, the group is looked for in the servers started by `zookeeper start` and
    `broker`.
    """
    if once:
        refuse_beside("--once", "interval_s")
    if form == "json":
        refuse_beside("--format json, which has everything", *Part)
    if connect is None and bootstrap is None:
        running = [state.address for state in states("broker-") if state.running]
        connect, bootstrap = started_zookeeper(), ",".join(running) or None
    where = _Where(
        zookeeper_at(connect) if connect else "", addresses(bootstrap_of(bootstrap)) if bootstrap else [], group
    )
    view = _View(form, chosen_parts(parts))
    if trace is not None and (once or not connect):
        raise ConfigurationError(
            "--trace is for a group in ZooKeeper (--zookeeper), for as long as it is watched (without --once); a "
            "coordinator traces itself: `broker --trace`"
        )
    return run(_watch(where, view, None if once else interval_s, trace))


class _Where:
    """Where a group may be, and the readers of where it is."""

    def __init__(self, zookeeper: str, bootstrap: Sequence[tuple[str, int]], group: str) -> None:
        self._zookeeper, self._bootstrap, self._group = zookeeper, bootstrap, group
        self._stack = contextlib.AsyncExitStack()
        self._readers: list[ZooKeeperReader | CoordinatorReader] = []
        self._observer: HandObserver | None = None
        self.is_partial = False  #: one of the readers found its server unavailable, the last time

    async def open(self) -> None:
        """Raises `Unavailable` when a given server does not answer."""
        if self._zookeeper:
            reader = await ZooKeeperReader.open(self._zookeeper, self._group, self._bootstrap)
            self._stack.push_async_callback(reader.close)
            self._readers.append(reader)
        if self._bootstrap:
            client = await open_client(self._bootstrap)
            self._stack.push_async_callback(client.close)
            self._readers.append(CoordinatorReader(client, self._group))

    async def trace(self, folder: Path) -> None:
        """Observe the group into a run folder until the end. Raises `ConfigurationError`, `Unavailable`."""
        self._observer = HandObserver(self._zookeeper, self._group, folder)
        await self._observer.open()
        self._stack.push_async_callback(self._observer.close)

    async def complaint(self) -> str:
        """That the group is in none of these places, and which one may be meant."""
        known: set[str] = set()
        for reader in self._readers:
            with contextlib.suppress(Unavailable, ProtocolError):
                known |= await reader.groups()
        if not known:
            return f"there is no group {self._group!r}, and no other one. A consumer makes it: `rebalance-lab consume`"
        return unknown("group", self._group, sorted(known))

    async def reasons(self) -> list[str]:
        """Why members own nothing."""
        facts: list[GroupFacts] = []
        for reader in self._readers:
            with contextlib.suppress(ConfigurationError, ProtocolError):
                facts.append(await reader.facts())
        shown = _shown([each.seen for each in facts if each.seen is not None and _is_there(each.seen)])
        found = [reason for each in facts if each.seen in shown for reason in reasons_of_members(each)]
        return list(dict.fromkeys(found))

    async def close(self) -> None:
        await self._stack.aclose()

    async def read(self) -> list[GroupSeen]:
        """The group wherever it is; nowhere if it is not there. `problem` says what was unavailable.

        Raises `Unavailable` if nothing else was, and whatever else reading raises.
        """
        read = await asyncio.gather(*(reader.read() for reader in self._readers), return_exceptions=True)
        problems = [each for each in read if isinstance(each, Unavailable)]
        self.is_partial = bool(problems)
        for each in read:
            if isinstance(each, BaseException) and each not in problems:
                raise each
        seen = [each for each in read if isinstance(each, GroupSeen) and _is_there(each)]
        if problems:
            if not seen:
                raise problems[0]
            seen = [
                replace(each, problem="; ".join(filter(None, [each.problem, *map(str, problems)]))) for each in seen
            ]
        if self._observer is not None:
            self._observer.follow(seen)
        return _shown(seen)


def _is_there(seen: GroupSeen) -> bool:
    return bool(seen.members or seen.partitions) or (seen.keeper is Keeper.COORDINATOR and seen.state not in _ABSENT)


def _shown(seen: Sequence[GroupSeen]) -> list[GroupSeen]:
    """Those that tell something that no other one does."""
    coordinated = any(each.members for each in seen if each.keeper is Keeper.COORDINATOR)
    in_zookeeper = any(each.keeper is Keeper.ZOOKEEPER for each in seen)
    return [each for each in seen if not _is_shown_by_the_other(each, coordinated, in_zookeeper)]


def _is_shown_by_the_other(seen: GroupSeen, coordinated: bool, in_zookeeper: bool) -> bool:
    """Of a `server` group the coordinator shows everything; offsets that a group in ZooKeeper keeps in Kafka are shown
    with its ids.
    """
    if seen.keeper is Keeper.ZOOKEEPER:
        return seen.commanded and coordinated
    return in_zookeeper and not seen.members


async def _watch(where: _Where, view: _View, interval_s: float | None, trace: Path | None) -> int:
    has_read = False
    try:
        await where.open()
        if trace is not None:
            await where.trace(trace)
        if interval_s is None:
            seen = await _read_once(where)
            view.show(seen, notes=await where.reasons() if has_idle_members(seen) else ())
            if not seen:
                click.echo(error_line(await where.complaint()), err=True)
            return Exit.AS_EXPECTED if seen else Exit.NOT_AS_EXPECTED
        known: list[GroupSeen] = []
        saying = Saying(PATIENCE_S)
        while True:
            try:
                known = await where.read()
                has_read = True
                is_due = saying.is_due(time.monotonic(), idle=has_idle_members(known))
                view.show(known, notes=await where.reasons() if is_due else ())
            except Unavailable as error:
                # What was seen last stays, with the reason why it is old.
                view.show([replace(each, problem=str(error)) for each in known], problem=str(error))
            await asyncio.sleep(interval_s)
    except asyncio.CancelledError:
        if not has_read:
            raise
    finally:
        view.end()
        await where.close()
    return Exit.AS_EXPECTED


async def _read_once(where: _Where) -> list[GroupSeen]:
    """Wait a while for a coordinator that is being elected, or loads its groups. Raises as `_Where.read`."""
    give_up_s = time.monotonic() + _ONCE_S
    while True:
        late = time.monotonic() >= give_up_s
        try:
            seen = await where.read()
            if late or not where.is_partial:
                return seen
        except Unavailable:
            if late:
                raise
        await asyncio.sleep(_AGAIN_S)


class _View:
    """Prints what was seen: JSON lines, tables when they change, or tables that are redrawn on a terminal."""

    def __init__(self, form: str, parts: Sequence[Part], console: Console | None = None) -> None:
        self._json = form == "json"
        self._parts = parts
        self._console = console or Console(highlight=False)
        self._live: Live | None = None
        self._before: set[Sequence[str]] | None = None
        self._printed: Sequence[str] = ()

    def show(self, seen: Sequence[GroupSeen], problem: str = "", notes: Sequence[str] = ()) -> None:
        """`problem` says why what was seen is old, `notes` why members own nothing."""
        if self._json:
            groups = [msgspec.to_builtins(each) for each in seen]
            remarks = {**({"problem": problem} if problem else {}), **({"notes": notes} if notes else {})}
            click.echo(msgspec.json.encode({"time_ms": time.time_ns() // 1_000_000, "groups": groups, **remarks}))
            return
        drawn = [table for each in seen for table in tables(each, self._parts)]
        problems = dict.fromkeys(filter(None, [problem, *(each.problem for each in seen), *notes]))
        lines = [printable(f"note: {each}") for each in problems]
        if not seen and not problem:
            lines.append("no such group")
        if self._console.is_terminal:
            self._redraw(drawn, lines)
        else:
            self._print(drawn, lines)

    def end(self) -> None:
        """Leave the terminal as it was, with the last tables."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, drawn: Sequence[Table], notes: Sequence[str]) -> None:
        lines = [line for table in drawn for line in ("", *table.lines())]
        lines = [*lines[1:], *notes]
        if lines != self._printed:
            if self._printed:
                click.echo()
            click.echo("\n".join(lines))
            self._printed = lines

    def _redraw(self, drawn: Sequence[Table], notes: Sequence[str]) -> None:
        before, self._before = self._before, {tuple(row) for table in drawn for row in table.rows}
        parts: list[RenderableType] = [Text(time.strftime("%H:%M:%S"), style="dim")]
        for table in drawn:
            styled = table.drawn(lambda row: _CHANGED if before is not None and tuple(row) not in before else "")
            parts += [Text(), styled]
        parts += [Text(note, style="yellow") for note in notes]
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")
            self._live.start()
        self._live.update(Group(*parts), refresh=True)
