"""Which brokers coordinated a group, and whether a replaced one went on."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures import coordinators
from comparison.pipeline.gold.run import acting
from comparison.pipeline.measured import Acting, Takeover
from coordinator.groups.placement import partition_of
from kernel.topic_names import OFFSETS_TOPIC
from tests.support.trace.traces import MS, e, staged

PLACE = partition_of("g", 50)


def took(at_ms: int, process: str, leader_epoch: int, partition: int = PLACE) -> Takeover:
    return Takeover(t_ns=at_ms * MS, process=process, partition=partition, leader_epoch=leader_epoch)


def acted(from_ms: int, until_ms: int, process: str, commits: int = 1) -> Acting:
    return Acting(group="g", process=process, from_ns=from_ms * MS, until_ns=until_ms * MS, commits=commits)


#: Every partition has a first leader; the group's is broker 2.
FIRST = [took(0, "b1" if partition % 2 else "b2", 0, partition) for partition in range(50) if partition != PLACE]
FIRST.append(took(0, "b2", 0))


@pytest.mark.parametrize(
    ("takeovers", "acting", "expected"),
    [
        ([], [acted(10, 20, "b2", 3)], [("b2", 0, 3, False)]),
        (
            [took(100, "b1", 1)],
            [acted(10, 90, "b2"), acted(101, 400, "b1", 5)],
            [("b2", 0, 1, False), ("b1", 1, 5, False)],
        ),
        # A takeover of another partition does not concern this group.
        ([took(100, "b1", 1, PLACE + 1)], [acted(10, 400, "b2")], [("b2", 0, 1, False)]),
        # A write stored before the takeover may be traced after it: on a busy machine up to a second.
        (
            [took(100, "b1", 1)],
            [acted(10, 1_050, "b2"), acted(160, 400, "b1")],
            [("b2", 0, 1, False), ("b1", 1, 1, False)],
        ),
        ([took(100, "b1", 1)], [acted(10, 1_300, "b2")], [("b2", 0, 1, True), ("b1", 1, 0, False)]),
        (
            [took(100, "b1", 1)],
            [acted(10, 90, "b2"), acted(101, 200, "b1"), acted(1_201, 1_201, "b2"), acted(1_202, 1_300, "b1")],
            [("b2", 0, 2, True), ("b1", 1, 2, False)],
        ),
        # A broker names owners while it loads, before it traces its takeover.
        (
            [took(105, "b1", 1)],
            [acted(10, 90, "b2"), acted(100, 400, "b1")],
            [("b2", 0, 1, False), ("b1", 1, 1, False)],
        ),
        # A broker that takes the group back may go on.
        (
            [took(5_000, "b1", 1), took(9_000, "b2", 2)],
            [acted(10, 4_900, "b2"), acted(5_010, 8_900, "b1"), acted(8_990, 9_900, "b2", 7)],
            [("b2", 0, 1, False), ("b1", 1, 1, False), ("b2", 2, 7, False)],
        ),
    ],
)
def test_terms_of_a_groups_coordinators(
    takeovers: list[Takeover], acting: list[Acting], expected: list[tuple[str, int, int, bool]]
) -> None:
    found = coordinators.terms([*takeovers, *FIRST], acting)
    assert [(term.broker, term.leader_epoch, term.commits, term.late) for term in found] == expected


def test_no_terms_without_a_takeover_in_the_trace() -> None:
    assert coordinators.terms([], [acted(10, 20, "b2")]) == []


def test_intervals_and_takeovers_in_a_trace() -> None:
    def led(at_ms: float, process: str, leader: int, topic: str = OFFSETS_TOPIC) -> dict[str, Any]:
        return e(at_ms, process, "leader_changed", topic=topic, partition=3, leader=leader, leader_epoch=1)

    def written(at_ms: float, process: str) -> dict[str, Any]:
        return e(at_ms, process, "offset_written", group="g", p=0, offset=1, by="m", epoch=1)

    def named(at_ms: float, process: str) -> dict[str, Any]:
        return e(at_ms, process, "authority_named", group="g", p=0, owner="m", epoch=1)

    cases = {
        "moves": [
            led(0, "broker-2", 2),
            led(0, "broker-1", 1, "orders"),
            named(1, "broker-2"),
            written(2, "broker-2"),
            led(5, "broker-1", 1),
            named(6, "broker-1"),
            led(7, "broker-2", -1),
            led(7, "broker-2", 1),  # given up, with its successor
            written(8, "broker-1"),
            written(9, "broker-1"),
            written(10, "broker-2"),
            written(11, "observer"),
        ]
    }
    stretches = staged(cases, acting)["moves"]
    assert [(row.process, row.from_ns // MS, row.until_ns // MS, row.commits) for row in stretches] == [
        ("broker-2", 1, 2, 1),
        ("broker-1", 6, 9, 2),
        ("broker-2", 10, 10, 1),
    ]
    taken = staged(cases, lambda _, context: context.takeovers)["moves"]
    assert [(row.process, row.t_ns // MS, row.partition) for row in taken] == [("broker-2", 0, 3), ("broker-1", 5, 3)]
