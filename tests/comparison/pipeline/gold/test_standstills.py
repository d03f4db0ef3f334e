"""How long records waited while nothing was delivered, and why."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold.partitions import measure_partitions
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.reduce import reduced
from tests.support.trace.traces import MS, e, staged

Event = dict[str, Any]


def member(at_ms: float, kind: str, process: str = "m1", **fields: Any) -> Event:
    return e(at_ms, process, kind, member=process, stream=0, **fields)


def poll(at_ms: float, first: int, last: int, process: str = "m1") -> Event:
    numbers = {"serial_first": first + 100, "serial_last": last + 100}
    return member(at_ms, "records_delivered", process, p=0, first=first, last=last, **numbers)


def acked(at_ms: float, first: int, last: int, **more: int) -> Event:
    numbers = {"serial_first": first + 100, "serial_last": last + 100, **more}
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, **numbers)


def led(at_ms: float, process: str, leader: int) -> Event:
    return e(at_ms, process, "leader_changed", p=0, leader=leader, leader_epoch=0)


def fault(at_ms: float, name: str, kind: str = "fault_started") -> Event:
    return e(at_ms, "runner", kind, fault=name, target="m1")


#: m1 has the partition, and has delivered record 0 at 100 ms; record 1 waits from then on.
OWNED = [
    member(1, "member_started", group="g"),
    member(2, "partitions_assigned", t="t0"),
    acked(90, 0, 1),
    poll(100, 0, 0),
]
RESUMED = poll(2100, 1, 1)
CASES: dict[str, tuple[list[Event], dict[str, int]]] = {
    "nothing is known": ([*OWNED, RESUMED], {"unknown": 2000}),
    "nothing waited": ([*OWNED[:2], acked(90, 0, 0), poll(100, 0, 0), acked(2090, 1, 1), RESUMED], {}),
    "it waited for its producer's broker": (
        [*OWNED[:2], acked(90, 0, 0), poll(100, 0, 0), acked(2090, 1, 1, latency_ns=1500 * MS), RESUMED],
        {"unknown": 1510},
    ),
    "a shorter pause is not seen": ([*OWNED, poll(200, 1, 1)], {}),
    "it never came": ([*OWNED, e(3000, "runner", "stage_entered", stage="final")], {"unknown": 2900}),
    "no leader, then refused until it was found": (
        [
            *OWNED,
            led(50, "broker-1", 1),
            led(600, "broker-1", -1),
            member(650, "fetch_refused", p=0, error="NOT_LEADER_OR_FOLLOWER"),
            led(1600, "broker-2", 2),
            RESUMED,
        ],
        {"no leader": 1000, "fetch refused": 500, "unknown": 500},
    ),
    "its leader was killed": (
        [*OWNED, led(50, "broker-1", 1), e(600, "runner", "process_ended", target="broker-1", how="kill"), RESUMED],
        {"no leader": 1500, "unknown": 500},
    ),
    "paused comes before everything": (
        [
            *OWNED,
            fault(150, "freeze"),
            member(300, "partitions_paused", t="t0"),
            member(1300, "partitions_resumed", t="t0", cause="asked"),
            RESUMED,
            fault(2200, "freeze", "fault_ended"),
        ],
        {"paused": 1000, "frozen": 950},
    ),
    "a slow record, and another fault, measured from the first": (
        [*OWNED, fault(600, "slow"), fault(1100, "slow", "fault_ended"), fault(1100, "delay"), RESUMED],
        {"slow record": 500, "fault": 1000},
    ),
    "nobody had it until a rebalance": (
        [
            *OWNED,
            e(1100, "runner", "process_ended", target="m1", how="kill"),
            member(1, "member_started", "m2", group="g"),
            member(1600, "rebalance_started", "m2", trigger="children"),
            member(2000, "rebalance_ended", "m2", outcome="ok"),
            member(2000, "partitions_assigned", "m2", t="t0"),
            poll(2100, 1, 1, "m2"),
        ],
        {"unknown": 1100, "no owner": 500, "rebalance": 400},
    ),
}


def standstills(found: Tables, of: Context) -> list[Any]:
    return [measure_partitions(reduced(found, of)[0], of)[0].standstills]


FOUND = staged({name: events for name, (events, _) in CASES.items()}, standstills)


@pytest.mark.parametrize("case", CASES)
def test_standstill_is_cut_into_its_causes(case: str) -> None:
    (found,), (_, causes) = FOUND[case], CASES[case]
    assert {cause: ns / MS for cause, ns in found.causes.items()} == causes
    whole_ms = sum(causes.values())
    assert [(each.until_ns - each.from_ns) / MS for each in found.longest] == ([whole_ms] if causes else [])


def test_without_a_traced_producer_nobody_knows_what_waited() -> None:
    assert staged({"": [*OWNED[:2], OWNED[3], RESUMED]}, standstills) == {"": [None]}
