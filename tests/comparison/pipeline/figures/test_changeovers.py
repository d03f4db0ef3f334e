"""Verdicts on a group that changes over to the consumer protocol and back, on hand-written results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from comparison.pipeline.figures.verdicts import judge
from comparison.report.summaries.changeovers import changeovers
from comparison.results.outcomes import VerdictOutcome
from tests.support.runs.results import change, run

if TYPE_CHECKING:
    from comparison.results.run import Change, Verdict

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN
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


def verdict_on(check: str, changes: list[Change], partitions: int = 12, **given: Any) -> Verdict:
    parameters = {"partitions": partitions, "topics": 1}
    judged = judge(run("group-protocol-migration", "consumer", changes=changes, parameters=parameters, **given))
    (verdict,) = [each for each in judged.verdicts if each.check == check]
    return verdict


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (there_and_back(), YES, "a consumer group, then a classic group; epochs 4, 6, 8, 10, 12, 14"),
        (there_and_back(group_type="consumer"), NO, "a consumer group;"),
        (there_and_back(generation=15), NO, "epochs 4, 6, 8, 10, 12, 15"),
        (there_and_back(rounds=3), NO, "epochs"),
        (there_and_back(group_type=""), UNKNOWN, "does not show the group's type"),
        (there_and_back()[:4], UNKNOWN, "not every member was restarted"),
        ([], UNKNOWN, "not every member was restarted"),
    ],
)
def test_group_changes_over_and_back(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("changes over and back", changes)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("changes", "partitions", "outcome", "reason"),
    [
        (there_and_back(), 12, YES, "20, 12, 4, 4, 12, 20 partitions stopped"),
        (there_and_back((36, 0, 0, 36), members=2), 12, NO, "instead of 18, 6, 6, 18"),
        (there_and_back((18, 6, 6, 18), members=2), 12, YES, "18, 6, 6, 18"),
        (there_and_back(), 13, UNKNOWN, "13 partitions do not divide evenly among 3 and 2"),
        (there_and_back()[1:], 12, UNKNOWN, "not every member was restarted"),
    ],
)
def test_members_stop_as_their_protocol_says(
    changes: list[Change], partitions: int, outcome: VerdictOutcome, reason: str
) -> None:
    verdict = verdict_on("stops by protocol", changes, partitions)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def test_incremental_members_stop_only_what_moves_and_need_one_more_round_at_the_end() -> None:
    parameters = {"partitions": 12, "topics": 1, "changed_from": "cooperative"}
    changes = there_and_back((4,) * 6, rounds=3, generation=15)
    judged = judge(run("group-protocol-migration", "consumer", changes=changes, parameters=parameters))
    verdicts = {each.check: each.outcome for each in judged.verdicts}
    assert (verdicts["changes over and back"], verdicts["stops by protocol"]) == (YES, YES)
    judged = judge(run("group-protocol-migration", "consumer", changes=there_and_back(), parameters=parameters))
    verdicts = {each.check: each.outcome for each in judged.verdicts}
    assert (verdicts["changes over and back"], verdicts["stops by protocol"]) == (NO, NO)


@pytest.mark.parametrize(("attempts_failed", "outcome"), [(1, YES), (0, NO)])
def test_incremental_member_that_is_sent_back_to_join_needs_another_round(
    attempts_failed: int, outcome: VerdictOutcome
) -> None:
    parameters = {"partitions": 12, "topics": 1, "changed_from": "cooperative"}
    changes = there_and_back((4,) * 6, rounds=4, generation=16, attempts_failed=attempts_failed)
    judged = judge(run("group-protocol-migration", "consumer", changes=changes, parameters=parameters))
    assert {each.check: each.outcome for each in judged.verdicts}["changes over and back"] is outcome


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"commits": 60.0, "started_behind": 0.0}, YES),
        ({"commits": 60.0, "started_behind": 2.0}, NO),
        ({"commits": 0.0, "started_behind": 0.0}, UNKNOWN),
        ({"commits": 60.0, "started_behind": None}, UNKNOWN),
    ],
)
def test_offsets_belong_to_the_group(given: dict[str, float | None], outcome: VerdictOutcome) -> None:
    assert verdict_on("offsets kept", there_and_back(), **given).outcome is outcome
    assert verdict_on("offsets kept", [], **given).outcome is UNKNOWN


def test_report_has_a_row_for_each_restart() -> None:
    shown = run("group-protocol-migration", "consumer", changes=there_and_back(target="m3.2"))
    rows = changeovers([shown])
    assert len(rows) == len(STOPPED)
    assert rows[-1] == ("6: m3.2", ["classic", "14", "20", "0", "3", "1.50", "300"])
    assert changeovers([replace(shown, scenario="rolling-restart")]) == []
