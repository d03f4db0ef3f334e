"""Encode and decode the user data that the sticky strategies add to a subscription.

    sticky              [topic, [partition i32]] of the last assignment, and since 2.3 the generation i32
    cooperative-sticky  generation i32 (the subscription itself holds the owned partitions)

Newer writers may append data, which is ignored. Source: StickyAssignor and CooperativeStickyAssignor of kafka-clients
4.1, KAFKA-7026 for the generation.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

#: No real generation: the member never had an assignment, or its user data is invalid.
NO_GENERATION = -1


class Claim(NamedTuple):
    """The partitions that a member says it had, and in which generation."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None  #: None if the member states none


def encode_sticky(partitions: Iterable[TopicPartition], generation: int | None) -> bytes:
    """The user data of a sticky member; without a generation as before 2.3."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [struct.pack(">i", len(by_topic))]
    for topic in texts_in_hash_order(by_topic):
        name, numbers = topic.encode("utf-8"), by_topic[topic]
        parts += [struct.pack(">h", len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if generation is not None:
        parts.append(struct.pack(">i", generation))
    return b"".join(parts)


def decode_sticky(data: bytes | None) -> Claim:
    """The claim in a sticky member's user data. Empty or invalid data claims nothing, the latter in `NO_GENERATION`."""
    if not data:
        return Claim((), None)
    try:
        partitions, end = _assignment(data)
    except (struct.error, ValueError):
        return Claim((), NO_GENERATION)
    if len(data) - end < 4:
        return Claim(partitions, None)
    return Claim(partitions, int(struct.unpack_from(">i", data, end)[0]))


def encode_cooperative(generation: int) -> bytes:
    """The user data of a cooperative-sticky member; `NO_GENERATION` before its first assignment."""
    return struct.pack(">i", generation)


def decode_cooperative(data: bytes | None) -> int | None:
    """The generation in a cooperative-sticky member's user data; None without user data."""
    if data is None:
        return None
    return int(struct.unpack_from(">i", data)[0]) if len(data) >= 4 else NO_GENERATION


def _assignment(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """The partitions, and the offset after them. Raises `struct.error` or ValueError if the data is invalid."""
    (topics,) = struct.unpack_from(">i", data)
    _check(topics, 6, data)
    at, found = 4, []
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        if not 0 <= length <= len(data) - at - 2:
            raise ValueError(f"a name of {length} bytes")
        topic = data[at + 2 : at + 2 + length].decode("utf-8", "replace")  # as Java does: the other topics stay valid
        at += 2 + length
        (count,) = struct.unpack_from(">i", data, at)
        _check(count, 4, data)
        found += [TopicPartition(topic, number) for number in struct.unpack_from(f">{count}i", data, at + 4)]
        at += 4 + 4 * count
    return tuple(found), at


def _check(count: int, item_bytes_min: int, data: bytes) -> None:
    if not 0 <= count * item_bytes_min <= len(data):
        raise ValueError(f"an array of {count} entries in {len(data)} bytes")
