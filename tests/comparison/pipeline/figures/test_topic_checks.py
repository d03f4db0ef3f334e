"""Verdicts on topics that appear under a pattern or are recreated, and on patterns that change."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.topic_checks import CREATED, SUBSCRIBED
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Added
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, rows_of
from tests.support.runs.results import change


def created(noticed_ms: float | None = 700.0, **given: Any) -> list[Any]:
    parts = {"grow": 1.0} if noticed_ms is None else {"grow": 1.0, "notice": noticed_ms, "deliver": 2.0}
    added = Added(partitions=8, owned=8, delivered=8, delivered_ms=None, parts=parts)
    return [change(CREATED, **{"members": 4, "attempts": 4, "added": added, **given})]


def subscribed(*rounds: int) -> list[Any]:
    return [change(SUBSCRIBED, round=number, rounds=each) for number, each in enumerate(rounds, start=1)]


_NOBODY = {"rounds": 0, "attempts": 0, "noticed_ms": None}
TABLE = {
    ("noticed by a search", "topic-appears", "consumer"): [
        ({"changes": created(9_000.0)}, YES, "nobody knew for 9.0 s; a search should find it within 1"),
        ({"changes": created(17_000.0)}, NO, ""),
        ({"changes": created(**_NOBODY)}, UNKNOWN, "no rebalance began"),
    ],
    ("one rebalance for all", "topic-appears", "cooperative"): [
        ({"changes": created()}, YES, "1 rebalance of 4 members"),
        ({"changes": created(rounds=4)}, NO, "4 rebalances of 4 members"),
        ({"changes": created(**_NOBODY)}, UNKNOWN, "no rebalance began after the topic was created"),
        ({"changes": [change()]}, UNKNOWN, "no topic that the group wants was created"),
    ],
    ("each rebalances", "topic-appears", "zookeeper"): [
        ({"changes": created(attempts=7, attempts_failed=3)}, YES, "4 rebalances of 4 members, 4 notifications"),
        ({"changes": created(attempts=4, attempts_failed=1)}, NO, "3 rebalances of 4 members"),
        ({"changes": created(notifications=1)}, NO, "1 notification"),
    ],
    ("old offsets used", "topic-recreated", "server"): [
        ({"old_offsets_used": 12}, YES, "12 partitions of the new topic begun at an offset of the old one"),
        ({"old_offsets_used": 0}, NO, ""),
        ({"old_offsets_used": None}, UNKNOWN, "no partition of a recreated topic was begun"),
    ],
    ("begins the new topic anew", "topic-recreated", "consumer"): [
        ({"old_offsets_used": 0}, YES, "no partition of the new topic begun at an offset of the old one"),
        ({"old_offsets_used": 1}, NO, "1 partition of the new topic begun at an offset of the old one"),
        ({"old_offsets_used": None}, UNKNOWN, "no partition of a recreated topic was begun"),
    ],
    ("one for each member", "pattern-widens", "eager"): [
        ({"changes": subscribed(1, 2, 1)}, YES, "4 rebalances for 3 members with another pattern"),
        ({"changes": subscribed(1, 0)}, NO, "1 rebalance for 2 members"),
        ({"changes": created()}, UNKNOWN, "no member changed its subscription"),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(TABLE))
def test_topics_and_patterns_are_judged(
    judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str
) -> None:
    assert_verdict(judged, given, outcome, reason)
