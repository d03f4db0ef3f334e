"""Verdicts on rebalance listeners that are slow, and on partitions that are paused."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.results.outcomes import VerdictOutcome
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, rows_of
from tests.support.runs.results import change

SLOW = change("slow-listener", members=None, from_ms=500.0, healed_ms=4_000.0, target="m2")
INJECTED = {"parameters": {"injected": [{"fault": "slow-listener", "for_ms": 3000}]}}


def held_up(stalled_s: float | None, *, converge_ms: float | None = 3_100.0, **given: Any) -> dict[str, Any]:
    joined = change("join", from_ms=600.0, converge_ms=converge_ms, stalled_s=stalled_s, **given)
    return {"changes": [change("join", from_ms=0.0, stalled_s=2.0), SLOW, joined], **INJECTED}


def paused(dropped: float | None, moved: float = 4, outlasting: float = 0) -> dict[str, Any]:
    return {"pauses_dropped": dropped, "pauses_moved": moved, "pauses_outlasting": outlasting}


TABLE = {
    ("slow listener stops all", "slow-listener", "eager"): [
        (held_up(2.9), YES, "of m2 took 3 s, the group settled after 3.1 s, nothing was delivered for 2.9 s"),
        (held_up(1.4), NO, ""),
        (held_up(2.9, converge_ms=400.0), UNKNOWN, "settled after 400 ms: it waited for no listener"),
        (held_up(2.9, converge_ms=None), UNKNOWN, "no member joined, and owned a partition"),
        (held_up(None), UNKNOWN, "no member joined"),
        ({"changes": [change("join", from_ms=600.0)], **INJECTED}, UNKNOWN, "no listener was slow"),
        ({**held_up(2.9), "parameters": {}}, UNKNOWN, "it waited for no listener"),
    ],
    ("slow listener stops what moves", "slow-listener", "consumer"): [
        (held_up(0.2), YES, "nothing was delivered for 0.2 s"),
        (held_up(1.0), NO, ""),
        (held_up(0.2, stopped_kept=2), NO, "2 partitions stopped and given back"),
        (held_up(0.2, converge_ms=400.0), UNKNOWN, "it waited for no listener"),
    ],
    ("pauses dropped", "paused-partition", "static"): [
        (paused(2), YES, "2 pauses dropped though the member kept the partition, 4 ended because it moved, 0 out"),
        (paused(0, outlasting=1), NO, "0 pauses dropped"),
        (paused(0), UNKNOWN, "0 pauses dropped"),
        (paused(None), UNKNOWN, "nothing was paused"),
    ],
    ("pauses kept", "paused-partition", "cooperative"): [
        (paused(0, outlasting=3), YES, "3 outlasted a rebalance"),
        (paused(1, outlasting=3), NO, "1 pause dropped though the member kept the partition"),
        (paused(0), UNKNOWN, ""),
        (paused(None), UNKNOWN, "nothing was paused"),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(TABLE))
def test_application_is_judged(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)
