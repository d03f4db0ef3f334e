"""Which process is which broker, and who coordinates a group after a takeover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.report.diagrams.sequence import sequence
from comparison.report.history.brokers import UNNUMBERED, Coordinators, broker_ids, broker_of
from comparison.report.history.group_history import read_history
from comparison.report.history.group_moment import RunEvents
from coordinator.groups.placement import partition_of
from kernel.topic_names import OFFSETS_TOPIC
from kernel.trace.reader import Trace, read_trace
from tests.support.trace.traces import e, write_run

GROUP, PARTITIONS = "g", 50


def registers(at_ms: float, process: str, id_: int, *, ok: bool = True) -> dict[str, Any]:
    path = f"/brokers/ids/{id_}"
    return e(at_ms, process, "zk_op", op="multi", path=path, ok=ok, error=None, step="registration", zxid=1)


def leads(at_ms: float, process: str, partition: int, leader: int, topic: str = OFFSETS_TOPIC) -> dict[str, Any]:
    return e(at_ms, process, "leader_changed", topic=topic, partition=partition, leader=leader, leader_epoch=0)


def traces_of(folder: Path, events: list[dict[str, Any]]) -> list[Trace]:
    run = write_run(folder, events, design="eager")
    return [read_trace(path) for path in sorted((run / "trace").glob("*.jsonl"))]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([registers(0, "broker-2", 1001)], 1001),
        ([registers(0, "broker-2", 1001, ok=False)], 2),
        ([leads(0, "broker-2", 3, 7)], 7),
        ([leads(0, "broker-2", 3, 7), leads(1, "broker-2", 3, 8)], 7),  # 8 is the successor
        ([leads(0, "broker-2", 3, -1)], 2),
        ([leads(0, "broker-2", 3, 7), registers(1, "broker-2", 9)], 9),
        ([], 2),
    ],
)
def test_id_of_a_broker_is_what_it_registered_or_led_as(events: list[dict[str, Any]], expected: int) -> None:
    assert broker_of("broker-2", broker_ids(events)) == expected


def test_processes_without_an_id() -> None:
    assert broker_of("broker", {}) == UNNUMBERED
    assert broker_of("m1", {}) is None


def test_coordinator_is_the_broker_that_took_the_groups_partition_last() -> None:
    place = partition_of(GROUP, PARTITIONS)
    coordinators = Coordinators({"broker-1": 11, "broker-2": 12})
    assert coordinators.of(GROUP) == ""
    for number in range(PARTITIONS):
        coordinators.take(leads(0, "broker-1", number, 11))
    coordinators.take(leads(1, "broker-2", place, 12, topic="t"))
    assert coordinators.of(GROUP) == "broker-1"
    coordinators.take(leads(2, "broker-1", place, 12))  # gives it up
    assert coordinators.of(GROUP) == "broker-1"
    coordinators.take(leads(3, "broker-2", place, 12))
    assert coordinators.of(GROUP) == "broker-2"


def took_over() -> list[dict[str, Any]]:
    """Broker 2, which traces as broker-1, coordinates; broker 1 takes over without a word, and then rebalances."""
    place = partition_of(GROUP, PARTITIONS)
    changed = {"group": GROUP, "generation": 1, "members": 1, "cause": "generation:1"}
    member = {"member": "m1-a", "stream": 0}
    asked = {"version": 0, "correlation": 1, "error": "", "group": GROUP}
    return [
        registers(1, "broker-1", 2),
        registers(2, "broker-2", 1),
        *(leads(10, "broker-1", number, 2) for number in range(PARTITIONS)),
        e(15, "m1", "rebalance_started", trigger="subscribe", **member),
        e(20, "m1", "member_started", group=GROUP, **member),
        e(16, "broker-1", "group_changed", state="PreparingRebalance", reason="member added", **changed),
        e(30, "broker-1", "group_changed", state="Stable", reason="assignment stored", **changed),
        e(40, "m1", "rebalance_ended", outcome="ok", **member),
        e(4_000, "broker-1", "group_changed", state="Dead", reason="coordinator moved", **changed),
        e(4_001, "broker-1", "leader_changed", topic=OFFSETS_TOPIC, partition=place, leader=1, leader_epoch=1),
        leads(4_100, "broker-2", place, 1),
        e(6_000, "m1", "request_answered", api="Heartbeat", broker=1, **asked, **member),
        e(6_001, "m1", "rebalance_started", trigger="group-rebalancing", **member),
        e(6_001, "broker-2", "group_changed", state="PreparingRebalance", reason="member added", **changed),
        e(6_002, "m1", "phase_entered", phase="join", attempt=1, **member),
        e(6_100, "m1", "request_answered", api="JoinGroup", broker=1, **asked, **member),
        e(6_200, "m1", "rebalance_ended", outcome="ok", **member),
    ]


def test_group_that_moved_is_coordinated_by_the_successor_and_lives_on(tmp_path: Path) -> None:
    run = RunEvents(traces_of(tmp_path, took_over()))
    (before,), (moving,), (after,) = (run.at(moment_s) for moment_s in (3, 4.05, 5))
    assert [seen.coordinator for seen in (before, moving, after)] == ["broker-1 (2)", "broker-1 (2)", "broker-2 (1)"]
    assert {seen.state for seen in (before, moving, after)} == {"Stable"}


def test_broker_is_one_participant_whatever_its_process_is_called(tmp_path: Path) -> None:
    history = read_history(traces_of(tmp_path, took_over()))
    drawn = sequence(history, history.rounds[-1].rebalances)
    assert [line.strip() for line in drawn.splitlines() if "participant" in line] == [
        "participant p1 as m1",
        "participant b1 as broker 1, coordinator",
    ]
