"""Verdicts on who is a member and what each gets, on hand-written results."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.verdicts import CHECKS, judge
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Copies, Verdict, Wait
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, run

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN
STOPPING = {"zookeeper", "server", "eager", "static"}


def designs_of(check: str, scenario: str) -> set[str]:
    return {
        design
        for design in DESIGN_NAMES
        if any(each.name == check and each.covers(run(scenario, design)) for each in CHECKS)
    }


def verdict_on(check: str, scenario: str, design: str, **given: Any) -> Verdict:
    (verdict,) = [each for each in judge(run(scenario, design, **given)).verdicts if each.check == check]
    return verdict


@pytest.mark.parametrize(
    ("check", "scenario", "designs"),
    [
        ("no member owns two", "idle-members", set(DESIGN_NAMES)),
        ("idle member stops the others", "idle-members", STOPPING),
        ("idle member stops nobody", "idle-members", {"cooperative", "delayed", "consumer"}),
        ("counts", "idle-members", set(DESIGN_NAMES)),
        ("only subscribers own", "mixed-subscriptions", set(DESIGN_NAMES)),
        ("only subscribers own", "join", set()),
        ("counts", "mixed-subscriptions", set()),
        ("kept partitions never stop", "unsubscribe", {"cooperative", "delayed", "consumer"}),
        ("kept partitions never stop", "scale-out-under-lag", set()),
        ("offsets carried over", "offset-migration", {"eager"}),
    ],
)
def test_checks_apply_to_designs_by_scenario(check: str, scenario: str, designs: set[str]) -> None:
    assert designs_of(check, scenario) == designs


FEW = {"partitions": 4, "topics": 1}


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ([change(members=7, balance=1), change("leave", members=6, balance=1)], YES, "3 idle after join to 7, 2 idle"),
        ([change(members=4, balance=0)], YES, "0 idle"),
        ([change(members=7, balance=2)], NO, "a member owned 2 partitions while another one owned none (join to 7)"),
        ([change(members=7, balance=1), change("leave", members=6)], UNKNOWN, "who owned what"),
        ([change(members=3, balance=1)], UNKNOWN, "smaller than its topics"),
        ([change("form", members=6, balance=9)], UNKNOWN, "who owned what"),
    ],
)
def test_no_member_owns_two_while_others_are_idle(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("no member owns two", "idle-members", "eager", changes=changes, parameters=FEW)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([change(stopped=4, stopped_kept=4)], YES),
        ([change(stopped=3, stopped_kept=3)], NO),
        ([change("leave", stopped=4)], UNKNOWN),
    ],
)
def test_member_that_gets_nothing_stops_all_others(changes: list[Change], outcome: VerdictOutcome) -> None:
    verdict = verdict_on("idle member stops the others", "idle-members", "eager", changes=changes, parameters=FEW)
    assert verdict.outcome is outcome, verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([change(stopped=0, moved=0)], YES),
        ([change(stopped=1, moved=0)], NO),
        ([change(stopped=0, moved=1)], NO),
        ([change(stopped=0, moved=0, rounds=0)], UNKNOWN),
        ([change("leave", stopped=0, moved=0)], UNKNOWN),
    ],
)
def test_member_that_gets_nothing_stops_nobody(changes: list[Change], outcome: VerdictOutcome) -> None:
    verdict = verdict_on("idle member stops nobody", "idle-members", "cooperative", changes=changes, parameters=FEW)
    assert verdict.outcome is outcome, verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ([change(unsubscribed=0, balance=2), change("leave", unsubscribed=0, balance=3)], YES, "less fewest: 2, 3"),
        ([change(unsubscribed=0), change("leave", members=4, unsubscribed=1)], NO, "1 partition owned by members"),
        ([change()], UNKNOWN, "who owned what"),
    ],
)
def test_only_subscribers_own(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("only subscribers own", "mixed-subscriptions", "server", changes=changes)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def came_back(**given: Any) -> list[Change]:
    quiet = {"rounds": 0, "stopped": 0, "stopped_kept": 0, "moved": 0, "unowned_longest_s": 2.7, "members": 4}
    return [change("crash-and-return", **{**quiet, "target": "m2", **given})]


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (came_back(), YES, "m2 was back as the same member; its partitions had no owner for 2.7 s; no rebalance"),
        (came_back(rounds=1, stopped=9), NO, "1 rebalance, 9 partitions of others stopped"),
        # The process was back late, as on a busy machine: its coordinator had heard nothing for a session.
        (came_back(rounds=2, stopped=9, silent_ms=3_420.0), UNKNOWN, "but it was back only after its session"),
        (came_back(rounds=2, stopped=9, silent_ms=2_400.0), NO, "2 rebalances, 9 partitions of others stopped"),
        (came_back(unowned_longest_s=0.0), UNKNOWN, "it was not missed"),
        (came_back(converge_ms=None), UNKNOWN, "does not show"),
        ([change()], UNKNOWN, "does not show"),
    ],
)
def test_static_member_comes_back_without_a_rebalance(
    changes: list[Change], outcome: VerdictOutcome, reason: str
) -> None:
    parameters = {"timers": {"session_ms": 3000}}
    verdict = verdict_on(
        "back without a rebalance", "crash-and-return", "static", changes=changes, parameters=parameters
    )
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        (came_back(rounds=3, unowned_longest_s=9.0), YES),
        (came_back(rounds=3, stopped=1), NO),
        (came_back(rounds=3, moved=1), NO),
        (came_back(rounds=1), UNKNOWN),
        (came_back(converge_ms=None), UNKNOWN),
    ],
)
def test_delay_spares_the_others_and_keeps_the_partitions_of_the_one_that_is_back(
    changes: list[Change], outcome: VerdictOutcome
) -> None:
    verdict = verdict_on("spared by the delay", "crash-and-return", "delayed", changes=changes)
    assert verdict.outcome is outcome, verdict.reason


AWAY = {"away_ms": 2500}


@pytest.mark.parametrize(
    ("changes", "parameters", "outcome"),
    [
        (came_back(unowned_longest_s=4.6), AWAY, YES),
        (came_back(unowned_longest_s=2.9), AWAY, NO),
        (came_back(unowned_longest_s=4.6, converge_ms=None), AWAY, UNKNOWN),
        (came_back(unowned_longest_s=4.6), {}, UNKNOWN),
        ([change()], AWAY, UNKNOWN),
    ],
)
def test_partitions_wait_for_the_old_session_of_a_nameless_member(
    changes: list[Change], parameters: dict[str, Any], outcome: VerdictOutcome
) -> None:
    verdict = verdict_on(
        "early return does not help", "crash-and-return", "zookeeper", changes=changes, parameters=parameters
    )
    assert verdict.outcome is outcome, verdict.reason


def wait(**given: Any) -> Wait:
    usual = {"generation": 2, "from_ms": 2_000.0, "waited_for": "m2", "gone": True, "waiting": 4}
    return Wait(**{**usual, "longest_ms": 2_100.0, "total_ms": 6_000.0, **given})


@pytest.mark.parametrize(
    ("waits", "outcome"),
    [
        ([wait()], YES),
        ([wait(longest_ms=300.0)], NO),
        ([wait(gone=False)], NO),
        ([wait(waited_for="m3")], NO),
        ([wait(from_ms=500.0)], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_group_waits_for_the_member_that_died(waits: list[Wait], outcome: VerdictOutcome) -> None:
    verdict = verdict_on("waits for the dead member", "crash-and-return", "eager", changes=came_back(), waits=waits)
    assert verdict.outcome is outcome, verdict.reason


@pytest.mark.parametrize(
    ("check", "design", "changes", "outcome"),
    [
        ("its place is gone", "static", came_back(rounds=2, stopped=18), YES),
        ("its place is gone", "static", came_back(rounds=0), NO),
        ("its place is gone", "static", [change()], UNKNOWN),
        ("given away after the delay", "delayed", came_back(rounds=4, moved=3), YES),
        ("given away after the delay", "delayed", came_back(rounds=4), NO),
        ("given away after the delay", "delayed", [], UNKNOWN),
    ],
)
def test_member_that_is_back_too_late_has_lost_its_place(
    check: str, design: str, changes: list[Change], outcome: VerdictOutcome
) -> None:
    assert verdict_on(check, "crash-and-return-late", design, changes=changes).outcome is outcome


DUPLICATED = change("duplicate", target="m2", members=4, rounds=0, stopped_kept=0)
TOLD = "m2: GroupRefused: group 'lab' refused Heartbeat with FENCED_INSTANCE_ID"


@pytest.mark.parametrize(
    ("changes", "failures", "outcome", "reason"),
    [
        ([DUPLICATED], [TOLD, TOLD], YES, "m2 was refused with FENCED_INSTANCE_ID; no rebalance"),
        ([DUPLICATED], [], NO, "m2 never learned"),
        ([DUPLICATED], [TOLD, TOLD.replace("m2", "m5")], NO, "another one than m2"),
        ([change("duplicate", target="m2", rounds=1)], [TOLD], NO, "1 rebalance"),
        ([change()], [TOLD], UNKNOWN, "no process was started"),
    ],
)
def test_older_process_with_the_same_name_is_fenced(
    changes: list[Change], failures: list[str], outcome: VerdictOutcome, reason: str
) -> None:
    verdict = verdict_on("older one is fenced", "duplicate-instance-id", "static", changes=changes, failures=failures)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


REFUSED = "m5: GroupRefused: group 'lab' refused ConsumerGroupHeartbeat with UNRELEASED_INSTANCE_ID"

UNNOTICED = change("duplicate", target="m2", members=4, rounds=0, moved=0, stopped_kept=0)


@pytest.mark.parametrize(
    ("changes", "failures", "outcome", "reason"),
    [
        ([UNNOTICED], [REFUSED], YES, "m2 went on, no partition stopped"),
        ([UNNOTICED], [], NO, "no process was refused"),
        ([UNNOTICED], [TOLD, REFUSED], NO, "the older one failed: m2"),
        ([change("duplicate", target="m2", rounds=1)], [REFUSED], NO, "1 rebalance"),
        ([change("duplicate", target="m2", rounds=0, moved=1)], [REFUSED], NO, "noticed nothing"),
        ([change()], [REFUSED], UNKNOWN, "no process was started"),
    ],
)
def test_newer_process_with_the_same_name_is_refused_in_consumer(
    changes: list[Change], failures: list[str], outcome: VerdictOutcome, reason: str
) -> None:
    given = {"changes": changes, "failures": failures}
    verdict = verdict_on("newer one is refused", "duplicate-instance-id", "consumer", **given)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def tried(**balances: int) -> list[Change]:
    """For each strategy a join to 5 and a leave to 4, after which shares differ by so much."""
    return [
        change(f"{name.replace('_', '-')} {what}", members=members, balance=balance, moved=3, moved_minimum=3)
        for name, balance in balances.items()
        for what, members in (("join", 5), ("leave", 4))
    ]


THREE_TOPICS = {"topics": 3, "partitions": 6}
EVEN = tried(range=3, roundrobin=1, sticky=1, cooperative_sticky=1)


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (EVEN, YES, "3 with range, 1 with roundrobin, 1 with sticky, 1 with cooperative-sticky"),
        (tried(range=1), NO, "1 instead of 3 (range join to 5)"),
        (tried(range=3, sticky=2), NO, "2 instead of 1 (sticky join to 5)"),
        ([*EVEN, change("range join")], UNKNOWN, "who owned what"),
        ([change("join")], UNKNOWN, "who owned what"),
    ],
)
def test_shares_are_those_of_the_strategys_rule(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("balance by strategy", "strategies", "eager", changes=changes, parameters=THREE_TOPICS)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (EVEN, YES, "6 with range, 6 with roundrobin, 6 with sticky, 6 with cooperative-sticky"),
        ([*EVEN, change("sticky leave", members=4, moved=5, moved_minimum=4)], NO, "5 moved, 4 would do"),
        ([*EVEN, change("range leave", members=4, moved=9, moved_minimum=4)], YES, "15 with range"),
        (tried(sticky=1), UNKNOWN, "who owned what"),
        ([*EVEN, change("sticky leave", moved_minimum=None)], UNKNOWN, "who owned what"),
    ],
)
def test_sticky_strategies_move_the_fewest(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("sticky moves the fewest", "strategies", "eager", changes=changes, parameters=THREE_TOPICS)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("figures", "outcome", "reason"),
    [
        ({}, YES, "700 records behind when members were added, then up to 210 fewer delivered; made up for after 2.4"),
        ({"dip_records": 0.0, "break_even_s": 0.0}, YES, "none to make up for"),
        ({"break_even_s": None}, NO, "not made up for"),
        ({"lag_before": 100.0}, UNKNOWN, "no lag to speak of"),
        ({"dip_records": None}, UNKNOWN, "does not show"),
    ],
)
def test_members_added_under_lag_catch_up(
    figures: dict[str, float | None], outcome: VerdictOutcome, reason: str
) -> None:
    given = {"lag_before": 700.0, "dip_records": 210.0, "break_even_s": 2.4, "lag_record_s": 3_000.0, **figures}
    verdict = verdict_on("catches up", "scale-out-under-lag", "eager", **given)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


TIMERS = {"timers": {"session_ms": 3000, "heartbeat_ms": 1000}}


def unsubscribed(unowned_s: float, **given: Any) -> list[Change]:
    return [change("unsubscribe", members=3, unowned_longest_s=unowned_s, **given)]


@pytest.mark.parametrize(
    ("check", "design", "changes", "parameters", "outcome"),
    [
        ("taken over at once", "eager", unsubscribed(0.5), TIMERS, YES),
        ("taken over at once", "eager", unsubscribed(3.4), TIMERS, NO),
        ("taken over at once", "eager", unsubscribed(0.5, moved=0), TIMERS, UNKNOWN),
        ("taken over at once", "eager", unsubscribed(0.5), {}, UNKNOWN),
        ("missed although healthy", "static", unsubscribed(2.2), TIMERS, YES),
        ("missed although healthy", "static", unsubscribed(0.5), TIMERS, NO),
        ("missed although healthy", "static", [change()], TIMERS, UNKNOWN),
    ],
)
def test_member_that_unsubscribes_leaves_unless_it_has_a_name(
    check: str, design: str, changes: list[Change], parameters: dict[str, Any], outcome: VerdictOutcome
) -> None:
    verdict = verdict_on(check, "unsubscribe", design, changes=changes, parameters=parameters)
    assert verdict.outcome is outcome, verdict.reason


MIGRATED = change("migration", members=3)


@pytest.mark.parametrize(
    ("given", "outcome", "reason"),
    [
        ({}, YES, "no delivery started behind one, 10 records delivered again"),
        ({"started_behind": 2.0}, NO, "2 deliveries started behind a commit"),
        ({"zk_operations": {}}, UNKNOWN, "no commit to ZooKeeper"),
        ({"commits": 0.0}, UNKNOWN, "does not show"),
        ({"changes": [change()]}, UNKNOWN, "does not show"),
        ({"changes": [change("migration", converge_ms=None)]}, UNKNOWN, "does not show"),
    ],
)
def test_members_of_the_new_protocol_go_on_where_the_old_ones_committed(
    given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    usual = {"changes": [MIGRATED], "zk_operations": {"setData": 60}}
    verdict = verdict_on("offsets carried over", "offset-migration", "eager", **{**usual, **given})
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def copies(**given: Any) -> Copies:
    usual = {"transactions": True, "records": 20, "copied": 20, "twice": 0}
    fenced = {
        "late_write": "INVALID_PRODUCER_EPOCH",
        "late_offset": "PRODUCER_FENCED",
        "late_commit": "PRODUCER_FENCED",
    }
    return Copies(**{**usual, **fenced, **given})


PLAIN = copies(transactions=False, twice=20, late_write="", late_offset="UNKNOWN_MEMBER_ID", late_commit="")


@pytest.mark.parametrize(
    ("check", "found", "outcome", "reason"),
    [
        (
            "fenced by epoch",
            [PLAIN, copies()],
            YES,
            "20 of 20 records copied, 0 of them twice; the late write: INVALID",
        ),
        ("fenced by epoch", [copies(twice=10)], NO, "10 of them twice"),
        ("fenced by epoch", [copies(copied=10)], NO, "10 of 20 records copied"),
        ("fenced by epoch", [copies(late_commit="")], NO, "the late commit: accepted"),
        ("fenced by epoch", [copies(late_offset="")], NO, "the late offset: accepted"),
        ("fenced by epoch", [PLAIN], UNKNOWN, "does not show"),
        ("copied twice", [PLAIN, copies()], YES, "20 of 20 records copied twice"),
        ("copied twice", [copies(transactions=False, twice=0)], NO, "0 of 20 records"),
        ("copied twice", [copies()], UNKNOWN, "does not show"),
    ],
)
def test_only_a_transactional_zombie_is_fenced(
    check: str, found: list[Copies], outcome: VerdictOutcome, reason: str
) -> None:
    verdict = verdict_on(check, "read-process-write", "eager", copies=found)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason
