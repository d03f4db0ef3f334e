"""Rounds of the group, the members that delayed them, and how long phases took."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.waits import WAIT_SCHEMA, deciders, phase_times, wait_table, waits_of
from comparison.pipeline.measured import (
    GroupChanged,
    GroupEvent,
    GroupMemberLeft,
    Measured,
    MemberPhase,
    ProcessEnded,
    Round,
    RunnerEvent,
)
from comparison.pipeline.silver.rounds import rounds_of

MS = 1_000_000


def changed(at_ms: int, state: str, generation: int = 0, group: str = "g", members: int = 3) -> GroupChanged:
    return GroupChanged(t_ns=at_ms * MS, group=group, state=state, generation=generation, members=members)


def left(at_ms: int, member: str) -> GroupMemberLeft:
    return GroupMemberLeft(t_ns=at_ms * MS, group="g", id=member)


def phase(process: str, name: str, from_ms: int, until_ms: int, member: str | None = "") -> MemberPhase:
    member = f"{process}-id" if member == "" else member
    return MemberPhase(
        process=process, member=member, phase=name, from_ns=from_ms * MS, until_ns=until_ms * MS, group="g"
    )


PREPARING, COMPLETING, STABLE, EMPTY = "PreparingRebalance", "CompletingRebalance", "Stable", "Empty"
ASSIGNING, RECONCILING = "Assigning", "Reconciling"


def in_ms(rounds: list[Round]) -> list[tuple[int, int | None, int | None]]:
    return [
        (each.from_ns // MS, each.until_ns // MS if each.until_ns is not None else None, each.generation)
        for each in rounds
    ]


@pytest.mark.parametrize(
    ("group_events", "rounds"),
    [
        ([changed(1, PREPARING), changed(3, COMPLETING, 1), changed(4, STABLE, 1)], [(1, 4, 1)]),
        (
            [
                changed(1, PREPARING, 1),
                changed(3, COMPLETING, 2),
                changed(4, PREPARING, 2),  # a member joins before the assignment is stored
                changed(6, COMPLETING, 3),
                changed(7, STABLE, 3),
            ],
            [(1, 4, 2), (4, 7, 3)],
        ),
        # No generation begins when the last member leaves, nor when the coordinator resigns before all have joined.
        ([changed(1, PREPARING, 1), changed(2, EMPTY, 2)], []),
        ([changed(1, PREPARING, 1), changed(2, "Dead", 1)], []),
        ([changed(1, PREPARING), changed(3, COMPLETING, 1), changed(4, "Dead", 1)], [(1, None, 1)]),
        ([changed(1, PREPARING), changed(3, COMPLETING, 1)], [(1, None, 1)]),
        ([changed(0, STABLE, 4)], []),  # as its successor loaded it
        # The epochs of a KIP-848 group. Only a new one begins a round; the last member to leave begins none.
        ([changed(1, ASSIGNING, 1), changed(2, RECONCILING, 1), changed(5, STABLE, 1)], [(1, 5, 1)]),
        (
            [changed(1, STABLE, 1), changed(2, ASSIGNING, 2), changed(4, ASSIGNING, 3)],
            [(1, 1, 1), (2, 4, 2), (4, None, 3)],
        ),
        (
            [changed(1, RECONCILING, 1), changed(3, STABLE, 1), changed(4, RECONCILING, 1), changed(5, STABLE, 1)],
            [(1, 3, 1)],
        ),
        ([changed(1, RECONCILING, 1), changed(3, EMPTY, 2), changed(4, "Dead", 2)], [(1, None, 1)]),
        # Its coordinator moves, and the old one says so late.
        (
            [
                changed(1, RECONCILING, 1),
                changed(2, STABLE, 1),
                changed(4, ASSIGNING, 2),
                changed(5, "Dead", 1),
                changed(6, RECONCILING, 2),
                changed(7, STABLE, 2),
            ],
            [(1, 2, 1), (4, None, 2)],
        ),
        # A group changes its type, and changes back.
        (
            [
                changed(1, PREPARING),
                changed(2, COMPLETING, 1),
                changed(3, STABLE, 1),
                changed(5, ASSIGNING, 2),
                changed(7, STABLE, 2),
                changed(8, PREPARING, 3),
                changed(9, COMPLETING, 4),
                changed(10, STABLE, 4),
            ],
            [(1, 3, 1), (5, 7, 2), (8, 10, 4)],
        ),
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
def test_rounds_of_a_coordinator_are_its_generations(group_events: list[GroupEvent], rounds: list[tuple]) -> None:
    assert in_ms(rounds_of(group_events, [phase("m1", "rebalance", 1, 9)])) == rounds


def test_rounds_without_a_coordinator_are_overlapping_rebalances_of_members() -> None:
    phases = [
        phase("m2", "rebalance", 3, 8),
        phase("m1", "rebalance", 1, 5),
        phase("m3", "rebalance", 2, 4),
        phase("m1", "rebalance", 20, 25),
        phase("m1", "join", 10, 12),
    ]
    assert in_ms(rounds_of([], phases)) == [(1, 8, None), (20, 25, None)]


#: A new member begins the round; until it knows its id it is in no phase.
ROUND: list[GroupEvent] = [changed(100, PREPARING, 1), changed(7_000, COMPLETING, 2), changed(7_010, STABLE, 2)]


def waited(group_events: list[GroupEvent], phases: list[MemberPhase]) -> list[dict[str, Any]]:
    ended: list[RunnerEvent] = [ProcessEnded(t_ns=40 * MS, target="m0")]
    rounds = rounds_of(group_events, [])
    found = waits_of(Measured(rounds=rounds, group=group_events, phases=phases, runner=ended))
    return [
        {"for": each.waited_for, "gone": each.gone, "n": each.waiting, "ms": each.longest_ms, "sum": each.total_ms}
        for each in found
    ]


def test_last_member_to_join_is_waited_for() -> None:
    phases = [
        phase("m1", "join", 200, 7_005),
        phase("m2", "join", 6_900, 7_005),
        phase("m3", "join", 50, 7_005),  # before the round, which it began by joining
        phase("m2", "join", 10, 40),  # another round's
        phase("m1", "claim", 7_005, 7_010),
    ]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": False, "n": 2, "ms": 6_800.0, "sum": 13_500.0}]


def test_member_that_never_joins_is_waited_for_until_it_is_removed() -> None:
    phases = [phase("m1", "join", 200, 7_005), phase("m3", "join", 300, 7_005), phase("m2", "claim", 10, 40)]
    group_events = [*ROUND[:1], left(6_990, "m2-id"), *ROUND[1:]]
    assert waited(group_events, phases) == [{"for": "m2", "gone": True, "n": 3, "ms": 6_790.0, "sum": 13_480.0}]


def test_static_member_that_does_not_join_is_waited_for_and_stays() -> None:
    phases = [
        phase("m0", "rebalance", 10, 30),  # its process has ended since
        phase("m1", "join", 200, 7_005),
        phase("m2", "rebalance", 10, 40),
        phase("m3", "join", 300, 7_005),
    ]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": True, "n": 2, "ms": 6_800.0, "sum": 13_500.0}]


def test_member_whose_leave_began_the_round_is_not_waited_for() -> None:
    phases = [phase("m1", "join", 200, 7_005), phase("m3", "join", 300, 7_005)]
    group_events = [left(100, "m2-id"), *ROUND]
    assert waited(group_events, phases) == [{"for": "m3", "gone": False, "n": 2, "ms": 100.0, "sum": 100.0}]


def test_member_that_joins_twice_counts_from_its_first_request() -> None:
    phases = [phase("m1", "join", 200, 300), phase("m1", "join", 300, 7_005), phase("m2", "join", 250, 7_005)]
    assert waited(ROUND, phases) == [{"for": "m2", "gone": False, "n": 2, "ms": 50.0, "sum": 50.0}]


def test_single_member_waits_for_nobody() -> None:
    assert waited(ROUND, [phase("m1", "join", 200, 7_005)]) == []
    assert waited(ROUND, []) == []


def test_phases_by_name() -> None:
    found = phase_times([phase("m1", "join", 0, 10), phase("m2", "join", 0, 30), phase("m3", "join", 0, 20)])
    assert [(each.phase, each.n, each.median_ms, each.max_ms, each.total_ms) for each in found] == [
        ("join", 3, 20.0, 30.0, 60.0)
    ]


def test_member_that_computes_the_assignment_is_the_leader() -> None:
    phases = [phase("m2", "decide", 9, 10), phase("m1", "decide", 2, 3), phase("m1", "join", 1, 2)]
    assert deciders(phases) == [(2 * MS, "m1"), (9 * MS, "m2")]


def at_the_barrier(group_events: list[GroupEvent], phases: list[MemberPhase]) -> list[tuple[Any, ...]]:
    rounds = rounds_of(group_events, [])
    table = wait_table(Measured(group=group_events, phases=phases, rounds=rounds))
    assert table.schema == WAIT_SCHEMA
    return [
        (row["process"], row["joined_ns"] and row["joined_ns"] // MS, row["waited_ns"] // MS, row["is_waited_for"])
        for row in table.to_pylist()
    ]


def test_table_has_when_each_member_joined_and_how_long_it_waited_for_the_last() -> None:
    phases = [phase("m1", "join", 200, 7_005), phase("m2", "join", 6_900, 7_005), phase("m3", "join", 50, 7_005)]
    assert at_the_barrier(ROUND, phases) == [
        ("m1", 200, 6_700, False),
        ("m2", 6_900, 0, True),
        ("m3", 50, 6_800, False),  # from the begin of the round
    ]


def test_table_names_a_member_that_was_waited_for_and_never_joined() -> None:
    group_events: list[GroupEvent] = [changed(100, PREPARING, 1), left(6_000, "m2-id"), *ROUND[1:]]
    phases = [phase("m1", "join", 200, 7_005), phase("m2", "join", 10, 40), phase("m3", "join", 300, 7_005)]
    assert at_the_barrier(group_events, phases) == [
        ("m1", 200, 5_800, False),
        ("m3", 300, 5_700, False),
        ("m2", None, 0, True),
    ]


def test_table_is_empty_without_a_coordinator() -> None:
    assert at_the_barrier([], [phase("m1", "join", 200, 7_005)]) == []
