"""What one fetch brought of one partition, made into a chunk for its stream's queue.

Source: PartitionTopicInfo.enqueue, Kafka 0.8.2. There a message above fetch.message.max.bytes arrives cut, without one
valid byte; it is queued all the same, and the stream that comes to it raises. Modern Fetch versions always bring a
whole batch, however large. So the limit is held here: a first batch above it becomes a chunk without records,
which is what the original makes of it on a broker that stores batches. Its fetcher asks for it again and again.

A batch whose bytes make no sense becomes such a chunk too, but its fetcher goes on behind it: the original looks at
checksums when it hands out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kernel.errors import MessageSizeTooLarge
from kernel.records.records import CorruptRecords, decode, headers_of
from zkconsumer.records.streams import Chunk

if TYPE_CHECKING:
    from kernel.values import Record, TopicPartition
    from zkconsumer.records.streams import PartitionInfo

_SIZE_AT, _OVERHEAD = 8, 12  #: of a batch or message: where its size stands, and what the size does not count


def chunk_of(info: PartitionInfo, offset: int, data: bytes, *, bytes_max: int) -> tuple[Chunk | None, int]:
    """(the chunk or None for nothing to hand out, the offset to ask for next)."""
    if not data:
        return None, offset
    tp = info.topic_partition
    if not _fits(data, bytes_max):
        return Chunk(info, offset, (), _too_large(tp, offset, bytes_max)), offset
    try:
        records, next_offset = decode(tp, data, offset)
    except CorruptRecords as error:
        records, next_offset = _before_the_corrupt(tp, data, offset)
        return Chunk(info, offset, records, error), next_offset
    return (Chunk(info, offset, records) if records else None), next_offset


def _fits(data: bytes, bytes_max: int) -> bool:
    """Whether the first batch is whole and within the limit."""
    if len(data) < _OVERHEAD:
        return False
    (size,) = struct.unpack_from(">i", data, _SIZE_AT)
    return bool(_OVERHEAD + size <= min(bytes_max, len(data)))


def _too_large(tp: TopicPartition, offset: int, bytes_max: int) -> MessageSizeTooLarge:
    return MessageSizeTooLarge(
        f"{tp} has something at offset {offset} that is larger than fetch.message.max.bytes={bytes_max}: increase that,"
        " or decrease what the broker takes (message.max.bytes)"
    )


def _before_the_corrupt(tp: TopicPartition, data: bytes, offset: int) -> tuple[tuple[Record, ...], int]:
    """(records of the batches before the first corrupt one, the offset behind all batches)."""
    records: list[Record] = []
    next_offset = offset
    readable = True
    try:
        for header, batch in headers_of(data):
            next_offset = max(next_offset, header.next_offset)
            if readable:
                try:
                    records += decode(tp, bytes(batch), offset)[0]
                except CorruptRecords:
                    readable = False
    except CorruptRecords:  # not even the sizes make sense: what follows is asked for again
        return tuple(records), next_offset
    return tuple(records), next_offset
