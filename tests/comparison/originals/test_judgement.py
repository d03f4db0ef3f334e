"""The judge of mixed groups: what it accepts, and what it finds."""

from __future__ import annotations

import pytest

from kernel.values import TopicPartition
from tests.support.java.mixed_groups import Ownership, by_range, was_in_hand

TP = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("begins_at", "offsets", "found"),
    [
        ({5}, [5, 6, 7], []),
        ({None}, [0, 1], []),
        ({3, 5}, [3, 4], []),
        ({5}, [], []),
        ({5}, [4, 5], ["m's ownership of t-0 begins at 4, but {5} was committed"]),
        ({None}, [1], ["m's ownership of t-0 begins at 1, but {None} was committed"]),
        ({5}, [5, 7, 6], ["m's ownership of t-0 jumps from 5 to 7", "m's ownership of t-0 jumps from 7 to 6"]),
        ({5}, [5, 5], ["m's ownership of t-0 jumps from 5 to 5"]),
    ],
)
def test_an_ownership_begins_at_the_committed_offset_without_gaps_or_steps_back(begins_at, offsets, found):
    assert Ownership("m", TP, frozenset(begins_at), offsets).faults() == found


@pytest.mark.parametrize(
    ("offsets", "last", "begins_at", "expected"),
    [
        ([18, 16, 17], 17, {16}, True),
        ([18, 18, 19], 17, {18}, True),
        ([18], 17, {15}, True),
        ([18, 19], 17, {18}, False),
        ([18, 20], 17, {18}, False),
        ([15, 16], 17, {15}, False),
        ([], 17, {15}, False),
    ],
)
def test_a_record_delivered_across_a_rebalance_differs_from_the_next_ownerships_first_one(
    offsets, last, begins_at, expected
):
    assert was_in_hand(offsets, last, frozenset(begins_at)) is expected


def test_the_first_threads_in_string_order_get_one_partition_more():
    threads = {"t": ["g_b-0", "g_a-2", "g_a-10"], "none": ["g_a-0"]}
    assert by_range(threads, {"t": 4}) == {
        TopicPartition("t", 0): "g_a-10",
        TopicPartition("t", 1): "g_a-10",
        TopicPartition("t", 2): "g_a-2",
        TopicPartition("t", 3): "g_b-0",
    }
