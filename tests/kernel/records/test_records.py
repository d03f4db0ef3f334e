"""Record batches: round trips with every codec, and what is refused or corrupt."""

from __future__ import annotations

import contextlib
import struct

import pytest
from aiokafka.record._crecords import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel.records.compression as compression_module
from kernel.records.compression import CODECS
from kernel.records.records import CorruptRecords, NewRecord, RefusedBatch, accepted, build_batch, decode
from kernel.values import Record, TopicPartition
from tests.support.properties import examples

TP = TopicPartition("t", 3)

RECORDS = st.builds(
    NewRecord,
    value=st.none() | st.binary(max_size=30),
    key=st.none() | st.binary(max_size=8),
    timestamp_ms=st.integers(0, 2**41),
    headers=st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2).map(tuple),
)


def moved(batch: bytes, base_offset: int) -> bytes:
    return struct.pack(">q", base_offset) + batch[8:]


@settings(deadline=None)
@given(
    st.lists(RECORDS, min_size=1, max_size=8), st.sampled_from(list(CODECS)), st.integers(0, 2**40), st.integers(0, 9)
)
def test_batch_decodes_to_the_records_it_was_built_from(
    records: list[NewRecord], codec: str, base: int, skipped: int
) -> None:
    batch = build_batch(records, codec=codec, producer_id=4, producer_epoch=1, base_sequence=9)
    checked = accepted(batch, max_bytes=10_000)
    assert (checked.records, checked.max_timestamp_ms) == (len(records), max(r.timestamp_ms for r in records))
    got, next_offset = decode(TP, moved(batch, base), base + skipped)
    assert got == tuple(
        Record("t", 3, base + n, r.timestamp_ms, r.key, r.value, r.headers)
        for n, r in enumerate(records)
        if n >= skipped
    )
    assert next_offset == base + max(len(records), skipped)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_formats_are_decoded_too(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 10_000)
    for number in range(3):
        builder.append(number, 1000 + number, b"k", b"v%d" % number)
    records, next_offset = decode(TP, bytes(builder.build()), 1)
    assert [(record.offset, record.value) for record in records] == [(1, b"v1"), (2, b"v2")]
    assert next_offset == 3


def test_batch_that_is_cut_short_at_the_end_is_left_for_the_next_fetch() -> None:
    one = build_batch([NewRecord(b"a", None, 1)])
    for cut in range(1, len(one)):
        records, next_offset = decode(TP, one + moved(one, 1)[:cut], 0)
        assert ([record.value for record in records], next_offset) == ([b"a"], 1)


def test_control_batch_takes_offsets_and_delivers_nothing() -> None:
    batch = bytearray(build_batch([NewRecord(b"a", b"k", 1)]))
    batch[22] |= 0x20
    batch[17:21] = struct.pack(">I", calc_crc32c(bytes(batch[21:])))
    assert decode(TP, bytes(batch), 0) == ((), 1)
    with pytest.raises(RefusedBatch, match="control"):
        accepted(bytes(batch), max_bytes=1000)


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.sampled_from(list(CODECS)))
def test_mutated_batch_is_corrupt_by_our_own_errors(data: st.DataObject, codec: str) -> None:
    batch = bytearray(build_batch([NewRecord(b"value" * 9, b"k", 1)] * 3, codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):  # with a valid checksum, only the bytes inside can show the change
        batch[17:21] = struct.pack(">I", calc_crc32c(bytes(batch[21:])))
    with contextlib.suppress(RefusedBatch):
        accepted(bytes(batch), max_bytes=1000)
    with contextlib.suppress(CorruptRecords):
        decode(TP, bytes(batch), 0)


def test_batch_that_unpacks_to_more_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression_module, "UNPACKED_BYTES_MIN", 1_000_000)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        small = build_batch([NewRecord(bytes(900_000), None, 1)], codec=codec)
        assert decode(TP, small, 0)[1] == 1
        large = build_batch([NewRecord(bytes(1_100_000), None, 1)], codec=codec)
        with pytest.raises(CorruptRecords):
            decode(TP, large, 0)
