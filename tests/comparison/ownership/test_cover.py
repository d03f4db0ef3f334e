"""Figures of a running group: however often they are asked for, they are those of all its intervals."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from comparison.ownership.cover import TOLERANCE_NS, Cover, doubled_ns, gaps_of, held_until, wanted_of
from comparison.ownership.fold import Key, ownership_of
from comparison.results.keys import BELIEVED, DELIVERING

MS = 1_000_000
ACTS = st.sampled_from(
    ["partitions_assigned", "partitions_revoked", "partitions_lost", "records_delivered", "records_delivered",
     "member_started", "member_closed", "process_ended", "topic_wanted", "change_started", "run_ended",
     "leader_changed"]
)  # fmt: skip
MOMENTS = st.tuples(st.sampled_from([0, 1, 300, 600, 1_500]), ACTS, st.integers(1, 3), st.integers(0, 1), st.booleans())


def event(kind: str, member: int, partition: int) -> dict[str, Any]:
    own = {"kind": kind, "process": f"m{member}", "member": f"id{member}", "stream": 0, "group": "g"}
    where = {"topic": "t", "partition": partition}
    return {
        **own,
        **where,
        "partitions": [where],
        "target": f"m{member}",
        "wanted": 1 + partition,
        "change": "join",
        "leader": member - 3,
        "leader_epoch": 0,
    }


def whole(events: list[tuple[int, dict[str, Any]]], now_ns: int) -> tuple[int, int]:
    """The same from all intervals at once."""
    wanted = wanted_of(events)
    end_ns = wanted.span(now_ns)[1]
    held: dict[tuple[str, Key], list[tuple[int, int]]] = {}
    for each in ownership_of(events).intervals:
        held.setdefault((each.view, each.key), []).extend(held_until([each], end_ns))
    two_ns = sum(doubled_ns(found, TOLERANCE_NS) for (view, _), found in held.items() if view == DELIVERING)
    gaps = (gaps_of(held.get((BELIEVED, key), ()), each) for key, each in wanted.stretches(now_ns).items())
    return two_ns, sum(high - low for found in gaps for low, high in found)


@given(st.lists(MOMENTS, max_size=60))
def test_figures_that_are_asked_for_often_are_those_of_all_intervals(
    moments: list[tuple[int, str, int, int, bool]],
) -> None:
    cover, events, now_ns = Cover(), [], 0
    for after_ms, kind, member, partition, is_asked in moments:
        now_ns += after_ms * MS
        events.append((now_ns, event(kind, member, partition)))
        cover.take(events[-1][1], now_ns)
        if is_asked:
            assert cover.figures(now_ns + 7 * MS) == whole(events, now_ns + 7 * MS)
    assert cover.figures(now_ns) == whole(events, now_ns)
