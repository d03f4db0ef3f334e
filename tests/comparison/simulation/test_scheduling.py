"""Who takes a turn: by chance, or by priorities with few changes."""

from __future__ import annotations

from collections import Counter
from random import Random

from comparison.scenarios.plan.links import Kind
from comparison.simulation.node import Node
from comparison.simulation.scheduling import LAGS_NS, LATE_TURNS, TURNS, Chance, Priorities

RUNNER = Node("runner", Kind.RUNNER, 1)
NODES = [RUNNER, *(Node(f"m{number}", Kind.MEMBER, number) for number in range(2, 6))]


def turns(order: Chance, count: int) -> list[tuple[str, int]]:
    """Who takes so many turns, one a moment, if all are always ready, and how long each is late."""
    found = []
    for now_ns in range(count):
        node = NODES[order.place(NODES, now_ns)]
        found.append((node.name, order.lag_ns(node)))
    return found


def test_chance_lets_all_have_turns_and_nobody_is_late() -> None:
    taken = turns(Chance(Random(1)), 500)
    assert min(Counter(taken).values()) > 50
    assert {lag for _, lag in taken} == {0}


def test_how_many_turns_a_node_takes_in_a_moment_changes_nothing_for_the_others() -> None:
    moments = range(0, 10_000, 7)
    order, other = Chance(Random(1)), Chance(Random(1))
    firsts = [order.place(NODES, now_ns) for now_ns in moments]

    again = [[other.place(NODES, now_ns) for _ in range(1 + now_ns % 3)] for now_ns in moments]

    assert [set(places) for places in again] == [{first} for first in firsts]


def test_the_highest_priority_goes_on_until_it_is_demoted() -> None:
    for seed in range(20):
        taken = turns(Priorities(Random(seed), 3), TURNS)
        stretches = [name for at, (name, _) in enumerate(taken) if at == 0 or taken[at - 1][0] != name]
        assert len(stretches) == len(set(stretches)) <= 4
        assert "runner" not in stretches[:-1]
        assert turns(Priorities(Random(seed), 3), TURNS) == taken


def test_a_demoted_node_is_late_for_its_next_turns_alone() -> None:
    node = NODES[1]
    order = Priorities(Random(3), 1)
    lags = []
    for _ in range(TURNS):
        assert order.place([node], 0) == 0
        lags.append(order.lag_ns(node))
    late = [lag for lag in lags if lag]
    assert late == [late[0]] * LATE_TURNS
    assert late[0] in LAGS_NS
    assert lags.index(late[0]) + LATE_TURNS == len(lags) - lags[::-1].index(late[0])


def test_the_runner_is_never_late() -> None:
    order = Priorities(Random(3), 9)
    assert {(order.place([RUNNER], 0), order.lag_ns(RUNNER)) for _ in range(TURNS)} == {(0, 0)}
