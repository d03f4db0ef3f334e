"""How partitions that were added to a topic reached the members, and where the time went; plain Python.

From the change until the last new partition was delivered from, every moment belongs to one part:

    grow      the controller and the leaders add the partitions
    notice    nobody in the group knows of them
    hear      somebody rebalances, and a member does not know it yet: the next heartbeat tells
    PHASES    the members rebalance (kernel.trace.events.PHASES)
    wait      nobody is in a phase, and some new partition has no owner
    deliver   all have owners; the first records of the last one arrive

Members are in different phases at the same time. The group waits for the one that is furthest behind, so its phase
counts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from comparison.pipeline.measured import ChangeStarted, GroupChanged, TopicWanted
from comparison.results.keys import BELIEVED, DELIVERING, WHOLE
from comparison.results.run import Added
from kernel.clock import in_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comparison.pipeline.measured import ChangeWindow, Measured, MemberPhase

GROW, NOTICE, HEAR, WAIT, DELIVER = "grow", "notice", "hear", "wait", "deliver"
#: Who is furthest behind: a member that waits after a failed attempt has to do everything again.
BEHIND = ("backoff", HEAR, "detect", "stop", "release", "join", "decide", "claim", "resume", WAIT)


def added_by(measured: Measured, window: ChangeWindow) -> Added | None:
    """What became of the partitions that a change added; None if it added none."""
    detail = next(
        (e.detail for e in measured.runner if isinstance(e, ChangeStarted) and e.t_ns == window.from_ns and e.detail),
        {},
    )
    before, after = detail.get("before"), detail.get("after")
    if not isinstance(before, int) or not isinstance(after, int) or after <= before:
        return None
    owned, delivered = (measured.begun.get((window.window, view)) for view in (BELIEVED, DELIVERING))
    parts, end_ns = dict(_until_noticed(measured, window)), window.from_ns
    end_ns += sum(parts.values())
    complete = owned is not None and owned.partitions >= after - before
    if NOTICE in parts and complete:
        assert owned is not None
        phases = [each for each in measured.phases if window.from_ns <= each.from_ns < window.until_ns]
        parts |= furthest_behind(phases, end_ns, owned.last_ns)
        end_ns = max(end_ns, owned.last_ns)
        complete = delivered is not None and delivered.partitions >= after - before
        if delivered is not None and complete:
            parts[DELIVER] = max(0, delivered.last_ns - end_ns)
            end_ns = max(end_ns, delivered.last_ns)
    return Added(
        partitions=after - before,
        owned=owned.partitions if owned is not None else 0,
        delivered=delivered.partitions if delivered is not None else 0,
        delivered_ms=in_ms(end_ns - window.from_ns) if DELIVER in parts else None,
        parts={name: in_ms(ns) for name, ns in parts.items()},
    )


def _until_noticed(measured: Measured, window: ChangeWindow) -> Iterator[tuple[str, int]]:
    """How long it took until the topic had grown, and then until somebody in the group began to rebalance."""
    wanted = [event.t_ns for event in measured.runner if isinstance(event, TopicWanted)]
    begun = [each.from_ns for each in measured.phases if each.phase == WHOLE]
    begun += [event.t_ns for event in measured.group if isinstance(event, GroupChanged)]
    grown_ns, noticed_ns = (
        min((ns for ns in moments if window.from_ns <= ns < window.until_ns), default=None)
        for moments in (wanted, begun)
    )
    if grown_ns is None:
        return
    if noticed_ns is not None:
        grown_ns = min(grown_ns, noticed_ns)  # a watch may be faster than the runner, which asks for every leader
    yield GROW, grown_ns - window.from_ns
    if noticed_ns is not None:
        yield NOTICE, noticed_ns - grown_ns


def furthest_behind(phases: Iterable[MemberPhase], from_ns: int, until_ns: int) -> dict[str, int]:
    """How much of a stretch each of BEHIND had, in that order; those without a share are left out."""
    intervals = [(each.from_ns, each.until_ns, each.phase) for each in phases if each.phase in BEHIND]
    first: dict[tuple[str, str | None], int] = {}
    for each in phases:
        if each.phase == WHOLE and each.from_ns < until_ns:
            member = each.process, each.member
            first[member] = min(each.from_ns, first.get(member, each.from_ns))
    intervals += [(from_ns, heard_ns, HEAR) for heard_ns in first.values()]
    intervals.append((from_ns, until_ns, WAIT))
    steps = sorted(
        (min(max(ns, from_ns), until_ns), change, BEHIND.index(phase))
        for begin, end, phase in intervals
        for ns, change in ((begin, 1), (max(begin, end), -1))
    )
    there, found = [0] * len(BEHIND), [0] * len(BEHIND)
    for (ns, change, rank), (next_ns, _, _) in pairwise(steps):
        there[rank] += change
        if next_ns > ns:
            found[next(place for place, members in enumerate(there) if members > 0)] += next_ns - ns
    return {phase: ns for phase, ns in zip(BEHIND, found, strict=True) if ns}
