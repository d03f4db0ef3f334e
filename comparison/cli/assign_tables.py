"""The tables of `assign`: who owns what with each strategy side by side, then how even it is and what moved.

They fit 80 columns. What has moved is marked and bold, so that colours only repeat what is written.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from comparison.assigning.strategies import THREADS, owners_of
from comparison.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, RenderableType

    from comparison.assigning.group import Plan
    from comparison.assigning.rehearsal import Moment, Rehearsal
    from comparison.assigning.strategies import Owned
    from kernel.values import TopicPartition

MOVED, NEW = "*", "+"
#: Owners below each other, and partitions of one owner, or ranges of them; `--format json` has all of them.
_OWNERS_MAX, _RUNS_MAX = 40, 16
_OWNER_WIDTH, _GAP = 24, 2
_HEADINGS = ("fewest", "most", "balance", "moved", "forced", "minimum", "unnecessary", "stopped")
_UNKNOWN = "-"


def print_tables(plan: Plan, found: Sequence[Rehearsal], console: Console) -> None:
    """Print everything, one moment after the other, without blanks at the ends of lines."""
    with console.capture() as captured:
        for part in _parts(plan, found, console.width):
            console.print(part)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


def _parts(plan: Plan, found: Sequence[Rehearsal], width: int) -> Iterator[RenderableType]:
    yield Text(_title(plan))
    if any(member.streams > 1 for member in plan.group.members) and not THREADS.keys() >= set(plan.strategies):
        yield Text("streams count only in the strategies thread-*")
    for place in range(max((len(each.moments) for each in found), default=0)):
        yield from _moment([(each.strategy, each.moments[place]) for each in found if len(each.moments) > place], width)
    for each in found:
        if each.failed:
            yield Text(f"\n{each.strategy} fails: {printable(each.failed)}", style="bold red")
    if legend := _legend(found):
        yield Text(f"\n{legend}", style="dim")


def _title(plan: Plan) -> str:
    counts = (
        (len(plan.group.members), "member"),
        (sum(plan.group.sizes.values()), "partition"),
        (len(plan.group.sizes), "topic"),
    )
    members, partitions, topics = (f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    return f"{members}, {partitions} of {topics}"


def _moment(there: Sequence[tuple[str, Moment]], width: int) -> Iterator[RenderableType]:
    yield Text()
    yield Rule(Text(there[0][1].step or "at the start", style="bold"), align="left", style="dim")
    for beside in _side_by_side(there, width):
        yield _owners(beside)
        yield Text()
    notes = list(_notes(there))
    yield from (Text(note) for note in notes)
    if notes:
        yield Text()
    yield _figures(there)


def _side_by_side(there: Sequence[tuple[str, Moment]], width: int) -> Iterator[list[tuple[str, Moment]]]:
    """Strategies as they fit beside each other; those over threads apart, since their owners are others."""
    beside: list[tuple[str, Moment]] = []
    room = 0
    for strategy, moment in sorted(there, key=lambda pair: pair[0] in THREADS):
        cells = [_runs(tps, moment).cell_len for tps in moment.owned.values()]
        needed = _GAP + max(len(strategy), *cells, 0)
        if beside and (needed > room or (strategy in THREADS) != (beside[0][0] in THREADS)):
            yield beside
            beside = []
        if not beside:
            room = width - min(_OWNER_WIDTH, max([6, *(cell_len(label) for _, label in _labels(strategy, moment))]))
        beside.append((strategy, moment))
        room -= needed
    yield beside


def _labels(strategy: str, moment: Moment) -> list[tuple[str, str]]:
    """Every owner as it is shown, in order."""
    instances = {member.name: f" ({member.instance_id})" for member in moment.group.members if member.instance_id}
    former = {owner: f", was {name}" for owner, name in moment.was.items()}
    owners = list(owners_of(moment.group, strategy))
    return [(owner, owner + instances.get(owner, "") + former.get(owner, "")) for owner in owners]


def _notes(there: Sequence[tuple[str, Moment]]) -> Iterator[str]:
    for strategy, moment in there:
        if moment.unowned:
            yield f"{strategy}: nobody owns {_runs(moment.unowned, moment)}"
        if not moment.rounds:
            yield f"{strategy}: no rebalance"
        if len(moment.rounds) > 1:
            for number, each in enumerate(moment.rounds, start=1):
                yield f"{strategy}, round {number}: {_changes(each.revoked, each.given)}"


def _owners(there: Sequence[tuple[str, Moment]]) -> Table:
    strategy, first = there[0]
    table = _table()
    table.add_column("thread" if strategy in THREADS else "member", overflow="fold", max_width=_OWNER_WIDTH)
    for name, _ in there:
        table.add_column(name, overflow="fold")
    labels = _labels(strategy, first)
    for owner, label in labels[:_OWNERS_MAX]:
        table.add_row(label, *(_runs(moment.owned.get(owner, ()), moment) for _, moment in there))
    if len(labels) > _OWNERS_MAX:
        table.add_row(f"and {len(labels) - _OWNERS_MAX} more", *("" for _ in there))
    return table


def _figures(there: Sequence[tuple[str, Moment]]) -> Table:
    table = _table(gap=1)
    table.add_column("strategy", overflow="fold")
    headings = _HEADINGS if there[0][1].step else _HEADINGS[:3]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for strategy, moment in there:
        values = (getattr(moment.figures, heading) for heading in headings)
        table.add_row(strategy, *(_UNKNOWN if value is None else str(value) for value in values))
    return table


def _table(gap: int = _GAP) -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0), expand=False)


def _runs(partitions: Iterable[TopicPartition], moment: Moment | None = None) -> Text:
    """`t-0 t-1* t-4..7`: sorted, with a mark for what has moved; three or more in a row are written as a range."""

    def mark(tp: TopicPartition) -> str:
        return "" if moment is None else MOVED if tp in moment.came_from else NEW if tp in moment.new else ""

    runs: list[tuple[str, str]] = []
    # In a row: the number grows as fast as the place.
    for _, group in groupby(
        enumerate(sorted(partitions)), lambda at: (at[1].partition - at[0], at[1].topic, mark(at[1]))
    ):
        tps = [tp for _, tp in group]
        shown = [f"{tps[0]}..{tps[-1].partition}"] if len(tps) > 2 else map(str, tps)
        runs += [(text, mark(tps[0])) for text in shown]
    text = Text()
    for place, (run, marked) in enumerate(runs[:_RUNS_MAX]):
        text.append(" " if place else "").append(run + marked, style="bold" if marked else "")
    if len(runs) > _RUNS_MAX:
        text.append(f" and {len(runs) - _RUNS_MAX} more")
    return text


def _changes(revoked: Owned, given: Owned) -> str:
    shown = [f"{owner} gives up {_runs(tps)}" for owner, tps in revoked.items()]
    shown += [f"{owner} gets {_runs(tps)}" for owner, tps in given.items()]
    more = f"; and {len(shown) - _OWNERS_MAX} more" if len(shown) > _OWNERS_MAX else ""
    return "; ".join(shown[:_OWNERS_MAX]) + more


def _legend(found: Sequence[Rehearsal]) -> str:
    moments = [moment for each in found for moment in each.moments]
    parts = []
    if any(moment.came_from for moment in moments):
        parts.append(f"{MOVED} moved from another owner")
    if any(moment.new for moment in moments):
        parts.append(f"{NEW} had no owner before")
    return "   ".join(parts)
