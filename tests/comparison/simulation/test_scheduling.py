"""Who takes a turn: by chance, or by priorities with few changes."""

from __future__ import annotations

from collections import Counter
from random import Random

from comparison.scenarios.plan.links import Kind
from comparison.simulation.node import Node
from comparison.simulation.scheduling import LAGS_NS, TURNS, Chance, Priorities

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


def test_the_highest_priority_goes_on_until_it_is_demoted_and_then_is_late_if_it_gets_a_turn() -> None:
    for seed in range(20):
        order = Priorities(Random(seed), 3)
        taken = turns(order, TURNS)
        stretches = [name for at, (name, _) in enumerate(taken) if at == 0 or taken[at - 1][0] != name]
        assert len(stretches) == len(set(stretches)) <= 4
        demoted = stretches[:-1]
        assert "runner" not in demoted
        for node in NODES:
            assert order.lag_ns(node) == 0 or (node.name == demoted[-1] and order.lag_ns(node) in LAGS_NS)
        assert turns(Priorities(Random(seed), 3), TURNS) == taken


def test_only_the_node_that_was_demoted_last_is_late() -> None:
    order = Priorities(Random(3), 9)
    turns(order, TURNS)
    assert sum(order.lag_ns(node) > 0 for node in NODES) <= 1
