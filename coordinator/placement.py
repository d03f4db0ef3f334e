"""Which partition of `__consumer_offsets`, and so which broker, is responsible for a group."""

from __future__ import annotations

import struct

INT_MIN = -(2**31)


def java_hash(text: str) -> int:
    """String.hashCode of the JVM: over UTF-16 code units (a surrogate pair counts as two), as a signed 32-bit int."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def kafka_abs(number: int) -> int:
    """Utils.abs of Kafka since 0.8.2: the smallest int, whose absolute value is no int, becomes 0."""
    return 0 if number == INT_MIN else abs(number)


def partition_of(group_id: str, partitions: int) -> int:
    """The number of the group's partition, of `partitions` (offsets.topic.num.partitions)."""
    return kafka_abs(java_hash(group_id)) % partitions
