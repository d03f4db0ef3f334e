"""Converts record batches to the message formats before 0.11, for clients that do not know later ones.

Source: AbstractRecords.downConvert, FileRecords.downConvert and MemoryRecordsBuilder of Kafka 1.1.1. Format 0 is for
Fetch 0 and 1; format 1 adds a time to each message and is for Fetch 2 and 3. The conversion drops:

- headers, which the old formats do not have, and in format 0 the times;
- control batches (the markers of transactions);
- records before the requested offset, in batches that are not compressed. A compressed batch becomes one wrapper
  message with all of its records: the reader drops earlier ones.

The codec does not change. Offsets inside a wrapper are absolute in format 0 and relative to the first message in format
1; the wrapper's offset is that of the last message. Zstd came after these formats, so zstd batches raise
`NotConvertible`, as Kafka refuses them since 2.1.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import cramjam

from kernel.errors import RebalanceLabError
from kernel.records.compression import CODECS
from kernel.records.records import CODEC_MASK, LOG_APPEND_TIME, decode, headers_of, is_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.values import Record, TopicPartition

_OFFSET_AND_SIZE = struct.Struct(">qi")
_CHECKSUM = struct.Struct(">I")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)

#: The limit for a response as a multiple of the stored bytes, and the limit in any case.
GROWS_MAX, _GROWN_BYTES_MIN = 4, 1024 * 1024


class NotConvertible(RebalanceLabError):
    """The old formats have no such codec: the client needs a newer version, or the producer another codec."""


def down_converted(tp: TopicPartition, data: bytes, offset: int, magic: int) -> bytes:
    """`data`, batches of format 2, as messages of format `magic` (0 or 1) for a reader at `offset`.

    Data without a complete batch is returned unchanged: the size at its start shows an old client that a message
    exceeds its limit. Well-packed batches may grow a lot: beyond `GROWS_MAX` times the stored bytes, the rest is left
    for the next Fetch. Raises `NotConvertible` and `CorruptRecords`.
    """
    assert magic in (0, 1), f"messages are of format 0 or 1, not {magic}"
    out: list[bytes] = []
    whole = size = 0
    for header, batch in headers_of(data):
        whole += 1
        if size > max(GROWS_MAX * len(data), _GROWN_BYTES_MIN):
            break
        if is_control(header):
            continue
        codec = header.attributes & CODEC_MASK
        if codec == CODECS["zstd"]:
            raise NotConvertible(f"{tp}: a batch at offset {header.base_offset} is zstd, which format {magic} lacks")
        records, _ = decode(tp, bytes(batch), 0 if codec else offset)
        time_bit = header.attributes & LOG_APPEND_TIME if magic else 0
        if not codec:
            converted = [_message(record, record.offset, magic, time_bit) for record in records]
        else:
            converted = [_wrapped(records, magic, codec, time_bit)] if records else []
        out += converted
        size += sum(map(len, converted))
    return b"".join(out) if whole else data


def _wrapped(records: Iterable[Record], magic: int, codec: int, time_bit: int) -> bytes:
    records = tuple(records)
    base = records[0].offset if magic else 0
    inner = b"".join(_message(record, record.offset - base, magic, time_bit) for record in records)
    packed = _PACK[codec](inner, magic)
    newest_ms = max(record.timestamp_ms for record in records)
    return _framed(records[-1].offset, magic, codec | time_bit, newest_ms, None, packed)


def _message(record: Record, offset: int, magic: int, attributes: int) -> bytes:
    return _framed(offset, magic, attributes, record.timestamp_ms, record.key, record.value)


def _framed(offset: int, magic: int, attributes: int, time_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    """Offset, size, checksum, format, attributes, in format 1 the time, then key and value with their sizes."""
    head = struct.pack(">bbq", magic, attributes, time_ms) if magic else struct.pack(">bb", magic, attributes)
    checked = b"".join((head, *_sized(key), *_sized(value)))
    size = _CHECKSUM.size + len(checked)
    return b"".join((_OFFSET_AND_SIZE.pack(offset, size), _CHECKSUM.pack(zlib.crc32(checked)), checked))


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if data is None else (_LENGTH.pack(len(data)), data)


# -- codecs, in the framing that Java's readers of that time expect ---------------------------------------------------


def _gzip(data: bytes, _magic: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


#: snappy-java's stream: its name, version 1, readable by version 1; then size and block, repeated.
_XERIAL_HEAD = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024


def _snappy(data: bytes, _magic: int) -> bytes:
    out = [_XERIAL_HEAD]
    for block in _blocks(data, _XERIAL_BLOCK_BYTES):
        packed = bytes(cramjam.snappy.compress_raw(block))
        out += (_LENGTH.pack(len(packed)), packed)
    return b"".join(out)


#: An LZ4 frame: independent blocks of 64 KiB, no checksums except that of this header, its last byte.
_LZ4_HEAD = b"\x04\x22\x4d\x18\x60\x40"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31
#: xxHash32 of the flags; the readers of format 0 expect it over the magic number as well (KAFKA-3160).
_LZ4_HEAD_CHECKSUM = {0: b"\x1a", 1: b"\x82"}


def _lz4(data: bytes, magic: int) -> bytes:
    out = [_LZ4_HEAD, _LZ4_HEAD_CHECKSUM[magic]]
    for block in _blocks(data, _LZ4_BLOCK_BYTES):
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += (struct.pack("<I", len(packed)), packed)
        else:
            out += (struct.pack("<I", len(block) | _LZ4_STORED), block)
    return b"".join((*out, b"\0\0\0\0"))


def _blocks(data: bytes, size: int) -> Iterable[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


_PACK: Mapping[int, Callable[[bytes, int], bytes]] = {
    CODECS["gzip"]: _gzip,
    CODECS["snappy"]: _snappy,
    CODECS["lz4"]: _lz4,
}
