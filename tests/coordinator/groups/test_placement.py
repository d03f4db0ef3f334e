"""The partition of a group: vectors computed on a JVM (Kafka's GroupCoordinator.partitionFor and Utils.abs)."""

from __future__ import annotations

import pytest

from coordinator.groups.placement import partition_of
from kernel.java_hash import INT_MIN, java_hash, kafka_abs

#: group id, String.hashCode, partition of 50.
VECTORS = [
    ("", 0, 0),
    ("a", 97, 47),
    ("test", 3556498, 48),
    ("console-consumer-12345", 158455506, 6),
    ("polygenelubricants", INT_MIN, 0),
    ("group", 98629247, 47),
    ("my-group", -1906497762, 12),
    ("connect-cluster", 1440343063, 13),
    ("消费组", 28099635, 35),
]


@pytest.mark.parametrize(("group_id", "hashed", "partition"), VECTORS)
def test_placement_of_a_group_is_that_of_the_jvm(group_id: str, hashed: int, partition: int):
    assert java_hash(group_id) == hashed
    assert partition_of(group_id, 50) == partition


def test_java_hash_counts_a_surrogate_pair_as_two_characters():
    assert java_hash("😀") == 31 * 0xD83D + 0xDE00


def test_java_hash_accepts_a_lone_surrogate():
    assert java_hash("\ud83d") == 0xD83D


def test_kafka_abs_of_the_smallest_int_is_zero():
    assert [kafka_abs(n) for n in (INT_MIN, INT_MIN + 1, -1, 0, 1)] == [0, 2**31 - 1, 1, 0, 1]
