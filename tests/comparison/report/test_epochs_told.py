"""A rebalance of a consumer group, as the report tells it: by its epoch, and by the heartbeats of each member."""

from __future__ import annotations

from typing import Any

from comparison.report.history.exchanges import coordination, member_lines
from comparison.report.history.group_history import GroupHistory, history_of
from tests.support.trace.traces import e

FIELDS = {"api": "ConsumerGroupHeartbeat", "version": 1, "correlation": 1, "broker": 1, "error": ""}


def state(at_ms: float, state: str, epoch: int) -> dict[str, Any]:
    return e(at_ms, "broker-1", "group_changed", group="g", state=state, generation=epoch, members=2, reason="why")


def heartbeat(at_ms: float, process: str) -> dict[str, Any]:
    return e(at_ms, process, "request_answered", member=process, stream=0, **FIELDS)


def taken_over(at_ms: float, process: str, before: str, after: str) -> list[dict[str, Any]]:
    """A member's rebalance of six milliseconds, with the heartbeats before and after it."""
    of = {"member": process, "stream": 0}
    return [
        heartbeat(at_ms, process),
        e(at_ms + 1, process, "rebalance_triggered", trigger="target-changed", **of),
        e(at_ms + 1, process, "rebalance_started", trigger="target-changed", **of),
        e(at_ms + 2, process, "partitions_revoked", t=before, all=[], generation=1, **of),
        e(at_ms + 3, process, "partitions_assigned", t=after, generation=1, **of),
        e(at_ms + 6, process, "rebalance_ended", outcome="ok", generation=1, **of),
        heartbeat(at_ms + 8, process),
    ]


def told() -> GroupHistory:
    events = [
        state(0, "Assigning", 1),
        e(1, "m1", "member_started", member="m1", stream=0, group="g"),
        *taken_over(5, "m1", "t0", "t1"),
        state(20, "Stable", 1),
        state(40, "Assigning", 2),
        *taken_over(50, "m1", "t1", "t0"),
        *taken_over(900, "m2", "t0", "t1"),
        state(950, "Stable", 2),
    ]
    return history_of(tuple(sorted(events, key=lambda each: each["ns"])), "consumer")


def test_a_round_is_all_that_one_epoch_causes_however_far_apart() -> None:
    rounds = told().rounds
    assert [[each.member.name for each in one.rebalances] for one in rounds] == [["m1"], ["m1", "m2"]]


def test_heartbeats_bring_the_target_and_say_what_a_member_has_of_it() -> None:
    history = told()
    lines = [(line.kind, line.what) for line in member_lines(history, history.rounds[1].rebalances[0])]
    assert lines[0] == ("answer", "ConsumerGroupHeartbeat: a new target")
    assert lines[-1] == ("asks", "ConsumerGroupHeartbeat: has t 0")


def test_the_coordinator_moves_from_epoch_to_epoch() -> None:
    history = told()
    said = [line.what for line in coordination(history, history.rounds[1].rebalances)]
    assert said == ["epoch 2 is Assigning: why"]
