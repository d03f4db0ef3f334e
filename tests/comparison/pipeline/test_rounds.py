"""Rounds of the group, who was waited for in them, and how long phases took."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.measured import GroupChanged, GroupEvent, GroupMemberLeft, MemberPhase, Round
from comparison.pipeline.rounds import deciders, phase_times, rounds_of, waits_of

MS = 1_000_000


def changed(at_ms: int, state: str, generation: int = 0, group: str = "g", members: int = 3) -> GroupChanged:
    return GroupChanged(t_ns=at_ms * MS, group=group, state=state, generation=generation, members=members)


def left(at_ms: int, member: str) -> GroupMemberLeft:
    return GroupMemberLeft(t_ns=at_ms * MS, group="g", id=member)


def phase(process: str, name: str, from_ms: int, until_ms: int, member: str | None = "") -> MemberPhase:
    member = f"{process}-id" if member == "" else member
    return MemberPhase(process=process, member=member, phase=name, from_ns=from_ms * MS, until_ns=until_ms * MS)


PREPARING, COMPLETING, STABLE, EMPTY = "PreparingRebalance", "CompletingRebalance", "Stable", "Empty"


def in_ms(rounds: list[Round]) -> list[tuple[int, int | None, int | None]]:
    return [
        (each.from_ns // MS, each.until_ns // MS if each.until_ns is not None else None, each.generation)
        for each in rounds
    ]


@pytest.mark.parametrize(
    ("told", "rounds"),
    [
        ([changed(1, PREPARING), changed(3, COMPLETING, 1), changed(4, STABLE, 1)], [(1, 4, 1)]),
        (
            [
                changed(1, PREPARING, 1),
                changed(3, COMPLETING, 2),
                changed(4, PREPARING, 2),  # somebody comes before the assignment is stored
                changed(6, COMPLETING, 3),
                changed(7, STABLE, 3),
            ],
            [(1, 4, 2), (4, 7, 3)],
        ),
        # The last one leaves: no generation begins. Nor when the coordinator goes before everybody has come.
        ([changed(1, PREPARING, 1), changed(2, EMPTY, 2)], []),
        ([changed(1, PREPARING, 1), changed(2, "Dead", 1)], []),
        ([changed(1, PREPARING), changed(3, COMPLETING, 1), changed(4, "Dead", 1)], [(1, None, 1)]),
        ([changed(1, PREPARING), changed(3, COMPLETING, 1)], [(1, None, 1)]),
        ([changed(0, STABLE, 4)], []),  # as a successor has loaded it
        (
            [
                changed(1, PREPARING),
                changed(2, PREPARING, group="h"),
                changed(3, COMPLETING, 1, group="h"),
                changed(4, COMPLETING, 1),
                changed(5, STABLE, 1),
                changed(6, STABLE, 1, group="h"),
            ],
            [(1, 5, 1), (2, 6, 1)],
        ),
    ],
)
def test_rounds_of_a_coordinator_are_its_generations(told: list[GroupEvent], rounds: list[tuple]) -> None:
    assert in_ms(rounds_of(told, [phase("m1", "rebalance", 1, 9)])) == rounds


def test_rounds_where_nobody_coordinates_are_stretches_of_members_rebalances() -> None:
    phases = [
        phase("m2", "rebalance", 3, 8),
        phase("m1", "rebalance", 1, 5),
        phase("m3", "rebalance", 2, 4),
        phase("m1", "rebalance", 20, 25),
        phase("m1", "join", 10, 12),
    ]
    assert in_ms(rounds_of([], phases)) == [(1, 8, None), (20, 25, None)]


#: Somebody comes, and its coming begins the round: what it does until it knows its id is in no phase.
ROUND = [changed(100, PREPARING, 1), changed(7_000, COMPLETING, 2), changed(7_010, STABLE, 2)]


def waited(told: list[GroupEvent], phases: list[MemberPhase]) -> list[dict[str, Any]]:
    found = waits_of(rounds_of(told, []), told, phases, {"m0": 40 * MS})
    return [
        {"for": each.waited_for, "gone": each.gone, "n": each.waiting, "ms": each.longest_ms, "sum": each.total_ms}
        for each in found
    ]


def test_last_one_to_join_is_waited_for() -> None:
    phases = [
        phase("m1", "join", 200, 7_005),
        phase("m2", "join", 6_900, 7_005),
        phase("m3", "join", 50, 7_005),  # before the round began: its coming began it
        phase("m2", "join", 10, 40),  # another round's
        phase("m1", "claim", 7_005, 7_010),
    ]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": False, "n": 2, "ms": 6_800.0, "sum": 13_500.0}]


def test_one_that_never_comes_is_waited_for_until_it_is_given_up() -> None:
    phases = [phase("m1", "join", 200, 7_005), phase("m3", "join", 300, 7_005), phase("m2", "claim", 10, 40)]
    told = [*ROUND[:1], left(6_990, "m2-id"), *ROUND[1:]]
    assert waited(told, phases) == [{"for": "m2", "gone": True, "n": 3, "ms": 6_790.0, "sum": 13_480.0}]


def test_static_member_that_does_not_come_is_waited_for_and_stays() -> None:
    phases = [
        phase("m0", "rebalance", 10, 30),  # it has ended since
        phase("m1", "join", 200, 7_005),
        phase("m2", "rebalance", 10, 40),
        phase("m3", "join", 300, 7_005),
    ]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": True, "n": 2, "ms": 6_800.0, "sum": 13_500.0}]


def test_one_whose_leaving_began_the_round_is_not_waited_for() -> None:
    phases = [phase("m1", "join", 200, 7_005), phase("m3", "join", 300, 7_005)]
    told = [left(100, "m2-id"), *ROUND]
    assert waited(told, phases) == [{"for": "m3", "gone": False, "n": 2, "ms": 100.0, "sum": 100.0}]


def test_who_asks_twice_came_when_it_asked_first() -> None:
    phases = [phase("m1", "join", 200, 300), phase("m1", "join", 300, 7_005), phase("m2", "join", 250, 7_005)]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": False, "n": 2, "ms": 50.0, "sum": 50.0}]


def test_nobody_waits_alone() -> None:
    assert waited(ROUND, [phase("m1", "join", 200, 7_005)]) == []
    assert waited(ROUND, []) == []


def test_phases_by_name() -> None:
    found = phase_times([phase("m1", "join", 0, 10), phase("m2", "join", 0, 30), phase("m3", "join", 0, 20)])
    assert [(each.phase, each.n, each.median_ms, each.max_ms, each.total_ms) for each in found] == [
        ("join", 3, 20.0, 30.0, 60.0)
    ]


def test_who_decides_leads() -> None:
    phases = [phase("m2", "decide", 9, 10), phase("m1", "decide", 2, 3), phase("m1", "join", 1, 2)]
    assert deciders(phases) == [(2 * MS, "m1"), (9 * MS, "m2")]
