"""Batches with a valid checksum and invalid content, and what 4.1.1 answered to a Produce of each."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

import cramjam
from aiokafka.record.util import calc_crc32c

from kernel.records.compression import CODECS
from kernel.records.records import NewRecord, build_batch

TIME_MS = 1_700_000_000_000
HEADER_BYTES = 61
_ATTRIBUTES_AT, _LAST_DELTA_AT, _MAX_TIMESTAMP_AT, _COUNT_AT = 21, 23, 35, 57
INVALID, UNKNOWN, CORRUPT, NONE = 87, -1, 2, 0


class Bad(NamedTuple):
    """`code` is what 4.1.1 answered; `ours` what we answer where that differs, with the reason in `why`."""

    batch: bytes
    code: int
    ours: int | None = None
    why: str = ""

    @property
    def answer(self) -> int:
        return self.code if self.ours is None else self.ours


def repaired(batch: bytes) -> bytes:
    """The batch with the right length and checksum for its content."""
    fixed = bytearray(batch)
    struct.pack_into(">i", fixed, 8, len(batch) - 12)
    struct.pack_into(">I", fixed, 17, calc_crc32c(bytes(batch[21:])))
    return bytes(fixed)


def three_records() -> bytes:
    return build_batch([NewRecord(b"v" * 20, b"k", TIME_MS) for _ in range(3)])


def with_header(batch: bytes, *, records: int | None = None, attributes: int | None = None) -> bytes:
    changed = bytearray(batch)
    if records is not None:
        struct.pack_into(">i", changed, _COUNT_AT, records)
        struct.pack_into(">i", changed, _LAST_DELTA_AT, records - 1)
    if attributes is not None:
        struct.pack_into(">h", changed, _ATTRIBUTES_AT, attributes)
    return repaired(bytes(changed))


def packed(codec: str, content: bytes, *, records: int = 3) -> bytes:
    """A batch with the attribute `codec`, whatever its content is."""
    header = with_header(three_records(), records=records, attributes=CODECS[codec])[:HEADER_BYTES]
    return repaired(header + content)


def with_newest(batch: bytes, timestamp_ms: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(">q", changed, _MAX_TIMESTAMP_AT, timestamp_ms)
    return repaired(bytes(changed))


def bad_batches() -> Mapping[str, Bad]:
    good = three_records()
    inside = good[HEADER_BYTES:]
    one = len(inside) // 3

    def changed(change: Callable[[bytes], bytes]) -> bytes:
        return repaired(good[:HEADER_BYTES] + change(inside))

    def byte(at: int, value: int) -> Callable[[bytes], bytes]:
        return lambda content: content[:at] + bytes((value,)) + content[at + 1 :]

    zstd, squeezed = bytes(cramjam.zstd.compress(inside)), gzip.compress(inside)
    return {
        "count above the records": Bad(with_header(good, records=5), INVALID),
        "count below the records": Bad(with_header(good, records=2), INVALID),
        "count of two billion": Bad(with_header(good, records=2**31 - 1), INVALID),
        "count of none": Bad(with_header(good, records=0), INVALID),
        "length of a record too long": Bad(changed(byte(0, 0x7E)), INVALID),
        "length of a record too short": Bad(changed(byte(0, 0x20)), INVALID),
        "length of a record negative": Bad(changed(byte(0, 0x01)), INVALID),
        "key of length -2": Bad(changed(byte(4, 3)), INVALID),
        "headers that are not there": Bad(changed(byte(one - 1, 10)), INVALID),
        "number of headers negative": Bad(changed(byte(one - 1, 1)), INVALID),
        "garbage": Bad(changed(lambda content: bytes((i * 37 + 11) % 256 for i in range(len(content)))), INVALID),
        "nothing": Bad(changed(lambda _: b""), INVALID),
        "bytes behind the last record": Bad(changed(lambda content: content + b"garbage"), INVALID),
        "last record cut": Bad(changed(lambda content: content[:-3]), INVALID),
        "gap in the offsets": Bad(
            changed(byte(3, 4)), NONE, INVALID, "readers would see offsets that belong to other batches"
        ),
        "garbage for gzip": Bad(packed("gzip", b"garbage" * 5), UNKNOWN),
        "garbage for snappy": Bad(packed("snappy", b"garbage" * 5), UNKNOWN),
        "garbage for lz4": Bad(packed("lz4", b"garbage" * 5), UNKNOWN),
        "garbage for zstd": Bad(packed("zstd", b"garbage" * 5), UNKNOWN),
        "nothing for gzip": Bad(packed("gzip", b""), UNKNOWN),
        "gzip cut": Bad(packed("gzip", squeezed[:-9]), UNKNOWN),
        "count above the records in gzip": Bad(packed("gzip", squeezed, records=5), INVALID),
        "count below the records in gzip": Bad(packed("gzip", squeezed, records=2), INVALID),
        "count above the records in zstd": Bad(packed("zstd", zstd, records=5), INVALID),
        "bytes behind the last record in zstd": Bad(
            packed("zstd", bytes(cramjam.zstd.compress(inside + b"xx"))), INVALID
        ),
        "checksum wrong": Bad(good[:-1] + b"x", CORRUPT),
    }


def odd_batches() -> Mapping[str, bytes]:
    """Batches that are unusual but valid, for 4.1.1 and for us."""
    good = three_records()
    inside = good[HEADER_BYTES:]
    return {
        "gzip of two members": packed("gzip", gzip.compress(inside[:30]) + gzip.compress(inside[30:])),
        "bytes behind gzip": packed("gzip", gzip.compress(inside) + b"garbage"),
        "snappy without blocks": packed("snappy", bytes(cramjam.snappy.compress_raw(inside))),
        "zstd": packed("zstd", bytes(cramjam.zstd.compress(inside))),
        "time of the newest record wrong": with_newest(good, TIME_MS - 1_000_000),
    }
