"""Verdicts on the group as a whole: who waits, what goes on, what survives its coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.verdicts import CHECKS, judge
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Term, Verdict, Wait
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, counted, run

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN


def designs_of(check: str, scenario: str) -> set[str]:
    return {
        design
        for design in DESIGN_NAMES
        if any(each.name == check and each.covers(run(scenario, design)) for each in CHECKS)
    }


@pytest.mark.parametrize(
    ("check", "scenario", "designs"),
    [
        ("no record lost", "rolling-restart", set(DESIGN_NAMES)),
        ("no stale write", "scale-out", set(DESIGN_NAMES) - {"zookeeper"}),
        ("no offset moved back", "subscription-change", set(DESIGN_NAMES) - {"zookeeper"}),
        ("never owned by two members", "rolling-restart", set(DESIGN_NAMES) - {"zookeeper"}),
        ("kept partitions never stop", "rolling-restart", {"cooperative", "delayed", "consumer"}),
        ("kept partitions never stop", "protocol-migration", set()),  # its first incarnations are eager
        ("kept partitions never stop", "pause", set()),
        ("delay honoured", "crash", {"delayed"}),
        ("generation kept", "coordinator-failover", set(DESIGN_NAMES) - {"zookeeper"}),
        ("no commit lost", "coordinator-failover", set(DESIGN_NAMES) - {"zookeeper"}),
        ("waits for the slow member", "slow-member", {"eager", "static"}),
        ("delivers while it waits", "slow-member", {"cooperative", "delayed"}),
        ("waits for nobody", "slow-member", {"consumer"}),
        ("two members deliver", "split-brain", {"zookeeper", "consumer"}),
        ("two members deliver", "split-brain-ensemble", {"zookeeper"}),
        ("counts", "join", set(DESIGN_NAMES)),
        ("counts", "rolling-restart", {"server", "eager", "static", "cooperative", "consumer"}),
        ("counts", "scale-out", set()),
    ],
)
def test_checks_apply_to_designs_by_scenario(check: str, scenario: str, designs: set[str]) -> None:
    assert designs_of(check, scenario) == designs


def verdict_on(check: str, scenario: str, design: str, **given: Any) -> Verdict:
    (verdict,) = [each for each in judge(run(scenario, design, **given)).verdicts if each.check == check]
    return verdict


def kept(shown: int, delivered: int) -> Change:
    return change(kept=shown, kept_shown=shown, kept_delivered=delivered)


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ([kept(10, 10)], YES, "10 kept; all 10 in long rebalances went on delivering"),
        ([kept(10, 9)], NO, "1 of 10 delivered nothing during a long rebalance"),
        ([kept(10, 10), change(stopped_kept=2)], NO, "2 partitions stopped and given back"),
        ([change("form", stopped_kept=2), kept(1, 1)], YES, "1 kept"),
        ([change(kept=9, kept_shown=0, kept_delivered=0)], YES, "9 kept; the rebalances were too short"),
        ([kept(0, 0)], UNKNOWN, "no partition was kept"),
        ([change()], UNKNOWN, "no partition was kept"),
    ],
)
def test_kept_partitions_never_stop(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("kept partitions never stop", "join", "cooperative", changes=changes)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(("seconds", "outcome"), [(0.0, YES), (0.5, NO), (None, UNKNOWN)])
def test_partition_never_has_two_owners(seconds: float | None, outcome: VerdictOutcome) -> None:
    verdict = verdict_on("never owned by two members", "rolling-restart", "eager", double_owned_partition_s=seconds)
    assert verdict.outcome is outcome


def gone(**given: Any) -> list[Change]:
    usual = {"members": 3, "stopped": 0, "rounds": 2, "unowned_longest_s": 6.2}
    return [change("crash", **{**usual, **given})]


TIMERS = {"timers": {"session_ms": 3000, "heartbeat_ms": 1000, "delay_ms": 3000}}


@pytest.mark.parametrize(
    ("changes", "parameters", "outcome", "reason"),
    [
        (gone(), TIMERS, YES, "6.2 s, the delay is 3 s"),
        (gone(unowned_longest_s=2.9), TIMERS, YES, "2.9 s"),
        (gone(unowned_longest_s=1.5), TIMERS, NO, "1.5 s"),
        (gone(unowned_longest_s=30.0), TIMERS, NO, "30.0 s"),
        (gone(stopped=3), TIMERS, NO, "3 partitions taken from members that stayed"),
        (gone(rounds=1), TIMERS, UNKNOWN, "one rebalance only"),
        (gone(), {}, UNKNOWN, "the configured delay"),
        ([change("join")], TIMERS, UNKNOWN, "does not show a member leaving"),
    ],
)
def test_partitions_of_a_lost_member_stay_unowned_for_the_delay(
    changes: list[Change], parameters: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    verdict = verdict_on("delay honoured", "crash", "delayed", changes=changes, parameters=parameters)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def term(broker: str, last_ms: float | None, commits: int = 9, from_ms: float = 0.0) -> Term:
    return Term(group="g", broker=broker, leader_epoch=0, from_ms=from_ms, commits=commits, last_ms=last_ms, late=False)


KILLED = change("failover", target="broker-2", rounds=0, stopped=0)
REJOINED = change("failover", target="broker-2", rounds=1)
TAKEN_OVER = {"coordinators": [term("broker-2", 900.0), term("broker-1", 9_000.0)]}
TAKEN_OVER_LATE = {"coordinators": [term("broker-2", 900.0), term("broker-1", 9_000.0, from_ms=KILLED.from_ms + 2_500)]}


@pytest.mark.parametrize(
    ("check", "given", "outcome", "reason"),
    [
        (
            "generation kept",
            {"changes": [KILLED], **TAKEN_OVER},
            YES,
            "broker-1 took over the group; no new generation",
        ),
        (
            "generation kept",
            {"changes": [REJOINED], **TAKEN_OVER},
            NO,
            "1 new generation began, 12 partitions stopped",
        ),
        (
            "generation kept",
            {"changes": [REJOINED], **TAKEN_OVER_LATE, "parameters": TIMERS},
            UNKNOWN,
            "after 2.5 s, and members with sessions of 3 s may have given up before: 1 new generation began",
        ),
        (
            "generation kept",
            {"changes": [REJOINED], **TAKEN_OVER, "parameters": TIMERS},
            NO,
            "broker-1 took over the group; 1 new generation began, 12 partitions stopped",
        ),
        (
            "generation kept",  # server: the members' sessions are with ZooKeeper
            {"changes": [REJOINED], **TAKEN_OVER_LATE, "parameters": {"timers": {"session_ms": 3000}}},
            NO,
            "1 new generation began",
        ),
        ("generation kept", {"changes": [REJOINED], "parameters": TIMERS}, NO, "no broker was seen"),
        ("generation kept", {"changes": [KILLED]}, UNKNOWN, "no broker was seen"),
        ("generation kept", {}, UNKNOWN, "no coordinator was killed"),
        ("no commit lost", {"changes": [KILLED], **TAKEN_OVER}, YES, "60 commits accepted, none lost"),
        ("no commit lost", {"changes": [KILLED], **TAKEN_OVER, "started_behind": 1.0}, NO, "1 delivery started"),
        ("no commit lost", {"changes": [KILLED], **TAKEN_OVER, "started_behind": 2.0}, NO, "2 deliveries started"),
        ("no commit lost", {"changes": [KILLED], **TAKEN_OVER, "moved_back": 1.0}, NO, "1 offset moved back"),
        (
            "no commit lost",
            {"changes": [KILLED], **TAKEN_OVER, "started_behind": None},
            UNKNOWN,
            "no commit was traced",
        ),
        (
            "no commit lost",
            {"changes": [KILLED], "coordinators": [term("broker-2", 900.0)]},
            UNKNOWN,
            "no broker was seen",
        ),
        (
            "no commit lost",
            {"changes": [KILLED], "coordinators": [term("broker-1", None, 0)]},
            UNKNOWN,
            "no broker was seen",
        ),
    ],
)
def test_group_survives_the_crash_of_its_coordinator(
    check: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    verdict = verdict_on(check, "coordinator-failover", "static", **given)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def wait(**given: Any) -> Wait:
    usual: dict[str, Any] = {
        "generation": 7,
        "from_ms": 1_500.0,
        "waited_for": "m2",
        "gone": False,
        "waiting": 4,
        "longest_ms": 6_000.0,
        "total_ms": 20_000.0,
    }
    return Wait(**{**usual, **given})


def slowed(stalled_s: float | None, *, healed_ms: float | None = 6_000.0, **given: Any) -> list[Change]:
    slow = change("slow", members=None, from_ms=500.0, healed_ms=healed_ms, target="m2", stalled_s=0.0)
    return [slow, change("join", from_ms=1_000.0, stalled_s=stalled_s, **given)]


@pytest.mark.parametrize(
    ("design", "given", "outcome", "reason"),
    [
        (
            "eager",
            {"changes": slowed(5.5), "waits": [wait()]},
            YES,
            "4 members waited up to 6.0 s for m2, which joined",
        ),
        ("eager", {"changes": slowed(5.5), "waits": [wait(gone=True)]}, YES, "which never joined"),
        ("eager", {"changes": slowed(5.5), "waits": [wait(), wait(longest_ms=9.0, waited_for="m3")]}, YES, "for m2"),
        ("eager", {"changes": slowed(1.0), "waits": [wait()]}, NO, "nothing was delivered for 1.0 s"),
        ("eager", {"changes": slowed(0.4), "waits": [wait(longest_ms=500.0)]}, NO, "0.5 s"),
        ("eager", {"changes": slowed(5.5), "waits": [wait(waited_for="m1")]}, NO, "but m2 was the slow member"),
        ("eager", {"changes": slowed(5.5)}, UNKNOWN, "no generation began"),
        ("eager", {"changes": slowed(5.5), "waits": [wait(from_ms=100.0)]}, UNKNOWN, "no generation began"),
        ("eager", {"waits": [wait()]}, UNKNOWN, "no member was slowed down"),
        ("delayed", {"changes": slowed(0.3), "waits": [wait()]}, YES, "nothing was delivered for 0.3 s"),
        ("delayed", {"changes": slowed(3.0), "waits": [wait()]}, NO, "nothing was delivered for 3.0 s"),
        ("delayed", {"changes": slowed(0.3, stopped_kept=1), "waits": [wait()]}, NO, "1 partition stopped and given"),
        ("delayed", {"changes": slowed(0.3), "waits": [wait(longest_ms=500.0)]}, UNKNOWN, "too short to show"),
        ("delayed", {"changes": slowed(None), "waits": [wait()]}, UNKNOWN, "too short to show"),
        ("delayed", {"waits": [wait()]}, UNKNOWN, "no member was slowed down"),
    ],
)
def test_group_waits_for_its_slow_member(
    design: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    check = "waits for the slow member" if design == "eager" else "delivers while it waits"
    verdict = verdict_on(check, "slow-member", design, **given)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (slowed(0.2), YES, "m2 was slow for 6.0 s; 1 rebalance meanwhile, nothing was delivered for 0.2 s"),
        (slowed(3.0), NO, "nothing was delivered for 3.0 s"),
        (slowed(0.2, stopped_kept=2), NO, "2 partitions stopped and given back"),
        (slowed(0.2, rounds=0), UNKNOWN, "no rebalance began under load"),
        (slowed(None), UNKNOWN, "no rebalance began under load"),
        (slowed(0.2)[:1], UNKNOWN, "no rebalance began under load"),
        (slowed(0.0, healed_ms=500.0), UNKNOWN, "too short to show anything"),
        (slowed(0.2, healed_ms=None), UNKNOWN, "does not show a slow member from start to end"),
        ([], UNKNOWN, "does not show a slow member"),
    ],
)
def test_group_without_a_barrier_does_not_wait(changes: list[Change], outcome: VerdictOutcome, reason: str) -> None:
    verdict = verdict_on("waits for nobody", "slow-member", "consumer", changes=changes)
    assert verdict.outcome is outcome, verdict.reason
    assert reason in verdict.reason


def test_counts_of_a_rolling_restart_are_checked() -> None:
    right = [change("restart", round=n, counted=[counted("generations", 2, 2)]) for n in (1, 2)]
    wrong = [*right, change("restart", round=3, counted=[counted("generations", 3, 2)])]
    kept = verdict_on("counts", "rolling-restart", "eager", changes=right)
    assert (kept.outcome, kept.reason) == (YES, "2 restarts: 4 generations")
    right.append(change("restart", round=3, counted=[counted("stopped", 9, 9)]))
    kept = verdict_on("counts", "rolling-restart", "cooperative", changes=right)
    assert kept.reason == "3 restarts: 4 generations in 2 of them, 9 stopped in 1 of them"
    assert "3 generations instead of 2" in verdict_on("counts", "rolling-restart", "eager", changes=wrong).reason
