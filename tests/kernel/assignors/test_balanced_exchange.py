"""The arithmetic of balancing gives at once the result of moving one partition after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.balanced_exchange import Givers, Takers, exchange, filling, in_turn

counts = st.integers(0, 12)
members = st.lists(st.tuples(counts, counts, st.booleans()), min_size=1, max_size=6)


def columns(rows):
    loads, stock, first = zip(*rows, strict=True)
    return np.array(loads), np.array(stock), np.array(first)


def one_by_one(loads, stock, others):
    """Loads of givers and takers once no partition can move to a member with at least two fewer."""
    loads, stock, others = list(loads), list(stock), list(others)
    while True:
        giver = max((at for at in range(len(loads)) if stock[at]), key=loads.__getitem__, default=None)
        taker = min(range(len(others)), key=others.__getitem__)
        if giver is None or loads[giver] < others[taker] + 2:
            return sorted(loads), sorted(others)
        loads[giver] -= 1
        stock[giver] -= 1
        others[taker] += 1


@given(members, members)
def test_exchange_ends_like_single_moves(giving, taking):
    loads, stock, first = columns(giving)
    others, _, served_first = columns(taking)
    stock = np.minimum(stock, loads)
    give, take = exchange(Givers(loads, stock, first), Takers(others, served_first))
    assert give.sum() == take.sum()
    assert (give <= stock).all()
    assert (sorted(loads - give), sorted(others + take)) == one_by_one(loads, stock, others)


def test_exchange_takes_from_members_in_the_given_order():
    """Three have 3, one has 1: one partition has to move, and it is the third member's."""
    alike = np.zeros(1, bool)
    givers = Givers(np.array([3, 3, 3]), np.array([3, 3, 3]), np.array([False, False, True]))
    give, take = exchange(givers, Takers(np.array([1]), alike))
    assert (give.tolist(), take.tolist()) == ([0, 0, 1], [1])
    givers = Givers(np.array([3]), np.array([3]), alike)
    give, take = exchange(givers, Takers(np.array([1, 1]), np.array([False, True])))
    assert (give.tolist(), take.tolist()) == ([1], [0, 1])


@given(st.lists(counts, min_size=1, max_size=6), st.integers(1, 40))
def test_filling_lifts_the_least_loaded_one_by_one(loads, amount):
    expected = list(loads)
    for _ in range(amount):
        expected[expected.index(min(expected))] += 1
    filled = np.array(loads) + filling(np.array(loads), amount)
    assert sorted(filled) == sorted(expected)
    assert filled.sum() == sum(loads) + amount


def test_available_partitions_go_to_the_first_members():
    assert in_turn(np.array([2, 0, 3, 1]), 4).tolist() == [2, 0, 2, 0]
    assert in_turn(np.array([2, 1]), 0).tolist() == [0, 0]
    assert in_turn(np.array([2, 1]), 9).tolist() == [2, 1]
