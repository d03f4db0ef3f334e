"""Verdicts on who is a member and what each gets, on hand-written results."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.results.outcomes import VerdictOutcome
from comparison.results.refusals import Refusal
from comparison.results.run import Change, Copies, Wait
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, beside, rows_of
from tests.support.runs.results import change, refused

FEW = {"parameters": {"partitions": 4, "topics": 1}}
TIMERS = {"parameters": {"timers": {"session_ms": 3000, "heartbeat_ms": 1000}}}


def came_back(**given: Any) -> list[Change]:
    quiet = {"rounds": 0, "stopped": 0, "stopped_kept": 0, "moved": 0, "unowned_longest_s": 2.7, "members": 4}
    return [change("crash-and-return", **{**quiet, "target": "m2", **given})]


AWAY = {"parameters": {"away_ms": 2500}}


def wait(**given: Any) -> dict[str, list[Wait]]:
    usual = {"generation": 2, "from_ms": 2_000.0, "waited_for": "m2", "gone": True, "waiting": 4}
    return {"waits": [Wait(**{**usual, "longest_ms": 2_100.0, "total_ms": 6_000.0, **given})]}


DUPLICATED = change("duplicate", target="m2", members=4, rounds=0, stopped_kept=0)
UNNOTICED = change("duplicate", target="m2", members=4, rounds=0, moved=0, stopped_kept=0)
TOLD, REFUSED = refused("m2", "FENCED_INSTANCE_ID"), refused("m5", "UNRELEASED_INSTANCE_ID")
TAKEN = refused("m5", "NodeExists", api="create")


def told(changes: Change, *refusals: Refusal) -> dict[str, Any]:
    return {"changes": [changes], "refusals": list(refusals)}


def tried(**balances: int) -> list[Change]:
    """For each strategy a join to 5 and a leave to 4, after which shares differ by so much."""
    return [
        change(f"{name.replace('_', '-')} {what}", members=members, balance=balance, moved=3, moved_minimum=3)
        for name, balance in balances.items()
        for what, members in (("join", 5), ("leave", 4))
    ]


THREE_TOPICS = {"parameters": {"topics": 3, "partitions": 6}}
EVEN = tried(range=3, roundrobin=1, sticky=1, cooperative_sticky=1)


def unsubscribed(unowned_s: float, **given: Any) -> list[Change]:
    return [change("unsubscribe", members=3, unowned_longest_s=unowned_s, **given)]


def copies(**given: Any) -> Copies:
    usual = {"transactions": True, "records": 20, "copied": 20, "twice": 0}
    fenced = {
        "late_write": "INVALID_PRODUCER_EPOCH",
        "late_offset": "PRODUCER_FENCED",
        "late_commit": "PRODUCER_FENCED",
    }
    return Copies(**{**usual, **fenced, **given})


def copied(*found: Copies) -> dict[str, Any]:
    return {"copies": list(found)}


PLAIN = copies(transactions=False, twice=20, late_write="", late_offset="UNKNOWN_MEMBER_ID", late_commit="")

VERDICTS = {
    ("no member owns two", "idle-members", "eager"): beside(
        FEW,
        ([change(members=7, balance=1), change("leave", members=6, balance=1)], YES, "3 idle after join to 7, 2"),
        ([change(members=4, balance=0)], YES, "0 idle"),
        ([change(members=7, balance=2)], NO, "a member owned 2 partitions while another one owned none (join to"),
        ([change(members=7, balance=1), change("leave", members=6)], UNKNOWN, "who owned what"),
        ([change(members=3, balance=1)], UNKNOWN, "smaller than its topics"),
        ([change("form", members=6, balance=9)], UNKNOWN, "who owned what"),
    ),
    ("idle member stops the others", "idle-members", "eager"): beside(
        FEW,
        ([change(stopped=4, stopped_kept=4)], YES, ""),
        ([change(stopped=3, stopped_kept=3)], NO, ""),
        ([change("leave", stopped=4)], UNKNOWN, ""),
    ),
    ("idle member stops nobody", "idle-members", "cooperative"): beside(
        FEW,
        ([change(stopped=0, moved=0)], YES, ""),
        ([change(stopped=1, moved=0)], NO, ""),
        ([change(stopped=0, moved=1)], NO, ""),
        ([change(stopped=0, moved=0, rounds=0)], UNKNOWN, ""),
        ([change("leave", stopped=0, moved=0)], UNKNOWN, ""),
    ),
    ("only subscribers own", "mixed-subscriptions", "server"): [
        ([change(unsubscribed=0, balance=2), change("leave", unsubscribed=0, balance=3)], YES, "fewest: 2, 3"),
        ([change(unsubscribed=0), change("leave", members=4, unsubscribed=1)], NO, "1 partition owned by members"),
        ([change()], UNKNOWN, "who owned what"),
    ],
    ("back without a rebalance", "crash-and-return", "static"): beside(
        TIMERS,
        (came_back(), YES, "m2 was back as the same member; its partitions had no owner for 2.7 s; no rebalance"),
        (came_back(rounds=1, stopped=9), NO, "1 rebalance, 9 partitions of others stopped"),
        # The process was back late, as on a busy machine: its coordinator had heard nothing for a session.
        (came_back(rounds=2, stopped=9, silent_ms=3_420.0), UNKNOWN, "but it was back only after its session"),
        (came_back(rounds=2, stopped=9, silent_ms=2_400.0), NO, "2 rebalances, 9 partitions of others stopped"),
        (came_back(unowned_longest_s=0.0), UNKNOWN, "it was not missed"),
        (came_back(converge_ms=None), UNKNOWN, "does not show"),
        ([change()], UNKNOWN, "does not show"),
    ),
    ("spared by the delay", "crash-and-return", "delayed"): [
        (came_back(rounds=3, unowned_longest_s=9.0), YES, ""),
        (came_back(rounds=3, stopped=1), NO, ""),
        (came_back(rounds=3, moved=1), NO, ""),
        (came_back(rounds=1), UNKNOWN, ""),
        (came_back(converge_ms=None), UNKNOWN, ""),
    ],
    ("early return does not help", "crash-and-return", "zookeeper"): [
        ({"changes": came_back(unowned_longest_s=4.6), **AWAY}, YES, ""),
        ({"changes": came_back(unowned_longest_s=2.9), **AWAY}, NO, ""),
        ({"changes": came_back(unowned_longest_s=4.6, converge_ms=None), **AWAY}, UNKNOWN, ""),
        ({"changes": came_back(unowned_longest_s=4.6), "parameters": {}}, UNKNOWN, ""),
        ({"changes": [change()], **AWAY}, UNKNOWN, ""),
    ],
    ("waits for the dead member", "crash-and-return", "eager"): beside(
        {"changes": came_back()},
        (wait(), YES, ""),
        (wait(longest_ms=300.0), NO, ""),
        (wait(gone=False), NO, ""),
        (wait(waited_for="m3"), NO, ""),
        (wait(from_ms=500.0), UNKNOWN, ""),
        ({"waits": []}, UNKNOWN, ""),
    ),
    ("its place is gone", "crash-and-return-late", "static"): [
        (came_back(rounds=2, stopped=18), YES, ""),
        (came_back(rounds=0), NO, ""),
        ([change()], UNKNOWN, ""),
    ],
    ("given away after the delay", "crash-and-return-late", "delayed"): [
        (came_back(rounds=4, moved=3), YES, ""),
        (came_back(rounds=4), NO, ""),
        ([], UNKNOWN, ""),
    ],
    ("older one is fenced", "duplicate-instance-id", "static"): [
        (told(DUPLICATED, TOLD), YES, "m2 was refused with FENCED_INSTANCE_ID; no rebalance"),
        (told(DUPLICATED), NO, "m2 never learned"),
        (told(DUPLICATED, TOLD, refused("m5", "FENCED_INSTANCE_ID")), NO, "another one than m2"),
        (told(DUPLICATED, TOLD, refused("m2", "INVALID_GROUP_ID")), NO, "or for another reason"),
        (told(change("duplicate", target="m2", rounds=1), TOLD), NO, "1 rebalance"),
        (told(change(), TOLD), UNKNOWN, "no process was started"),
    ],
    ("newer one is refused", "duplicate-instance-id", "consumer"): [
        (told(UNNOTICED, REFUSED), YES, "m2 went on, no partition stopped"),
        (told(UNNOTICED), NO, "no process was refused"),
        (told(UNNOTICED, TOLD, REFUSED), NO, "the older one was refused with FENCED_INSTANCE_ID: m2"),
        (told(change("duplicate", target="m2", rounds=1), REFUSED), NO, "1 rebalance"),
        (told(change("duplicate", target="m2", rounds=0, moved=1), REFUSED), NO, "noticed nothing"),
        (told(change(), REFUSED), UNKNOWN, "no process was started"),
    ],
    ("newer one is refused", "duplicate-instance-id", "zookeeper"): [
        (told(UNNOTICED, TAKEN), YES, "refused with NodeExists: m5 (asked once, never in); m2 went on"),
        (told(UNNOTICED), NO, "no process was refused"),
    ],
    ("balance by strategy", "strategies", "eager"): beside(
        THREE_TOPICS,
        (EVEN, YES, "3 with range, 1 with roundrobin, 1 with sticky, 1 with cooperative-sticky"),
        (tried(range=1), NO, "1 instead of 3 (range join to 5)"),
        (tried(range=3, sticky=2), NO, "2 instead of 1 (sticky join to 5)"),
        ([*EVEN, change("range join")], UNKNOWN, "who owned what"),
        ([change("join")], UNKNOWN, "who owned what"),
    ),
    ("sticky moves the fewest", "strategies", "eager"): beside(
        THREE_TOPICS,
        (EVEN, YES, "6 with range, 6 with roundrobin, 6 with sticky, 6 with cooperative-sticky"),
        ([*EVEN, change("sticky leave", members=4, moved=5, moved_minimum=4)], NO, "5 moved, 4 would do"),
        ([*EVEN, change("range leave", members=4, moved=9, moved_minimum=4)], YES, "15 with range"),
        (tried(sticky=1), UNKNOWN, "who owned what"),
        ([*EVEN, change("sticky leave", moved_minimum=None)], UNKNOWN, "who owned what"),
    ),
    ("catches up", "scale-out-under-lag", "eager"): beside(
        {"lag_before": 700.0, "dip_records": 210.0, "break_even_s": 2.4, "lag_record_s": 3_000.0},
        ({}, YES, "700 records behind when members were added, then up to 210 fewer delivered; made up for after"),
        ({"dip_records": 0.0, "break_even_s": 0.0}, YES, "none to make up for"),
        ({"break_even_s": None}, NO, "not made up for"),
        ({"lag_before": 100.0}, UNKNOWN, "no lag to speak of"),
        ({"dip_records": None}, UNKNOWN, "does not show"),
    ),
    ("taken over at once", "unsubscribe", "eager"): beside(
        TIMERS,
        (unsubscribed(0.5), YES, ""),
        (unsubscribed(3.4), NO, ""),
        (unsubscribed(0.5, moved=0), UNKNOWN, ""),
        ({"changes": unsubscribed(0.5), "parameters": {}}, UNKNOWN, ""),
    ),
    ("missed although healthy", "unsubscribe", "static"): beside(
        TIMERS, (unsubscribed(2.2), YES, ""), (unsubscribed(0.5), NO, ""), ([change()], UNKNOWN, "")
    ),
    ("offsets carried over", "offset-migration", "eager"): beside(
        {"changes": [change("migration", members=3)], "zk_operations": {"setData": 60}},
        ({}, YES, "no delivery started behind one, 10 records delivered again"),
        ({"started_behind": 2.0}, NO, "2 deliveries started behind a commit"),
        ({"zk_operations": {}}, UNKNOWN, "no commit to ZooKeeper"),
        ({"commits": 0.0}, UNKNOWN, "does not show"),
        ([change()], UNKNOWN, "does not show"),
        ([change("migration", converge_ms=None)], UNKNOWN, "does not show"),
    ),
    ("fenced by epoch", "read-process-write", "eager"): [
        (copied(PLAIN, copies()), YES, "20 of 20 records copied, 0 of them twice; the late write: INVALID"),
        (copied(copies(twice=10)), NO, "10 of them twice"),
        (copied(copies(copied=10)), NO, "10 of 20 records copied"),
        (copied(copies(late_commit="")), NO, "the late commit: accepted"),
        (copied(copies(late_offset="")), NO, "the late offset: accepted"),
        (copied(PLAIN), UNKNOWN, "does not show"),
    ],
    ("copied twice", "read-process-write", "eager"): [
        (copied(PLAIN, copies()), YES, "20 of 20 records copied twice"),
        (copied(copies(transactions=False, twice=0)), NO, "0 of 20 records"),
        (copied(copies()), UNKNOWN, "does not show"),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(VERDICTS))
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)
