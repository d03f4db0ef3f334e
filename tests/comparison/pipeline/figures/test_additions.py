"""Where the time went until added partitions were delivered from, and what is concluded from it."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.additions import added_by, furthest_behind
from comparison.pipeline.measured import Begun, ChangeStarted, ChangeWindow, Measured, MemberPhase, TopicWanted
from comparison.results.keys import BELIEVED, DELIVERING, WHOLE
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Added
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, beside, rows_of
from tests.support.runs.results import change

MS = 1_000_000
CHANGE = ChangeWindow(
    window=0,
    change="partition-increase",
    round=1,
    members=2,
    from_ns=1000 * MS,
    settled_ns=None,
    healed_ns=None,
    until_ns=9000 * MS,
)


def phase(process: str, name: str, from_ms: int, until_ms: int) -> MemberPhase:
    return MemberPhase(process=process, member=process, phase=name, from_ns=from_ms * MS, until_ns=until_ms * MS)


def parts(phases: list[MemberPhase], from_ms: int, until_ms: int) -> dict[str, float]:
    return {name: ns / MS for name, ns in furthest_behind(phases, from_ms * MS, until_ms * MS).items()}


def test_group_waits_for_the_member_that_is_furthest_behind() -> None:
    phases = [
        phase("m1", WHOLE, 0, 100),
        phase("m1", "join", 0, 60),
        phase("m1", "claim", 60, 100),
        phase("m2", WHOLE, 30, 100),
        phase("m2", "stop", 30, 50),
        phase("m2", "join", 50, 60),
        phase("m2", "decide", 60, 80),
        phase("m2", "claim", 80, 100),
    ]
    assert parts(phases, 0, 110) == {"hear": 30, "stop": 20, "join": 10, "decide": 20, "claim": 20, "wait": 10}


def test_member_that_waits_after_a_failed_attempt_holds_up_the_group() -> None:
    phases = [phase("m1", "claim", 0, 100), phase("m2", "backoff", 20, 90)]
    assert parts(phases, 0, 100) == {"backoff": 70, "claim": 30}


def test_only_the_stretch_is_divided() -> None:
    assert parts([phase("m1", "join", 0, 500)], 100, 130) == {"join": 30}
    assert parts([], 100, 130) == {"wait": 30}
    assert parts([phase("m1", "join", 0, 500)], 130, 130) == {}


def measured(*, delivered: int = 6) -> Measured:
    detail = {"topic": "t", "before": 6, "after": 12}
    return Measured(
        runner=[ChangeStarted(t_ns=1000 * MS, detail=detail), TopicWanted(t_ns=1100 * MS, topic="t", wanted=12)],
        phases=[phase("m1", WHOLE, 3000, 3200), phase("m1", "join", 3000, 3200)],
        begun={
            (0, BELIEVED): Begun(partitions=6, last_ns=3200 * MS),
            (0, DELIVERING): Begun(partitions=delivered, last_ns=3450 * MS),
        },
    )


def test_parts_of_an_addition_add_up_to_the_whole() -> None:
    added = added_by(measured(), CHANGE)
    assert added == Added(
        partitions=6,
        owned=6,
        delivered=6,
        delivered_ms=2450.0,
        parts={"grow": 100.0, "notice": 1900.0, "join": 200.0, "deliver": 250.0},
    )
    assert sum(added.parts.values()) == added.delivered_ms


def test_addition_that_is_not_read_to_the_end_has_no_time() -> None:
    added = added_by(measured(delivered=5), CHANGE)
    assert added is not None
    assert (added.delivered, added.delivered_ms, "deliver" in added.parts) == (5, None, False)


def test_watch_that_is_faster_than_the_runner_ends_the_growth() -> None:
    found = measured()
    found.phases = [phase("m1", WHOLE, 1040, 1200)]
    added = added_by(found, CHANGE)
    assert added is not None
    assert (added.parts["grow"], added.parts["notice"]) == (40.0, 0.0)


def test_addition_that_nobody_noticed_is_all_growth() -> None:
    found = measured()
    found.phases, found.begun = [], {}
    added = added_by(found, CHANGE)
    assert added is not None
    assert added.parts == {"grow": 100.0}


@pytest.mark.parametrize("detail", [None, {}, {"before": 6}, {"before": 6, "after": 6}, {"before": "6", "after": 9}])
def test_other_changes_add_nothing(detail: dict[str, Any] | None) -> None:
    found = measured()
    found.runner = [ChangeStarted(t_ns=1000 * MS, detail=detail)]
    assert added_by(found, CHANGE) is None


# -- verdicts -------------------------------------------------------------------------------------------------------


def growth(notice_ms: float | None, delivered_ms: float | None = 2_000.0) -> Any:
    noticed = {} if notice_ms is None else {"notice": notice_ms}
    delivered = 6 if delivered_ms else 4
    added = Added(partitions=6, owned=6, delivered=delivered, delivered_ms=delivered_ms, parts={"grow": 9.0, **noticed})
    return change("partition-increase", added=added)


def asked_every(ms: int | None) -> dict[str, Any]:
    """Members look for new partitions as often as that."""
    timers = {} if ms is None else {"metadata_age_ms": ms}
    return {"parameters": {"timers": timers, "partitions": 6}}


def noticed(notice_ms: float | None, age_ms: int | None) -> dict[str, Any]:
    return {"changes": [growth(notice_ms)], **asked_every(age_ms)}


VERDICTS = {
    ("new partitions read", "add-partitions", "eager"): beside(
        asked_every(1_000),
        ([growth(10)], YES, "6 of 6 added partitions delivered from, the last one after 2.0 s"),
        ([growth(10, None)], NO, "4 of 6 added partitions delivered from, 6 owned"),
        ([change()], UNKNOWN, "no partitions were added"),
    ),
    ("noticed at once", "unnoticed-partitions", "zookeeper"): [(noticed(30.0, 0), YES, "")],
    ("noticed at once", "unnoticed-partitions", "server"): [
        (noticed(9_000.0, 0), NO, ""),
        (noticed(None, 0), UNKNOWN, ""),
    ],
    ("noticed in time", "unnoticed-partitions", "eager"): [
        (noticed(900.0, 1_000), YES, ""),
        (noticed(9_000.0, 1_000), NO, ""),
        (noticed(900.0, None), UNKNOWN, ""),
    ],
    ("unnoticed for minutes", "unnoticed-partitions", "eager"): [
        (noticed(295_000.0, 300_000), YES, ""),
        (noticed(3_000.0, 300_000), NO, ""),
        (noticed(900.0, 1_000), UNKNOWN, ""),
        (noticed(None, 300_000), UNKNOWN, ""),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(VERDICTS))
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)
