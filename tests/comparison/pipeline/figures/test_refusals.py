"""Verdicts on members that their groups refused for good, and the figures that they are made of."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.refusals import refusals_of
from comparison.pipeline.measured_members import Refused
from comparison.results.outcomes import VerdictOutcome
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, rows_of, verdicts_on
from tests.support.runs.results import change, refused

BOUNCE, FULL = "strategy-change-in-one-bounce", "group-full"
FIRST, SECOND, THIRD = (refused(place, admitted_ms=4_200.0) for place in ("m1", "m2", "m3"))
WRONG = refused("m2", "INVALID_GROUP_ID", admitted_ms=4_200.0)
MORE = refused("m5", "GROUP_MAX_SIZE_REACHED", admitted_ms=3_000.0)
UNNOTICED = [change("join", members=5, rounds=0, stopped=0)]


def bounced(*refusals: Any, **given: Any) -> dict[str, Any]:
    return {"changes": [change("bounce", members=3, **given)], "refusals": list(refusals)}


TABLE = {
    ("nobody is refused", "join", "consumer"): [
        ({"refusals": [refused("m5", "GROUP_MAX_SIZE_REACHED")]}, NO, "REACHED: m5 (asked once, never in)"),
        ({"refusals": [refused("m5", was_in=True)]}, NO, "PROTOCOL: m5 (asked once, had been in, out since)"),
        (
            {"refusals": [refused("m5", was_in=True, admitted_ms=3_000.0)]},
            NO,
            "m5 (asked once, had been in, in again after 3.0 s)",
        ),
        (
            {"refusals": [MORE, *(refused(place, MORE.error, was_in=True) for place in ("m3", "m1"))]},
            NO,
            "m1 (asked once, had been in, out since); at the limit m3 and m1 lost out to others that joined first",
        ),
    ],
    ("no common strategy", BOUNCE, "eager"): [
        (bounced(FIRST, SECOND), YES, "m1 (asked once, in after 4.2 s), m2 (asked once, in after 4.2 s)"),
        (bounced(FIRST), UNKNOWN, "others asked when no old member was left"),
        (bounced(), NO, "no member was refused"),
        (bounced(FIRST, WRONG), NO, "refused with INVALID_GROUP_ID: m2"),
        (bounced(FIRST, refused("m2", asked=3)), NO, "m2 (asked 3 times, never in)"),
        ({"refusals": [FIRST]}, UNKNOWN, "does not show a rolling change"),
    ],
    ("no common strategy", BOUNCE, "static"): [
        (bounced(FIRST, SECOND, THIRD), YES, ""),
        (bounced(FIRST, SECOND), UNKNOWN, ""),
    ],
    ("claims conflict", BOUNCE, "zookeeper"): [
        (bounced(attempts_failed=9), YES, "9 attempts failed"),
        (bounced(), NO, ""),
        (bounced(attempts_failed=9, converge_ms=None), NO, ""),
    ],
    ("refused for good", FULL, "consumer"): [
        ({"refusals": [MORE]}, YES, "refused with GROUP_MAX_SIZE_REACHED: m5"),
        ({"refusals": []}, NO, "no member was refused"),
    ],
    ("full group", FULL, "eager"): [
        ({"changes": UNNOTICED, "refusals": [MORE]}, YES, "in after 3.0 s); 0 rebalances, 0 partitions stopped"),
        ({"changes": UNNOTICED, "refusals": []}, NO, "no member was refused"),
        ({"changes": [change("join", rounds=1)], "refusals": [MORE]}, NO, "1 rebalance"),
        ({"changes": [change("leave")], "refusals": [MORE]}, UNKNOWN, ""),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(TABLE))
def test_refusals_are_judged(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)


def test_a_run_in_which_nobody_was_refused_says_nothing_of_it_and_one_with_refusals_has_no_exact_counts() -> None:
    assert "nobody is refused" not in verdicts_on("join", "eager")
    assert "counts" in verdicts_on("join", "eager")
    assert "counts" not in verdicts_on("join", "eager", refusals=[MORE])


def asked(process: str, at_ms: int, admitted_ms: int | None, error: str = "E", *, was_in: bool = False) -> Refused:
    admitted_ns = None if admitted_ms is None else admitted_ms * 1_000_000
    named = {"process": process, "group": "g", "api": "JoinGroup", "error": error}
    return Refused(**named, t_ns=at_ms * 1_000_000, was_in=was_in, admitted_ns=admitted_ns)


def test_each_place_is_refused_as_often_as_its_processes_asked() -> None:
    found = refusals_of(
        [
            asked("m1.3", 300, 900, was_in=True),
            asked("m2", 200, None),
            asked("m1.2", 100, 900),
            asked("m1.3", 350, None, "F"),
        ]
    )
    assert [(each.place, each.error, each.asked, each.at_ms, each.was_in, each.admitted_ms) for each in found] == [
        ("m1", "E", 2, 100.0, False, 800.0),
        ("m2", "E", 1, 200.0, False, None),
        ("m1", "F", 1, 350.0, False, None),
    ]
