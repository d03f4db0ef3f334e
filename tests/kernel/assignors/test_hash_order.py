"""Java's hash order, compared with java.util.HashMap and HashSet on a JVM."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.hash_order import PartitionTable, partition_hash, table_size, texts_in_hash_order
from kernel.assignors.tree_bins import spread, spreads
from kernel.values import TopicPartition


def orders(*numbers):
    return [TopicPartition("orders", number) for number in numbers]


@pytest.mark.parametrize(("entries", "size"), [(0, 16), (12, 16), (13, 32), (24, 32), (25, 64), (49, 128)])
def test_table_doubles_when_more_than_three_quarters_full(entries, size):
    assert table_size(entries) == size


def test_texts_come_bucket_by_bucket():
    expected = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m11", "m10", "m13", "m12"]
    assert texts_in_hash_order(f"m{n}" for n in range(14)) == expected


def test_texts_with_equal_hashes_keep_the_order_of_insertion():
    given = ["Aa", "BB", "C", "\U0001f600", "é", "AaAa", "BBBB", "AaBB"]
    assert texts_in_hash_order(given) == given
    assert texts_in_hash_order(["BB", "Aa"]) == ["BB", "Aa"]


@given(st.lists(st.one_of(st.text(max_size=12), st.text(min_size=250, max_size=260)), max_size=5))
def test_texts_hashed_together_have_the_same_hashes_as_one_by_one(texts):
    assert spreads(texts).tolist() == [spread(text) & 0xFFFFFFFF for text in texts]


def test_hash_of_a_partition_is_kafkas():
    assert partition_hash(TopicPartition("orders", 7)) == -1008769153 & 0xFFFFFFFF


def test_first_partition_is_that_of_a_hash_set_that_has_grown_and_not_shrunk():
    table = PartitionTable()
    for tp in orders(40, 7, 3, 22, 100, 5):
        table.add(tp)
    assert drained(table) == orders(7, 40, 3, 100, 5, 22)
    for tp in orders(40, 7, 3, 22, 100, 5, *range(200, 213)):
        table.add(tp)
    for tp in orders(*range(200, 213)):
        table.remove(tp)
    assert drained(table) == orders(7, 40, 22, 3, 100, 5)


def drained(table):
    found = []
    while len(table):
        found.append(table.first())
        table.remove(found[-1])
    return found
