"""Chains of causes: what was done to whom, what followed, and nothing that did not lead to it."""

from __future__ import annotations

from typing import Any

from comparison.ownership.fold import Key
from comparison.report.history.causes import Causes, Link, Waited
from tests.support.trace.traces import MS, e

KEY = Key("g", "t", 0)


class Names:
    """Members have the names of their processes here."""

    def of_owner(self, owner: str) -> str:
        return owner.partition("/")[0]

    def of_whole(self, member: str | None, process: str = "") -> str:
        return (member or process).partition("-")[0]


def started(*processes: str) -> list[dict[str, Any]]:
    return [e(0, process, "member_started", group="g", member=f"{process}-id", stream=0) for process in processes]


def has(at_ms: float, process: str, kind: str = "partitions_assigned") -> dict[str, Any]:
    return e(at_ms, process, kind, t="t0", member=f"{process}-id", stream=0)


def begins(at_ms: float, process: str, trigger: str, cause: str = "") -> dict[str, Any]:
    return e(at_ms, process, "rebalance_started", trigger=trigger, cause=cause, member=f"{process}-id", stream=0)


def moved(at_ms: float, kind: str, process: str, cause: str = "", **fields: Any) -> dict[str, Any]:
    return e(at_ms, "broker-1", f"group_member_{kind}", group="g", id=f"{process}-id", cause=cause, **fields)


def preparing(at_ms: float, reason: str) -> dict[str, Any]:
    given = {"group": "g", "state": "PreparingRebalance", "generation": 1, "members": 2}
    return e(at_ms, "broker-1", "group_changed", reason=reason, **given)


def causes(*events: dict[str, Any], waits: tuple[Waited, ...] = ()) -> Causes:
    return Causes(sorted(events, key=lambda event: event["ns"]), "the coordinator", Names(), waits)


def said(links: list[Link]) -> list[str]:
    return [f"{link.at_ns / MS:g} {link.who} {link.what}".replace("  ", " ") for link in links]


KILLED = [
    e(1_000, "runner", "fault_started", fault="kill", target="m1"),
    e(1_000, "runner", "process_ended", target="m1", how="kill", code=-9),
    e(1_000, "runner", "fault_ended", fault="kill", target="m1"),
]


def test_killed_owner_session_and_new_owner() -> None:
    found = causes(
        *started("m1", "m2"), has(100, "m1"), *KILLED, moved(4_000, "left", "m1", reason="session"), has(4_200, "m2")
    )
    assert said(found.standstill(KEY, 950 * MS, 4_250 * MS)) == [
        "1000 m1 was killed",
        "4000 the coordinator ended the session of m1",
        "4200 m2 was assigned {it}",
    ]


def test_owner_that_gives_it_up_says_for_whom_the_group_rebalances_and_what_had_befallen_that_one() -> None:
    found = causes(
        *started("m1", "m2"),
        has(100, "m2"),
        *KILLED,
        moved(4_000, "left", "m1", reason="session"),
        preparing(4_000, "session expired"),
        begins(4_900, "m2", "group-rebalancing"),
        has(4_910, "m2", "partitions_revoked"),
        has(5_400, "m2"),
    )
    assert said(found.standstill(KEY, 4_880 * MS, 5_450 * MS)) == [
        "1000 m1 was killed",
        "4000 the coordinator ended the session of m1",
        "4900 m2 began a rebalance",
        "4910 m2 gave {it} up",
        "5400 m2 was assigned {it}",
    ]


def test_what_made_a_member_begin_an_earlier_rebalance_is_not_behind_a_later_one() -> None:
    found = causes(
        *started("m1"),
        preparing(100, "member added"),
        moved(100, "joined", "m1"),
        begins(100, "m1", "subscribe"),
        has(200, "m1"),
        begins(5_000, "m1", "subscription-changed"),
        has(5_000, "m1", "partitions_revoked"),
        has(6_000, "m1"),
    )
    assert said(found.standstill(KEY, 4_990 * MS, 6_010 * MS)) == [
        "5000 m1 began a rebalance (subscription-changed)",
        "5000 m1 gave {it} up",
        "6000 m1 was assigned {it}",
    ]


def test_in_zookeeper_the_zxid_says_who_was_behind_it_and_the_log_has_milliseconds_only() -> None:
    found = causes(
        *started("m1", "m2", "m3"),
        has(100, "m2"),
        moved(3_000, "joined", "m1", cause="zxid:7"),
        moved(5_001, "joined", "m3", cause="zxid:9"),
        begins(5_000, "m2", "members", cause="zxid:9"),
        has(5_000, "m2", "partitions_revoked"),
        has(5_200, "m3"),
    )
    assert said(found.standstill(KEY, 4_990 * MS, 5_210 * MS))[0] == "5000 m3 joined the group"


