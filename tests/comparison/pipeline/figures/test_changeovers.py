"""Verdicts on a group that changes over to the consumer protocol and back, on hand-written results."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comparison.report.summaries.changeovers import table
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, beside, rows_of
from tests.support.runs.results import change, run

#: Of three members with twelve partitions, as librdkafka's on a real 4.1.1.
STOPPED = (20, 12, 4, 4, 12, 20)


def there_and_back(stopped: tuple[int, ...] = STOPPED, members: int = 3, **last: Any) -> list[Change]:
    """A restart of every member there, and back; the last one is given otherwise."""
    found = []
    for number, count in enumerate(stopped, start=1):
        back = number == len(stopped)
        usual: dict[str, Any] = {"group_type": "classic" if back else "consumer", "generation": 2 + 2 * number}
        more = last if back else {}
        found.append(change("restart", round=number, members=members, stopped=count, **{"rounds": 2} | usual | more))
    return found


MIGRATION = ("group-protocol-migration", "consumer")
TWELVE = {"parameters": {"partitions": 12, "topics": 1}}
FROM_COOPERATIVE = {"parameters": {"partitions": 12, "topics": 1, "changed_from": "cooperative"}}

VERDICTS = {
    ("changes over and back", *MIGRATION): beside(
        TWELVE,
        (there_and_back(), YES, "a consumer group, then a classic group; epochs 4, 6, 8, 10, 12, 14"),
        (there_and_back(group_type="consumer"), NO, "a consumer group;"),
        (there_and_back(generation=15), NO, "epochs 4, 6, 8, 10, 12, 15"),
        (there_and_back(rounds=3), NO, "epochs"),
        (there_and_back(group_type=""), UNKNOWN, "does not show the group's type"),
        (there_and_back()[:4], UNKNOWN, "not every member was restarted"),
        ([], UNKNOWN, "not every member was restarted"),
        # Incremental members need one more round at the end, and another one if a member is sent back to join.
        ({"changes": there_and_back((4,) * 6, rounds=3, generation=15), **FROM_COOPERATIVE}, YES, ""),
        ({"changes": there_and_back(), **FROM_COOPERATIVE}, NO, ""),
        (
            {"changes": there_and_back((4,) * 6, rounds=4, generation=16, attempts_failed=1), **FROM_COOPERATIVE},
            YES,
            "",
        ),
        ({"changes": there_and_back((4,) * 6, rounds=4, generation=16, attempts_failed=0), **FROM_COOPERATIVE}, NO, ""),
    ),
    ("stops by protocol", *MIGRATION): beside(
        TWELVE,
        (there_and_back(), YES, "20, 12, 4, 4, 12, 20 partitions stopped"),
        (there_and_back((36, 0, 0, 36), members=2), NO, "instead of 18, 6, 6, 18"),
        (there_and_back((18, 6, 6, 18), members=2), YES, "18, 6, 6, 18"),
        (
            {"changes": there_and_back(), "parameters": {"partitions": 13, "topics": 1}},
            UNKNOWN,
            "13 partitions do not divide evenly among 3 and 2",
        ),
        (there_and_back()[1:], UNKNOWN, "not every member was restarted"),
        # Incremental members stop only what moves.
        ({"changes": there_and_back((4,) * 6, rounds=3, generation=15), **FROM_COOPERATIVE}, YES, ""),
        ({"changes": there_and_back(), **FROM_COOPERATIVE}, NO, ""),
    ),
    ("offsets kept", *MIGRATION): beside(
        {**TWELVE, "changes": there_and_back(), "commits": 60.0, "started_behind": 0.0},
        ({}, YES, ""),
        ({"started_behind": 2.0}, NO, ""),
        ({"commits": 0.0}, UNKNOWN, ""),
        ({"started_behind": None}, UNKNOWN, ""),
        ([], UNKNOWN, ""),
        ({"changes": [], "started_behind": 2.0}, UNKNOWN, ""),
    ),
}


@pytest.mark.parametrize(PARAMETERS, rows_of(VERDICTS))
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)


def test_report_has_a_row_for_each_restart() -> None:
    shown = run("group-protocol-migration", "consumer", changes=there_and_back(target="m3.2"))
    found = table([shown])
    assert found is not None
    rows = found.rows
    assert len(rows) == len(STOPPED)
    assert rows[-1] == ("6: m3.2", ["classic", "14", "20", "0", "3", "1.50", "300"])
    assert table([replace(shown, scenario="rolling-restart")]) is None
