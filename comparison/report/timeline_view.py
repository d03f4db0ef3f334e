"""A timeline of traces as the values that the report's lanes are drawn from.

A report draws what the analysis measured. A diagram needs no analysis: its lower bars are what members believe to own,
a gap is any stretch between two bars, and commits are as they were answered: nobody has asked who was the owner then.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.report.view.model import (
    ACCEPTED,
    Change,
    Commit,
    Fault,
    Holding,
    Overlap,
    PartitionView,
    Phase,
    Round,
    RunView,
    Stretch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.report.group_history import Event, GroupHistory
    from comparison.report.timeline import Span, Timeline

#: Stretches shorter than this have no order, as in the analysis.
_TOLERANCE_MS = 1.0
_COMMITS = ("offset_written", "offset_refused")


def timeline_view(history: GroupHistory, drawn: Timeline, scenario: str, seed: int) -> RunView:
    """The values of a timeline's window; times are milliseconds since the first event."""
    began_ms, ended_ms = (_ms(history, ns) for ns in (drawn.began_ns, drawn.ended_ns))
    commits = _commits(history)
    return RunView(
        scenario=scenario,
        design=history.design,
        seed=seed,
        authority="the coordinator" if history.coordinated else "ZooKeeper",
        members=drawn.members,
        places=drawn.places,
        full_names={},
        partitions=tuple(_lane(history, drawn, name, commits.get(name, ())) for name in drawn.partitions),
        phases=tuple(
            Phase(*_ends(history, span), member, span.what) for member, spans in drawn.phases.items() for span in spans
        ),
        rounds=tuple(_rounds(history, drawn)),
        faults=tuple(
            Fault(*_fault(mark.what), *_ends(history, mark))
            for mark in drawn.marks
            if mark.ended_ns - mark.began_ns > 1
        ),
        changes=tuple(
            Change(mark.what, _ms(history, mark.began_ns)) for mark in drawn.marks if mark.ended_ns - mark.began_ns <= 1
        ),
        began_ms=began_ms,
        ended_ms=ended_ms,
        left_out={},
    )


def _ms(history: GroupHistory, ns: int) -> float:
    return (ns - history.zero_ns) / 1e6


def _ends(history: GroupHistory, span: Span) -> tuple[float, float]:
    return _ms(history, span.began_ns), _ms(history, span.ended_ns)


def _fault(name: str) -> tuple[str, str]:
    """The fault and its target, of `cut m2`."""
    fault, _, target = name.partition(" ")
    return fault, target


def _lane(history: GroupHistory, drawn: Timeline, name: str, commits: Sequence[Commit]) -> PartitionView:
    named = _holdings(history, drawn.named.get(name, ()))
    delivering = _holdings(history, drawn.delivered.get(name, ()))
    ends = _ms(history, drawn.began_ns), _ms(history, drawn.ended_ns)
    return PartitionView(
        name="-".join(name.rsplit(" ", 1)),
        named=named,
        delivering=delivering,
        overlaps=tuple(_overlaps(delivering)),
        unnamed=tuple(_gaps(named)),
        unclaimed=tuple(_gaps(delivering)),
        commits=tuple(each for each in commits if ends[0] <= each.at_ms <= ends[1]),
    )


def _holdings(history: GroupHistory, spans: Iterable[Span]) -> tuple[Holding, ...]:
    found = (Holding(*_ends(history, span), span.what) for span in spans)
    return tuple(sorted(found, key=lambda each: (each.from_ms, each.until_ms, each.member)))


def _gaps(holdings: Sequence[Holding]) -> Iterator[Stretch]:
    reach = holdings[0].until_ms if holdings else 0.0
    for each in holdings[1:]:
        if each.from_ms > reach:
            yield Stretch(reach, each.from_ms)
        reach = max(reach, each.until_ms)


def _overlaps(holdings: Sequence[Holding]) -> Iterator[Overlap]:
    """Maximal stretches with several holders, longer than the tolerance."""
    ends = sorted([(each.from_ms, 1) for each in holdings] + [(each.until_ms, -1) for each in holdings])
    count, since = 0, 0.0
    for at_ms, step in ends:
        if step > 0 and count == 1:
            since = at_ms
        if step < 0 and count == 2 and at_ms - since > _TOLERANCE_MS:
            who = (each.member for each in holdings if each.from_ms < at_ms and each.until_ms > since)
            yield Overlap(since, at_ms, tuple(dict.fromkeys(who)))
        count += step


def _commits(history: GroupHistory) -> Mapping[str, list[Commit]]:
    """By partition, as a timeline names it."""
    names = history.names()
    found: defaultdict[str, list[Commit]] = defaultdict(list)
    committed: dict[str, int] = {}
    for event in history.events:
        if event["kind"] in _COMMITS:
            partition = f"{event['topic']} {event['partition']}"
            is_accepted = event["kind"] == _COMMITS[0]
            back = max(0, committed.get(partition, 0) - event["offset"]) if is_accepted else 0
            found[partition].append(_commit(history, names, event, back))
            if is_accepted:
                committed[partition] = event["offset"]
    return found


def _commit(history: GroupHistory, names: Mapping[str, str], event: Event, moved_back_by: int) -> Commit:
    return Commit(
        at_ms=_ms(history, event["ns"]),
        member=names.get(str(event["by"]), str(event["by"])),
        offset=event["offset"],
        outcome=str(event["error"]) if event["kind"] == "offset_refused" else ACCEPTED,
        is_stale=False,
        moved_back_by=moved_back_by,
    )


def _rounds(history: GroupHistory, drawn: Timeline) -> Iterator[Round]:
    for each in history.rounds:
        if each.began_ns < drawn.ended_ns and each.ended_ns > drawn.began_ns:
            known = [rebalance.generation() for rebalance in each.rebalances]
            yield Round(
                number=each.number,
                from_ms=_ms(history, each.began_ns),
                until_ms=_ms(history, each.ended_ns),
                generation=max((number for number in known if number is not None), default=None),
            )
