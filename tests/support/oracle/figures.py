"""A run's figures, the slow way: straight from its events and from what `oracle` measures of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comparison.pipeline.measured import ChangeWindow, Measured, MemberPhase, Round
from comparison.results.run import Wait
from tests.support.oracle.intervals import Event, in_time, of
from tests.support.oracle.runs import BIN_NS, BINNED_NS_MAX, READS

LATE_NS = 200_000_000
_GROUP_REQUESTS = ("JoinGroup", "SyncGroup", "LeaveGroup")


def counts_of(events: list[Event], begin: int, end: int) -> dict[str, int]:
    """What members did in [begin, end), by the names of metrics and of a change's figures."""
    mine = [event for event in events if event["role"] == "member" and begin <= event["t_ns"] < end]

    def count(kind: str, is_one: Callable[[Event], Any] = lambda _: True) -> int:
        return sum(1 for event in of(mine, kind) if is_one(event))

    def is_commit(event: Event) -> bool:
        return event["path"].startswith("/x/consumers/g/offsets/") or event["path"].startswith("/consumers/g/offsets/")

    def is_read(event: Event) -> bool:
        return event["op"] in READS

    writes = count("zk_op", lambda event: not is_read(event) and is_commit(event))
    return {
        "rebalances": count("rebalance_started"),
        "rebalances_failed": count("rebalance_ended", lambda event: event["outcome"] == "failed"),
        "poll_overdue": count(
            "rebalance_triggered", lambda event: event["trigger"] in ("poll-overdue", "poll-timeout")
        ),
        "rebalance_overdue": sum(
            event["reason"].startswith("not ")
            for event in of(events, "group_member_left")
            if event["role"] == "broker" and begin <= event["t_ns"] < end
        ),
        "attempts": count("attempt_ended"),
        "attempts_failed": count("attempt_ended", lambda event: event["outcome"] != "ok"),
        "notifications": count("zk_notified"),
        "zk_reads": count("zk_op", lambda event: is_read(event) and event["ok"]),
        "zk_reads_failed": count("zk_op", lambda event: is_read(event) and not event["ok"]),
        "zk_writes": count("zk_op", lambda event: not is_read(event) and event["ok"]),
        "zk_writes_failed": count("zk_op", lambda event: not is_read(event) and not event["ok"]),
        "zk_commits": writes,
        "group_requests": count("request_answered", lambda event: event["api"] in _GROUP_REQUESTS),
        "heartbeats": count("request_answered", lambda event: event["api"] in ("Heartbeat", "ConsumerGroupHeartbeat")),
        "fetches": count("request_answered", lambda event: event["api"] == "Fetch"),
        "commit_requests": count("request_answered", lambda event: event["api"] == "OffsetCommit") + writes,
        "misdirected": count("request_answered", lambda event: event["error"] == "NOT_COORDINATOR"),
    }


def stalled_s(events: list[Event], measured: Measured, window: ChangeWindow) -> float | None:
    """Whole tenths of a second in a change's window, and under load, in which nobody delivered anything."""
    assert measured.span is not None
    polls = of(events, "records_delivered")
    if not polls:
        return None
    start = measured.span.start_ns
    drained = [event["t_ns"] for event in of(events, "stage_entered") if event["stage"] in ("drain", "final")]
    end = min([window.until_ns, measured.span.end_ns, start + BINNED_NS_MAX, *drained])
    bins = []
    begin = start
    while begin < window.from_ns:
        begin += BIN_NS
    while begin + BIN_NS <= end:
        bins.append(begin)
        begin += BIN_NS
    if window.from_ns <= start - BIN_NS or not bins:
        return None
    empty = [
        begin
        for begin in bins
        if not any(begin <= poll["t_ns"] < min(begin + BIN_NS, measured.span.end_ns) for poll in polls)
    ]
    return len(empty) * BIN_NS / 1e9


def waits_of(events: list[Event], rounds: list[Round], phases: list[MemberPhase]) -> list[Wait]:
    """Which member each generation waited for: the last one that joined, left, or never came."""
    found = []
    for each in rounds:
        if each.gathered_ns is not None:
            mine = [phase for phase in phases if phase.group == each.group]
            wait = _wait(events, each, mine, each.gathered_ns)
            found += [wait] if wait is not None else []
    return found


def _wait(events: list[Event], each: Round, phases: list[MemberPhase], gathered_ns: int) -> Wait | None:
    came: dict[tuple[str, str], int] = {}
    for phase in phases:
        if phase.phase == "join" and phase.from_ns <= gathered_ns and phase.until_ns >= each.from_ns:
            who = phase.process, phase.member or ""
            came[who] = min([phase.from_ns, *([came[who]] if who in came else [])])
    if not came:
        return None
    last_ns = max(came.values())
    name, gone = next(process for (process, _), at_ns in came.items() if at_ns == last_ns), False
    left = [
        event
        for event in in_time(of(events, "group_member_left"))
        if event["role"] == "broker"
        and event["group"] == each.group
        and each.from_ns <= event["t_ns"] <= gathered_ns
        and event["t_ns"] > last_ns
    ]
    missing = _missing(events, each, phases, {process for process, _ in came})
    if left:
        had = sorted(
            (phase.from_ns, phase.process)
            for phase in phases
            if phase.member == left[-1]["id"] and phase.from_ns <= left[-1]["t_ns"]
        )
        name, gone, last_ns = had[-1][1] if had else left[-1]["id"], True, left[-1]["t_ns"]
    elif gathered_ns - last_ns > LATE_NS and missing:
        name, gone, last_ns = missing[0], True, gathered_ns
    waited = [max(0, last_ns - max(at_ns, each.from_ns)) for (process, _), at_ns in came.items() if process != name]
    waiting = each.members if left else each.members - 1
    if not waited or waiting < 1:
        return None
    return Wait(
        generation=each.generation,
        from_ms=round(each.from_ns / 1e6, 3),
        waited_for=name,
        gone=gone,
        waiting=waiting,
        longest_ms=round(max(waited) / 1e6, 3),
        total_ms=round(sum(waited) / 1e6, 3),
    )


def _missing(events: list[Event], each: Round, phases: list[MemberPhase], came: set[str]) -> list[str]:
    """Processes that took part in rebalances before the round, have not ended since, and did not join."""
    found = set()
    for phase in phases:
        ends = [event["t_ns"] for event in of(events, "process_ended") if event["target"] == phase.process]
        is_there = all(end > each.from_ns for end in ends[-1:])
        if phase.from_ns < each.from_ns and is_there and phase.process not in came:
            found.add(phase.process)
    return sorted(found)
