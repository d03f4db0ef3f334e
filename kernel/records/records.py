"""Builds, accepts and decodes record batches.

Format: magic 2 (KIP-98; org.apache.kafka.common.record.DefaultRecordBatch). The checksum does not cover the
header's base offset and leader epoch, so a broker fills them in place and keeps the rest as opaque bytes. aiokafka's
Cython builder and reader handle the bytes of single records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka.errors import KafkaError
from aiokafka.record._crecords import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import _LegacyRecordBatchPy
from aiokafka.record.util import calc_crc32c

from kernel.records.batches import AppendBatch, ProducerStamp
from kernel.records.compression import CODECS, CannotUnpack, unpacked
from kernel.records.control_records import CommittedOnly
from kernel.values import Record
from kernel.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kernel.values import TopicPartition

#: base offset, length, leader epoch, magic, checksum, attributes, last offset delta, base timestamp, max timestamp,
#: producer id, producer epoch, base sequence, number of records
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT, _MAGIC_AT, _CHECKED_FROM = 8, 16, 21
_LOG_OVERHEAD = 12  #: base offset and length, which `length` does not count
_ATTRIBUTES_AT = 21
CODEC_MASK, LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20  #: bits of a batch's attributes

#: What the readers raise for malformed bytes.
_UNREADABLE = (
    KafkaError,
    ValueError,
    EOFError,
    OSError,
    OverflowError,
    IndexError,
    MemoryError,
    struct.error,
    CannotUnpack,
    AssertionError,  # aiokafka's, of a message of the old formats that is packed twice
)


class CorruptRecords(ProtocolError):
    """Stored or fetched bytes are not record batches."""


class RefusedBatch(ProtocolError):
    """A produced batch is refused, as by Kafka; `code` goes to the producer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class BatchHeader(NamedTuple):
    """The header of a magic 2 batch; `max_timestamp` is epoch milliseconds."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record that has no offset yet; `timestamp_ms` is epoch milliseconds."""

    value: bytes | None
    key: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def is_control(header: BatchHeader) -> bool:
    """Whether the batch is a transaction's marker, which applications never see."""
    return bool(header.attributes & _CONTROL)


