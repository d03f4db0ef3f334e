"""Batches as messages from before 0.11: as a broker of 1.1.1 answered, and without a loss."""

from __future__ import annotations

import base64
import json
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import cramjam
import pytest
from aiokafka.record.util import calc_crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.records.compression import CODECS
from kernel.records.down_conversion import NotConvertible, down_converted
from kernel.records.records import CorruptRecords, NewRecord, build_batch, decode
from kernel.values import TopicPartition

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python calls a deprecated function while it is imported
    from kafka.record.legacy_records import LegacyRecordBatch

TP = TopicPartition("t", 0)
RECORDED = json.loads((Path(__file__).parent / "old-formats-1.1.1.json").read_text())["answers"]
OLD_CODECS = ("none", "gzip", "snappy", "lz4")

#: Offset, size, checksum, format and attributes come first; in format 1 a time follows.
HEAD_BYTES = {0: 18, 1: 26}


def at_offset(batch: bytes, offset: int) -> bytes:
    """The batch as a broker stores it."""
    return struct.pack(">q", offset) + batch[8:]


def with_attributes(batch: bytes, bits: int) -> bytes:
    """The batch with more bits set, without a new checksum: only checksums of the old formats are checked here."""
    changed = bytearray(batch)
    struct.pack_into(">h", changed, 21, struct.unpack_from(">h", batch, 21)[0] | bits)
    struct.pack_into(">I", changed, 17, calc_crc32c(bytes(changed[21:])))
    return bytes(changed)


def messages_of(data: bytes) -> list[bytes]:
    """The messages, split by their size fields."""
    found = []
    while data:
        (size,) = struct.unpack_from(">i", data, 8)
        found.append(data[: 12 + size])
        data = data[12 + size :]
    return found


def unwrapped(message: bytes, magic: int) -> tuple[int, bytes]:
    """(codec, content of a wrapper's value), unpacked by hand: no library reads format 0 with lz4."""
    attributes = message[17]
    key_size, value_size = struct.unpack_from(">ii", message, HEAD_BYTES[magic])
    assert key_size == -1, "a wrapper has no key"
    value = message[HEAD_BYTES[magic] + 8 :]
    assert len(value) == value_size
    match attributes & 7:
        case 1:
            return 1, zlib.decompress(value, 31)
        case 2:
            assert value[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
            return 2, b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in _blocks(value[16:], ">i"))
        case 3:
            assert value[:7] == b"\x04\x22\x4d\x18\x60\x40" + (b"\x82" if magic else b"\x1a")
            right = value[:6] + b"\x82" + value[7:]  # with the checksum of LZ4's specification
            return 3, bytes(cramjam.lz4.decompress(right))
    raise AssertionError(f"codec {attributes & 7}")


def _blocks(data: bytes, size_format: str) -> list[bytes]:
    blocks = []
    while data:
        (size,) = struct.unpack_from(size_format, data)
        blocks.append(data[4 : 4 + size])
        data = data[4 + size :]
    return blocks


def read(data: bytes, magic: int) -> list[tuple[int, int | None, bytes | None, bytes | None]]:
    """(offset, time, key, value) of every message, by kafka-python's reader once wrappers are opened."""
    found = []
    for message in messages_of(data):
        if not message[17] & 7:
            inner, base = message, 0
        else:
            _, inner = unwrapped(message, magic)
            (wrapper_offset,) = struct.unpack_from(">q", message)
            (last,) = struct.unpack_from(">q", messages_of(inner)[-1])
            base = wrapper_offset - last
            assert magic == 1 or base == 0, "format 0 has absolute offsets inside"
        for plain in messages_of(inner):
            batch = LegacyRecordBatch(plain, magic)
            assert batch.validate_crc()
            assert not plain[17] & 7
            found += [(base + one.offset, one.timestamp, one.key, one.value) for one in batch]
    return found


def same_messages(one: bytes, other: bytes, magic: int) -> bool:
    """Equal, except for the operating system in gzip's header."""

    def same(a: bytes, b: bytes) -> bool:
        if a == b:
            return True
        heads = [(message[:8], message[16 : HEAD_BYTES[magic]]) for message in (a, b)]
        return a[17] & 7 == 1 and heads[0] == heads[1] and unwrapped(a, magic) == unwrapped(b, magic)

    return all(same(a, b) for a, b in zip(messages_of(one), messages_of(other), strict=True))


@pytest.mark.parametrize(
    "answer", RECORDED, ids=lambda answer: f"{answer['codec']}-from-{answer['offset']}-format-{answer['format']}"
)
def test_batches_become_the_same_messages_as_at_a_broker_of_1_1_1(answer: dict[str, Any]) -> None:
    raw, expected = (base64.b64decode(answer[name]) for name in ("raw", "messages"))
    made = down_converted(TP, raw, answer["offset"], answer["format"])
    if answer["codec"] == "none":
        assert made == expected
    assert same_messages(made, expected, answer["format"])


