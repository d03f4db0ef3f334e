"""Verdicts on partitions that stand still although they are owned."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, rows_of
from tests.support.runs.results import change


def broker(fault: str, standstill_s: float | None, unowned_s: float = 0.0, name: str = "broker-1") -> Change:
    figures = {"standstill_s": standstill_s, "unowned_longest_s": unowned_s}
    return change(fault, target=name, members=None, **figures)


RESTARTED, KILLED = broker("restart", 0.2), broker("kill", 3.1)
LED = {"no leader": 12.0}
TABLE = {
    ("stands still though owned", "brokers-rolling", "eager"): [
        ({"changes": [RESTARTED, KILLED], "standstill_causes": LED}, YES, "stood still for 3.1 s, and was without"),
        ({"changes": [RESTARTED, KILLED], "standstill_causes": {"unknown": 1.0}}, UNKNOWN, "the broker led nothing"),
        ({"changes": [broker("kill", 3.1, 2.9)], "standstill_causes": LED}, NO, "without an owner for 2.9 s"),
        ({"changes": [broker("restart", 0.2, 0.9), KILLED], "standstill_causes": LED}, NO, ""),
        ({"changes": [RESTARTED], "standstill_causes": LED}, UNKNOWN, "no broker was killed"),
        ({"changes": [broker("kill", 3.0, name="m1")], "standstill_causes": LED}, UNKNOWN, "no broker was killed"),
        ({"changes": [broker("kill", None)], "standstill_causes": LED}, UNKNOWN, "nobody traced which records waited"),
    ],
    ("brokers hand over", "brokers-rolling", "zookeeper"): [
        ({"changes": [broker("restart", 0.1), RESTARTED, KILLED]}, YES, "for 0.2 s at most, the kill for 3.1 s"),
        ({"changes": [RESTARTED, broker("restart", 2.0), KILLED]}, NO, "for 2.0 s at most"),
        ({"changes": [KILLED]}, UNKNOWN, "no broker was restarted"),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(TABLE))
def test_standstills_are_judged(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)