def build_batch(
    records: Sequence[NewRecord],
    *,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One magic 2 batch with base offset 0. `codec` is a key of `CODECS`."""
    assert records, "a batch holds at least one record"
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=int(transactional),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=2**31 - 1,  # the caller decides how much goes into a batch
    )
    for offset, record in enumerate(records):
        builder.append(offset, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def records_of(batch: bytes) -> Iterator[Any]:
    """Each record of one magic 2 batch, with `offset`, `timestamp`, `key`, `value` and `headers`; one at a time.

    Checks all lengths, counts and varints, and that no bytes are left at the end; raises `CorruptRecords`. The caller
    checks the checksum of an uncompressed batch.
    """
    try:
        yield from DefaultRecordBatch(_unpacked(batch))
    except _UNREADABLE as error:
        raise CorruptRecords(str(error)) from error


def accepted(data: bytes | None, *, max_bytes: int, zstd: bool = True) -> AppendBatch:
    """The batch that a Produce request (version 3 or later) holds for one partition, checked as by Kafka.

    Raises `RefusedBatch`. Source: ProduceRequest.validateRecords, LogValidator and UnifiedLog.analyzeAndValidateRecords
    of Kafka 3.9: exactly one batch of magic 2, its checksum, message.max.bytes, offsets without gaps, a sequence if
    there is a producer id, zstd only from version 7 on. `kernel.records.record_check` checks the records.
    """
    if not data:
        raise RefusedBatch(
            ErrorCode.invalid_record, "a Produce request must have exactly one record batch, but has none"
        )
    if len(data) < _HEADER.size:
        raise RefusedBatch(ErrorCode.corrupt_message, f"a record batch of {len(data)} bytes has no room for its header")
    header = BatchHeader(*_HEADER.unpack_from(data))
    if header.magic != 2:
        raise RefusedBatch(ErrorCode.invalid_record, f"record format {header.magic} is not accepted, only format 2")
    if header.length + _LOG_OVERHEAD > len(data) or header.length + _LOG_OVERHEAD < _HEADER.size:
        raise RefusedBatch(ErrorCode.corrupt_message, f"a record batch announces {header.length} bytes of {len(data)}")
    if header.length + _LOG_OVERHEAD < len(data):
        raise RefusedBatch(
            ErrorCode.invalid_record, "a Produce request must have exactly one record batch, but has more"
        )
    if len(data) > max_bytes:
        raise RefusedBatch(
            ErrorCode.message_too_large, f"{len(data)} bytes are more than message.max.bytes={max_bytes}"
        )
    if calc_crc32c(memoryview(data)[_CHECKED_FROM:]) != header.checksum:
        raise RefusedBatch(ErrorCode.corrupt_message, "the record batch's checksum is wrong")
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        raise RefusedBatch(
            ErrorCode.invalid_record,
            f"{header.record_count} records with a last offset delta of {header.last_offset_delta}",
        )
    if header.attributes & _CONTROL:
        raise RefusedBatch(ErrorCode.invalid_record, "clients must not write control batches")
    codec = header.attributes & CODEC_MASK
    if codec not in CODECS.values() or (codec == CODECS["zstd"] and not zstd):
        raise RefusedBatch(ErrorCode.unsupported_compression_type, f"codec {codec} is not accepted here")
    return AppendBatch(bytes(data), header.record_count, header.max_timestamp, _producer(header))


def _producer(header: BatchHeader) -> ProducerStamp | None:
    transactional = bool(header.attributes & _TRANSACTIONAL)
    if header.producer_id < 0:
        if transactional:
            raise RefusedBatch(ErrorCode.invalid_record, "a transactional batch without a producer id")
        return None
    if header.base_sequence < 0 or header.producer_epoch < 0:
        raise RefusedBatch(
            ErrorCode.invalid_record,
            f"producer {header.producer_id} sent epoch {header.producer_epoch}, sequence {header.base_sequence}",
        )
    return ProducerStamp(header.producer_id, header.producer_epoch, header.base_sequence, transactional)


def headers_of(data: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Each whole magic 2 batch of `data`; skips a batch that is cut off at the end, as a Fetch response may have.

    Raises `CorruptRecords`.
    """
    view = memoryview(data)
    at = 0
    while at + _HEADER.size <= len(data):
        header = BatchHeader(*_HEADER.unpack_from(data, at))
        end = at + _LOG_OVERHEAD + header.length
        if header.length < _HEADER.size - _LOG_OVERHEAD:
            raise CorruptRecords(f"a record batch announces {header.length} bytes")
        if end > len(data):
            return
        yield header, view[at:end]
        at = end


class Readable(NamedTuple):
    """The readable part of some batches. `corrupt` is why the one at `next_offset` is not; None if all are."""

    records: tuple[Record, ...]
    next_offset: int
    corrupt: CorruptRecords | None = None


def decode(tp: TopicPartition, data: bytes, from_offset: int) -> tuple[tuple[Record, ...], int]:
    """(records from `from_offset` on, the offset to continue at). Control batches take offsets but yield no records.

    Decodes magic 0 to 2 and every codec. Batches are stored and sent whole, so earlier records than `from_offset` are
    dropped. Raises `CorruptRecords`.
    """
    records, next_offset, corrupt = readable(tp, data, from_offset)
    if corrupt is not None:
        raise corrupt
    return records, next_offset


def readable(tp: TopicPartition, data: bytes, from_offset: int, aborted: Iterable[tuple[int, int]] = ()) -> Readable:
    """As `decode`, but returns the records before the first unreadable batch instead of raising.

    `aborted` are the (producer id, first offset) of a read_committed response: the batches of these producers from
    there up to their abort markers are skipped too.
    """
    committed = CommittedOnly(aborted)
    records: list[Record] = []
    next_offset = from_offset
    whole = 0  # records of whole batches
    try:
        for batch in _batches(data):
            if not batch.validate_crc():
                raise CorruptRecords("its checksum is wrong")  # noqa: TRY301
            if not committed.leaves_out(batch):
                records += _records(tp, batch, from_offset)
            # Only the header of magic 2 has the last offset.
            batch_end = batch.next_offset if isinstance(batch, DefaultRecordBatch) else _end_of(records, from_offset)
            next_offset = max(next_offset, batch_end)
            whole = len(records)
    except (CorruptRecords, *_UNREADABLE) as error:
        corrupt = CorruptRecords(f"{tp}: the record batch at offset {next_offset} cannot be read: {error}")
        corrupt.__cause__ = error
        return Readable(tuple(records[:whole]), next_offset, corrupt)
    return Readable(tuple(records), next_offset)


def _end_of(records: Sequence[Record], otherwise: int) -> int:
    return records[-1].offset + 1 if records else otherwise


def _records(tp: TopicPartition, batch: Any, from_offset: int) -> Iterable[Record]:
    for record in batch:
        if record.offset >= from_offset:
            yield Record(
                tp.topic,
                tp.partition,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                tuple(record.headers or ()),
            )


def _batches(data: bytes) -> Iterator[Any]:
    """The batches for aiokafka; compressed ones of magic 2 are unpacked first, within bounds."""
    at = 0
    while at + _MAGIC_AT < len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH_AT)
        end = at + _LOG_OVERHEAD + length
        if length <= 0:
            raise CorruptRecords(f"a record batch announces {length} bytes")
        if end > len(data):
            return
        one = data[at:end]
        # aiokafka's reader in Python reads the old formats: the one in Cython checks less, and they are rare.
        yield DefaultRecordBatch(_unpacked(one)) if one[_MAGIC_AT] >= 2 else _OldMessages(one, one[_MAGIC_AT])
        at = end


