"""How long a member can have been silent when its session was ended, from traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.gold.partitions import PartitionFigures
from comparison.pipeline.gold.run import measure, together
from comparison.pipeline.silver.reduce import reduced
from comparison.pipeline.sums.queries import NO_SUMS
from tests.support.trace.traces import MS, context, e, tables, traced_run

TOLERANCE_MS = 1
Event = dict[str, Any]


def answered(at_ms: float, error: str = "", api: str = "ConsumerGroupHeartbeat", member: str = "a") -> Event:
    fields = {"version": 1, "correlation": 1, "broker": 1, "error": error, "group": "g"}
    return e(at_ms, "m1", "request_answered", api=api, member=member, **fields)


def removed(at_ms: float, reason: str = "session", member: str = "a", process: str = "broker-1") -> Event:
    session = {"session": "0x1"} if process == "observer" else {}
    return e(at_ms, process, "group_member_left", group="g", id=member, reason=reason, **session)


def committed(at_ms: float, session: str = "0x1") -> Event:
    fields = {"group": "g", "p": 0, "offset": 1, "by": "a", "epoch": -1, "session": session}
    return e(at_ms, "observer", "offset_written", **fields)


def silences_of(events: list[Event]) -> list[float]:
    found, _ = measure(traced_run(), tables(events))
    return [each.longest_ns / MS - TOLERANCE_MS for each in found.silences]


@pytest.mark.parametrize(
    ("events", "longest_ms"),
    [
        # As in a run of slow-link: its last heartbeat arrived at 1.3 s. It was sent after the answer at -0.3 s.
        pytest.param([answered(-290), answered(2_222), removed(4_325)], [4_615], id="between two answers"),
        pytest.param([answered(700), answered(1_700), removed(2_000)], [1_300], id="removed too early"),
        pytest.param(
            [answered(700), answered(1_700, "REBALANCE_IN_PROGRESS", "Heartbeat"), removed(2_000)],
            [1_300],
            id="accepted in a rebalance",
        ),
        pytest.param([answered(700), answered(1_700, "NOT_COORDINATOR"), removed(2_000)], [], id="refused"),
        pytest.param([answered(700), answered(1_700, api="Fetch"), removed(2_000)], [], id="no heartbeat"),
        pytest.param([answered(700), answered(1_700, member="b"), removed(2_000)], [], id="another member's"),
        pytest.param([answered(700), removed(2_000), answered(2_500)], [], id="after the end"),
        pytest.param([answered(700), answered(1_700), removed(2_000, "leave")], [], id="left by itself"),
        pytest.param(
            [answered(0), answered(1_000), removed(4_000), answered(9_000), answered(9_500), removed(9_600)],
            [4_000, 600],
            id="twice",
        ),
        pytest.param([committed(500), committed(900), removed(3_900, process="observer")], [3_000], id="a commit"),
        pytest.param([committed(900, "0x2"), removed(3_900, process="observer")], [], id="of the next session"),
        pytest.param([removed(3_900, process="observer"), committed(4_000)], [], id="a commit after the end"),
    ],
)
def test_a_silence_lasts_at_most_since_the_last_request_that_must_have_arrived(
    events: list[Event], longest_ms: list[float]
) -> None:
    assert silences_of([e(-1_000, "m1", "member_started", member="a", group="g"), *events]) == longest_ms


def test_parts_of_a_run_give_what_the_whole_run_gives() -> None:
    started = e(-1_000, "m1", "member_started", member="a", group="g")
    answers = [answered(0), answered(1_000), answered(2_000)]
    whole = tables([started, *answers, removed(4_500)])
    about, figures = context(whole), PartitionFigures()
    parts = [reduced(tables([each]), about)[1] for each in answers]
    assert together(about, parts, figures, NO_SUMS, []).silences == measure(traced_run(), whole)[0].silences
    assert [each.longest_ns for each in together(about, parts, figures, NO_SUMS, []).silences] == [
        (3_500 + TOLERANCE_MS) * MS
    ]
