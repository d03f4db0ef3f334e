"""Repeated deliveries are counted the same in whatever order the members' events come."""

from __future__ import annotations

from itertools import permutations

import pytest

from comparison.playground.live.counting import Counting
from comparison.playground.live.feed import Feed
from comparison.results.counts import MEMBER

Runs = list[tuple[str, int, int]]  #: member, first and last offset


def counted(runs: Runs) -> tuple[int, int, int]:
    counting = Counting(Feed(coordinated=True), is_told=True)
    for member, first, last in runs:
        event = {"kind": "records_delivered", "topic": "t", "partition": 0, "first": first, "last": last}
        counting.count(0, MEMBER, member, event)
    counters = counting.counters(two_ns=0, unowned_ns=0)
    return counters.delivered, counters.duplicates, counting.delivered["t-0"]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([("m1", 0, 9), ("m2", 10, 14)], (15, 0, 15), id="handed over"),
        pytest.param([("m1", 0, 9), ("m2", 7, 14)], (18, 3, 15), id="from an older commit"),
        pytest.param([("m1", 0, 4), ("m1", 5, 9), ("m2", 3, 6), ("m2", 7, 12)], (20, 7, 13), id="two at once"),
        pytest.param([("m1", 0, 9), ("m2", 2, 3), ("m2", 5, 6), ("m1", 4, 4)], (15, 5, 10), id="inside"),
        pytest.param([("m1", 5, 6), ("m2", 5, 6), ("m3", 5, 6)], (6, 4, 7), id="three"),
    ],
)
def test_what_was_delivered_again_does_not_depend_on_the_order_of_events(
    runs: Runs, expected: tuple[int, int, int]
) -> None:
    assert {counted(list(order)) for order in permutations(runs)} == {expected}