def test_uncompressed_records_become_one_message_each_byte_for_byte() -> None:
    """By hand: offset 41, size 18, checksum, format 0, no attributes, key `k`, value `ab`; then a null value."""
    batch = at_offset(build_batch([NewRecord(b"ab", b"k", 5, (("h", b"x"),)), NewRecord(None, None, 6)]), 41)

    def message(offset: int, checked: bytes) -> bytes:
        return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked

    null = b"\xff\xff\xff\xff"
    assert down_converted(TP, batch, 41, 0) == (
        message(41, b"\0\0" + b"\0\0\0\1k" + b"\0\0\0\2ab") + message(42, b"\0\0" + null + null)
    )
    assert down_converted(TP, batch, 42, 1) == message(42, b"\1\0" + struct.pack(">q", 6) + null + null)


record_lists = st.lists(
    st.builds(
        NewRecord,
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=10),
        st.integers(0, 2**41),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(
    batches=st.lists(st.tuples(record_lists, st.sampled_from(OLD_CODECS)), min_size=1, max_size=3),
    first=st.integers(0, 2**40),
    skipped=st.integers(0, 5),
    magic=st.sampled_from([0, 1]),
)
@example(batches=[([NewRecord(b"x" * 70_000, None, 1)] * 2, "lz4")], first=7, skipped=0, magic=0)
@example(batches=[([NewRecord(bytes(range(256)) * 300, None, 1)] * 2, "snappy")], first=7, skipped=0, magic=1)
def test_every_record_is_read_back_by_another_reader(batches, first, skipped, magic) -> None:
    data, expected, end = b"", [], first
    begin = first + min(skipped, len(batches[0][0]) - 1)
    for records, codec in batches:
        data += at_offset(build_batch(records, codec=codec), end)
        for record in records:
            if codec != "none" or end >= begin:
                expected.append((end, record.timestamp_ms if magic else None, record.key, record.value))
            end += 1
    made = down_converted(TP, data, begin, magic)
    assert read(made, magic) == expected
    for message in messages_of(made):
        assert zlib.crc32(message[16:]) == struct.unpack_from(">I", message, 12)[0]


@settings(deadline=None)
@given(records=record_lists, codec=st.sampled_from(OLD_CODECS), offset=st.integers(0, 2**40))
def test_our_own_client_reads_format_1_as_it_reads_format_2(records, codec, offset) -> None:
    batch = at_offset(build_batch(records, codec=codec), offset)
    new, new_end = decode(TP, batch, offset)
    old, old_end = decode(TP, down_converted(TP, batch, offset, 1), offset)
    assert old_end == new_end
    assert [(r.offset, r.timestamp_ms, r.key, r.value) for r in old] == [
        (r.offset, r.timestamp_ms, r.key, r.value) for r in new
    ]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_time_of_the_append_goes_to_the_wrapper_and_every_message(codec: str) -> None:
    batch = with_attributes(build_batch([NewRecord(b"a", None, 5), NewRecord(b"b", None, 9)], codec=codec), 0x08)
    made = messages_of(down_converted(TP, batch, 0, 1))
    plain = made if codec == "none" else messages_of(unwrapped(made[0], 1)[1])
    for message in (*made, *plain):
        assert message[17] & 0x08
        assert struct.unpack_from(">q", message, 18) == (9,)
    assert not down_converted(TP, batch, 0, 0)[17] & 0x08, "format 0 has no times"


def test_wrapper_has_the_last_offset_and_the_newest_time() -> None:
    batch = at_offset(build_batch([NewRecord(b"a", None, 9), NewRecord(b"b", None, 5)], codec="gzip"), 40)
    (message,) = messages_of(down_converted(TP, batch, 41, 1))
    assert struct.unpack_from(">q", message) == (41,)
    assert struct.unpack_from(">q", message, 18) == (9,)
    inner = messages_of(unwrapped(message, 1)[1])
    assert [struct.unpack_from(">q", one)[0] for one in inner] == [0, 1]


def test_control_batches_are_left_out() -> None:
    marker = with_attributes(build_batch([NewRecord(b"\0\0\0\0\0\0", b"\0\0\0\1", 0)]), 0x30)
    batch = at_offset(build_batch([NewRecord(b"a", None, 0)]), 1)
    assert [one[0] for one in read(down_converted(TP, marker + batch, 0, 0), 0)] == [1]
    assert down_converted(TP, marker, 0, 1) == b""


def test_data_without_a_whole_batch_is_returned_unchanged() -> None:
    batch = build_batch([NewRecord(b"a", None, 0)])
    for cut in range(len(batch)):
        assert down_converted(TP, batch[:cut], 0, 0) == batch[:cut]
    assert down_converted(TP, batch + batch[:30], 0, 0) == down_converted(TP, batch, 0, 0), (
        "a truncated end is left out"
    )


def test_zstd_and_nonsense_are_refused() -> None:
    with pytest.raises(NotConvertible, match="zstd"):
        down_converted(TP, build_batch([NewRecord(b"a", None, 0)], codec="zstd"), 0, 1)
    batch = bytearray(build_batch([NewRecord(b"a" * 50, None, 0)], codec="gzip"))
    batch[-5] ^= 0xFF
    with pytest.raises(CorruptRecords):
        down_converted(TP, bytes(batch), 0, 0)
    assert set(CODECS) == {*OLD_CODECS, "zstd"}
