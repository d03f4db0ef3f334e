"""The partition of `__consumer_offsets`, and so the broker, that is responsible for a group."""

from __future__ import annotations

import functools

from kernel.java_hash import java_hash, kafka_abs


@functools.lru_cache(maxsize=16_384)
def partition_of(group_id: str, partitions: int) -> int:
    """The number of the group's partition, of `partitions` (offsets.topic.num.partitions)."""
    return kafka_abs(java_hash(group_id)) % partitions
