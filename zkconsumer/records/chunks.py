"""Turns what one fetch returned for one partition into a chunk for its stream's queue.

Source: PartitionTopicInfo.enqueue, Kafka 0.8.2. There a message above fetch.message.max.bytes arrives truncated, with
no valid byte; it is queued anyway, and the stream raises when it reaches it. Modern Fetch versions always return a
whole batch, however large, so the limit is enforced here: a first batch above it becomes a chunk without records,
which is what the original makes of it on a broker that stores batches. The fetcher requests it again and again.

A corrupt batch becomes such a chunk too, but the fetcher goes on after it, since the original checks checksums only
when it hands records out.
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

_SIZE_AT, _OVERHEAD = 8, 12  #: of a batch or message: position of the size field, and the bytes that it does not count


def chunk_of(info: PartitionInfo, offset: int, data: bytes, *, bytes_max: int) -> tuple[Chunk | None, int]:
    """(the chunk, or None if there is nothing to hand out; the next offset to request)."""
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
    """Whether the first batch is complete and within the limit."""
    if len(data) < _OVERHEAD:
        return False
    (size,) = struct.unpack_from(">i", data, _SIZE_AT)
    return bool(_OVERHEAD + size <= min(bytes_max, len(data)))


def _too_large(tp: TopicPartition, offset: int, bytes_max: int) -> MessageSizeTooLarge:
    return MessageSizeTooLarge(
        f"{tp} has a batch at offset {offset} that is larger than fetch.message.max.bytes={bytes_max}: increase it, or"
        " decrease message.max.bytes on the broker"
    )


def _before_the_corrupt(tp: TopicPartition, data: bytes, offset: int) -> tuple[tuple[Record, ...], int]:
    """(records of the batches before the first corrupt one, the offset after all batches)."""
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
    except CorruptRecords:  # not even the sizes are valid: what follows is requested again
        return tuple(records), next_offset
    return tuple(records), next_offset
