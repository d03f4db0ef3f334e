"""The tables of `assign`: who owns what with each strategy side by side, then how even it is and what moved.

What has moved is marked and bold, so that colours only repeat what is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from comparison.assigning.rehearsal import FIGURES
from comparison.assigning.strategies import THREADS, owners_of
from comparison.screen.counted import counted
from comparison.screen.partition_ranges import in_ranges
from comparison.screen.printable import printable
from comparison.screen.text_table import Column, Heading, TextTable, trimmed

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
#: Owners' names are wrapped at this width.
_OWNER_WIDTH = 24
_UNKNOWN = "-"


def print_tables(plan: Plan, found: Sequence[Rehearsal], console: Console) -> None:
    """Print everything, one moment after the other, without blanks at the ends of lines."""
    console.file.write(trimmed(console, *_parts(plan, found)))


def _parts(plan: Plan, found: Sequence[Rehearsal]) -> Iterator[RenderableType]:
    yield Text(_title(plan))
    if any(member.streams > 1 for member in plan.group.members) and not THREADS.keys() >= set(plan.strategies):
        yield Text("streams count only in the strategies thread-*")
    for place in range(max((len(each.moments) for each in found), default=0)):
        yield from _moment([(each.strategy, each.moments[place]) for each in found if len(each.moments) > place])
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
    members, partitions, topics = (counted(count, noun) for count, noun in counts)
    return f"{members}, {partitions} of {topics}"


def _moment(there: Sequence[tuple[str, Moment]]) -> Iterator[RenderableType]:
    yield Text()
    yield Heading(Text(there[0][1].step or "at the start", style="bold"))
    # Those over threads have other owners.
    for over_threads in (False, True):
        if beside := [pair for pair in there if (pair[0] in THREADS) is over_threads]:
            yield _owners(beside)
            yield Text()
    notes = list(_notes(there))
    yield from (Text(note) for note in notes)
    if notes:
        yield Text()
    yield _figures(there)


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


def _owners(there: Sequence[tuple[str, Moment]]) -> TextTable:
    strategy, first = there[0]
    owners = Column(
        heading="thread" if strategy in THREADS else "member", is_label=True, wraps=True, widest=_OWNER_WIDTH
    )
    table = TextTable([owners, *(Column(heading=name, wraps=True) for name, _ in there)], gaps=(2,))
    labels = _labels(strategy, first)
    for owner, label in labels[:_OWNERS_MAX]:
        table.add(label, *(_runs(moment.owned.get(owner, ()), moment) for _, moment in there))
    if len(labels) > _OWNERS_MAX:
        table.add(f"and {len(labels) - _OWNERS_MAX} more", *("" for _ in there))
    return table


def _figures(there: Sequence[tuple[str, Moment]]) -> TextTable:
    headings = FIGURES if there[0][1].step else FIGURES[:3]
    strategy = Column(heading="strategy", is_label=True)
    table = TextTable([strategy, *(Column(heading=heading, is_right=True) for heading in headings)], gaps=(1,))
    for name, moment in there:
        values = (getattr(moment.figures, heading) for heading in headings)
        table.add(name, *(_UNKNOWN if value is None else str(value) for value in values))
    return table


def _runs(partitions: Iterable[TopicPartition], moment: Moment | None = None) -> Text:
    """`t-0 t-1* t-4..7`: sorted, with a mark for what has moved; three or more in a row are written as a range."""

    def mark(tp: TopicPartition) -> str:
        return "" if moment is None else MOVED if tp in moment.came_from else NEW if tp in moment.new else ""

    runs = [(text, marked) for text, marked, _ in in_ranges((tp, mark(tp)) for tp in sorted(partitions))]
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
