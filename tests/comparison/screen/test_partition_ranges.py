"""Partitions in a row are a range, per topic and by what they have in common."""

from __future__ import annotations

from comparison.screen.partition_ranges import in_ranges, ranges_text
from kernel.values import TopicPartition


def test_three_or_more_in_a_row_of_one_topic_are_a_range() -> None:
    numbers = {"t": (10, 9, 8, 2, 1, 0, 5, 6), "t-1": (0, 1, 2)}
    partitions = [TopicPartition(topic, number) for topic, of in numbers.items() for number in of]
    assert ranges_text(partitions) == "t-0..2, t-5, t-6, t-8..10, t-1-0..2"
    assert ranges_text([]) == ""


def test_a_range_ends_where_something_else_is_true_of_the_next() -> None:
    rows = [(TopicPartition("t", number), mark) for number, mark in enumerate("aaabbaaaa")]
    assert list(in_ranges(rows)) == [("t-0..2", "a", 3), ("t-3", "b", 1), ("t-4", "b", 1), ("t-5..8", "a", 4)]