def test_rebalance_waits_for_a_member_to_which_something_was_done() -> None:
    waited = Waited(1_100 * MS, 5_000 * MS, "m2", "m2")
    found = causes(
        *started("m1", "m2"),
        has(100, "m1"),
        e(1_000, "runner", "fault_started", fault="slow", target="m2"),
        preparing(1_100, "member rejoined with changed metadata"),
        begins(1_150, "m1", "group-rebalancing"),
        has(1_150, "m1", "partitions_revoked"),
        has(5_000, "m1"),
        waits=(waited,),
    )
    assert said(found.standstill(KEY, 1_140 * MS, 5_010 * MS)) == [
        "1000 m2 took long over a record",
        "1100 the group rebalanced (member rejoined with changed metadata)",
        "1100 the rebalance began to wait for m2",
        "1150 m1 gave {it} up",
        "5000 m1 was assigned {it}",
    ]


def test_new_owner_heard_of_the_rebalance_with_its_heartbeat_and_a_delay_kept_the_partition_for_the_old_one() -> None:
    stable = {"group": "g", "state": "Stable", "generation": 2, "members": 2, "reason": "assignment stored"}
    answer = {"api": "Heartbeat", "version": 4, "correlation": 5, "broker": 1, "error": "REBALANCE_IN_PROGRESS"}
    found = causes(
        *started("m1", "m2"),
        has(100, "m1"),
        *KILLED,
        preparing(4_000, "session expired"),
        e(4_100, "broker-1", "group_changed", **stable),
        begins(7_000, "m3", "scheduled"),
        e(7_990, "m2", "request_answered", **answer, group="g"),
        begins(8_000, "m2", "group-rebalancing"),
        has(8_300, "m2"),
    )
    assert said(found.standstill(KEY, 990 * MS, 8_310 * MS)) == [
        "1000 m1 was killed",
        "4100 a rebalance ended that gave {it} to nobody "
        "(scheduled.rebalance.max.delay.ms keeps {it} for whoever had {it})",
        "8000 m2 heard of the rebalance with the next heartbeat",
        "8300 m2 was assigned {it}",
    ]


def test_two_deliver_until_the_frozen_one_has_woken_up_and_is_told() -> None:
    found = causes(
        *started("m1", "m2"),
        has(100, "m1"),
        e(1_000, "runner", "fault_started", fault="freeze", target="m1"),
        moved(4_000, "left", "m1", reason="session"),
        has(4_100, "m2"),
        e(6_000, "runner", "fault_ended", fault="freeze", target="m1"),
        has(7_000, "m1", "partitions_lost"),
    )
    assert said(found.overlap(KEY, 6_000 * MS, 7_000 * MS)) == [
        "1000 m1 was frozen",
        "4000 the coordinator ended the session of m1",
        "4100 m2 was assigned {it}",
        "6000 m1 woke up, and went on with what it had",
        "7000 m1 noticed that it had lost {it}",
    ]


def test_broker_that_was_killed_is_behind_refused_fetches_of_an_owner_that_stays() -> None:
    found = causes(
        *started("m1"),
        begins(50, "m1", "subscribe"),
        has(100, "m1"),
        e(150, "m1", "rebalance_ended", outcome="ok", member="m1-id", stream=0),
        e(1_000, "runner", "fault_started", fault="kill", target="broker-2"),
        e(1_010, "m1", "fetch_refused", p=0, error="NETWORK_EXCEPTION", member="m1-id", stream=0),
        e(1_500, "m1", "fetch_refused", p=1, error="NETWORK_EXCEPTION", member="m1-id", stream=0),
        e(4_000, "broker-1", "leader_changed", p=0, leader=1, leader_epoch=2),
    )
    links = found.standstill(KEY, 990 * MS, 4_100 * MS)
    assert said(links) == [
        "1000 broker-2 was killed",
        "1010 m1 could not fetch {it} (NETWORK_EXCEPTION)",
        "4000 broker-1 took {it} over",
    ]


def test_what_the_trace_does_not_say_is_no_cause() -> None:
    found = causes(*started("m1"), has(100, "m1"))
    assert found.standstill(KEY, 1_000 * MS, 3_000 * MS) == []
    assert found.standstill(Key("g", "t", 9), 1_000 * MS, 3_000 * MS) == []


def test_authority_that_names_nobody_says_how_the_claim_ended() -> None:
    found = causes(
        *started("m1", "m2"),
        e(100, "broker-1", "authority_named", group="g", p=0, owner="m1-id", epoch=1),
        e(500, "broker-1", "authority_cleared", group="g", p=0, owner="m1-id", epoch=1, reason="fenced"),
        e(900, "broker-1", "authority_named", group="g", p=0, owner="m2-id", epoch=2),
    )
    assert said(found.unnamed(KEY, 500 * MS, 900 * MS)) == [
        "500 m1 was its owner no longer (fenced)",
        "900 m2 was named",
    ]
