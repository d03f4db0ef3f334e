"""Verdicts on the group as a whole: who waits, what goes on, what survives its coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Term, Wait
from tests.comparison.pipeline.figures.judged import (
    NO,
    PARAMETERS,
    UNKNOWN,
    YES,
    assert_verdict,
    beside,
    rows_of,
    verdict_on,
)
from tests.support.runs.results import change, counted


def kept(shown: int, delivered: int) -> Change:
    return change(kept=shown, kept_shown=shown, kept_delivered=delivered)


def gone(**given: Any) -> list[Change]:
    usual = {"members": 3, "stopped": 0, "rounds": 2, "unowned_longest_s": 6.2}
    return [change("crash", **{**usual, **given})]


TIMERS = {"timers": {"session_ms": 3000, "heartbeat_ms": 1000, "delay_ms": 3000}}
#: Of members of `server`, whose sessions are with ZooKeeper.
SERVER_TIMERS = {"timers": {"session_ms": 3000}}


def term(broker: str, last_ms: float | None, commits: int = 9, from_ms: float = 0.0) -> Term:
    return Term(group="g", broker=broker, leader_epoch=0, from_ms=from_ms, commits=commits, last_ms=last_ms, late=False)


KILLED = change("failover", target="broker-2", rounds=0, stopped=0)
REJOINED = change("failover", target="broker-2", rounds=1)
TAKEN_OVER = {"coordinators": [term("broker-2", 900.0), term("broker-1", 9_000.0)]}
TAKEN_OVER_LATE = {"coordinators": [term("broker-2", 900.0), term("broker-1", 9_000.0, from_ms=KILLED.from_ms + 2_500)]}
CONTINUED = {"changes": [KILLED], **TAKEN_OVER}
BEGAN_AGAIN = {"changes": [REJOINED], **TAKEN_OVER}
BEGAN_AGAIN_LATE = {"changes": [REJOINED], **TAKEN_OVER_LATE}


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


def waited(changes: list[Change], *waits: Wait) -> dict[str, Any]:
    return {"changes": changes, "waits": list(waits)}


VERDICTS = {
    ("kept partitions never stop", "join", "cooperative"): [
        ([kept(10, 10)], YES, "10 kept; all 10 in long rebalances went on delivering"),
        ([kept(10, 9)], NO, "1 of 10 delivered nothing during a long rebalance"),
        ([kept(10, 10), change(stopped_kept=2)], NO, "2 partitions stopped and given back"),
        ([change("form", stopped_kept=2), kept(1, 1)], YES, "1 kept"),
        ([change(kept=9, kept_shown=0, kept_delivered=0)], YES, "9 kept; the rebalances were too short"),
        ([kept(0, 0)], UNKNOWN, "no partition was kept"),
        ([change()], UNKNOWN, "no partition was kept"),
    ],
    ("never owned by two members", "rolling-restart", "eager"): [
        ({"double_owned_partition_s": 0.0}, YES, ""),
        ({"double_owned_partition_s": 0.5}, NO, ""),
        ({"double_owned_partition_s": None}, UNKNOWN, ""),
    ],
    ("delay honoured", "crash", "delayed"): beside(
        {"parameters": TIMERS},
        (gone(), YES, "6.2 s, the delay is 3 s"),
        (gone(unowned_longest_s=2.9), YES, "2.9 s"),
        (gone(unowned_longest_s=1.5), NO, "1.5 s"),
        (gone(unowned_longest_s=30.0), NO, "30.0 s"),
        (gone(stopped=3), NO, "3 partitions taken from members that stayed"),
        (gone(rounds=1), UNKNOWN, "one rebalance only"),
        ({"changes": gone(), "parameters": {}}, UNKNOWN, "the configured delay"),
        ([change("join")], UNKNOWN, "does not show a member leaving"),
    ),
    ("generation kept", "coordinator-failover", "static"): [
        (CONTINUED, YES, "broker-1 took over the group; no new generation"),
        (BEGAN_AGAIN, NO, "1 new generation began, 12 partitions stopped"),
        (
            {**BEGAN_AGAIN_LATE, "parameters": TIMERS},
            UNKNOWN,
            "after 2.5 s, and members with sessions of 3 s may have given up before: 1 new generation began",
        ),
        (
            {**BEGAN_AGAIN, "parameters": TIMERS},
            NO,
            "broker-1 took over the group; 1 new generation began, 12 partitions stopped",
        ),
        ({**BEGAN_AGAIN_LATE, "parameters": SERVER_TIMERS}, NO, "1 new generation began"),
        ({"changes": [REJOINED], "parameters": TIMERS}, NO, "no broker was seen"),
        ([KILLED], UNKNOWN, "no broker was seen"),
        ({}, UNKNOWN, "no coordinator was killed"),
    ],
    ("no commit lost", "coordinator-failover", "static"): beside(
        CONTINUED,
        ({}, YES, "60 commits accepted, none lost"),
        ({"started_behind": 1.0}, NO, "1 delivery started"),
        ({"started_behind": 2.0}, NO, "2 deliveries started"),
        ({"moved_back": 1.0}, NO, "1 offset moved back"),
        ({"started_behind": None}, UNKNOWN, "no commit was traced"),
        ({"coordinators": [term("broker-2", 900.0)]}, UNKNOWN, "no broker was seen"),
        ({"coordinators": [term("broker-1", None, 0)]}, UNKNOWN, "no broker was seen"),
    ),
    ("waits for the slow member", "slow-member", "eager"): [
        (waited(slowed(5.5), wait()), YES, "4 members waited up to 6.0 s for m2, which joined"),
        (waited(slowed(5.5), wait(gone=True)), YES, "which never joined"),
        (waited(slowed(5.5), wait(), wait(longest_ms=9.0, waited_for="m3")), YES, "for m2"),
        (waited(slowed(1.0), wait()), NO, "nothing was delivered for 1.0 s"),
        (waited(slowed(0.4), wait(longest_ms=500.0)), NO, "0.5 s"),
        (waited(slowed(5.5), wait(waited_for="m1")), NO, "but m2 was the slow member"),
        (waited(slowed(5.5)), UNKNOWN, "no generation began"),
        (waited(slowed(5.5), wait(from_ms=100.0)), UNKNOWN, "no generation began"),
        ({"waits": [wait()]}, UNKNOWN, "no member was slowed down"),
    ],
    ("delivers while it waits", "slow-member", "delayed"): [
        (waited(slowed(0.3), wait()), YES, "nothing was delivered for 0.3 s"),
        (waited(slowed(3.0), wait()), NO, "nothing was delivered for 3.0 s"),
        (waited(slowed(0.3, stopped_kept=1), wait()), NO, "1 partition stopped and given"),
        (waited(slowed(0.3), wait(longest_ms=500.0)), UNKNOWN, "too short to show"),
        (waited(slowed(None), wait()), UNKNOWN, "too short to show"),
        ({"waits": [wait()]}, UNKNOWN, "no member was slowed down"),
    ],
    ("waits for nobody", "slow-member", "consumer"): [
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
}


@pytest.mark.parametrize(PARAMETERS, rows_of(VERDICTS))
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)


def test_counts_of_a_rolling_restart_are_checked() -> None:
    right = [change("restart", round=n, counted=[counted("generations", 2, 2)]) for n in (1, 2)]
    wrong = [*right, change("restart", round=3, counted=[counted("generations", 3, 2)])]
    assert verdict_on("counts", "rolling-restart", "eager", changes=right) == (YES, "2 restarts: 4 generations")
    right.append(change("restart", round=3, counted=[counted("stopped", 9, 9)]))
    _, reason = verdict_on("counts", "rolling-restart", "cooperative", changes=right)
    assert reason == "3 restarts: 4 generations in 2 of them, 9 stopped in 1 of them"
    _, reason = verdict_on("counts", "rolling-restart", "eager", changes=wrong)
    assert "3 generations instead of 2" in reason