class _OldMessages(_LegacyRecordBatchPy):  # type: ignore[misc]  # aiokafka publishes no types
    """Formats 0 and 1, unpacked within our bound."""

    def _decompress(self, key_offset: int) -> bytes:
        """Unpack the value of a wrapper message. Key and value follow their sizes; the key is ignored."""
        if self._magic == 0 and self._compression_type == CODECS["lz4"]:
            raise CannotUnpack("lz4 in format 0, which has a different checksum (KAFKA-3160), is not supported")
        (key_size,) = struct.unpack_from(">i", self._buffer, key_offset)
        at = key_offset + 4 + max(key_size, 0)
        (size,) = struct.unpack_from(">i", self._buffer, at)
        if size < 0:
            raise CannotUnpack("a wrapper message has no value")
        return unpacked(self._compression_type, bytes(self._buffer[at + 4 : at + 4 + size]))


def _unpacked(batch: bytes) -> bytes:
    """The decompressed form of a magic 2 batch, with a matching checksum. Checks the original's checksum."""
    if len(batch) < _HEADER.size:
        raise CorruptRecords(f"a record batch of {len(batch)} bytes has no room for its header")
    header = BatchHeader(*_HEADER.unpack_from(batch))
    codec = header.attributes & CODEC_MASK
    if codec == 0:
        return batch
    if calc_crc32c(memoryview(batch)[_CHECKED_FROM:]) != header.checksum:
        raise CorruptRecords("a record batch's checksum is wrong")
    content = unpacked(codec, batch[_HEADER.size :])
    checked = struct.pack(">h", header.attributes & ~CODEC_MASK) + batch[_ATTRIBUTES_AT + 2 : _HEADER.size] + content
    return b"".join(
        (
            struct.pack(">qi", header.base_offset, len(checked) + _CHECKED_FROM - _LOG_OVERHEAD),
            batch[_LOG_OVERHEAD : _MAGIC_AT + 1],
            struct.pack(">I", calc_crc32c(checked)),
            checked,
        )
    )
