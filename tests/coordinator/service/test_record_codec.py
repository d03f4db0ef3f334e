"""The coordinator's records as bytes: vectors read from the log of a 4.1.1 broker, older versions, and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.consumer_records import EpochKey, EpochRecord, TargetEpochKey, TargetEpochRecord
from coordinator.groups.records import (
    GroupKey,
    GroupRecord,
    MemberRecord,
    OffsetKey,
    OffsetRecord,
    PendingKey,
    Phase,
    ProducerKey,
    ProducerRecord,
    Profile,
    TransactionKey,
    TransactionRecord,
)
from coordinator.service.record_codec import decode_all, encode
from coordinator.service.record_reader import MalformedRecord

MEMBER = "a-4f9ee754-38b2-4b9a-a226-6546c9d5f73b"
SUBSCRIPTION = bytes.fromhex("0000000000010002743100000000")
ASSIGNMENT = bytes.fromhex("0000000000010002743100000002000000000000000100000000")

#: What a real 4.1.1 broker wrote into __consumer_offsets, and what it means.
WRITTEN_BY_KAFKA = [
    pytest.param(
        "0001000f61732d39313932373465662e31322e0002743100000000",
        "00040000000000000008ffffffff01000001a1fe62bad000",
        (OffsetKey("as-919274ef.12.", "t1", 0), OffsetRecord(8, -1, "", 1795269245648)),
        id="offset",
    ),
    pytest.param(
        "0002000e61732d39386661343939312e302e",
        "0003000000000000ffffffff000001a1fe62a81900000000",
        (GroupKey("as-98fa4991.0."), GroupRecord("", 0, None, None, 1795269240857, ())),
        id="new group",
    ),
    pytest.param(
        "0002000e61732d39386661343939312e382e",
        "00030008636f6e73756d657200000001000572616e67650026612d34663965653735342d333862322d346239612d613232362d3635"
        "34366339643566373362000001a1fe62ac80000000010026612d34663965653735342d333862322d346239612d613232362d363534"
        "366339643566373362ffff000161000a2f3132372e302e302e3100002710000075300000000e00000000000100027431000000000"
        "000001a0000000000010002743100000002000000000000000100000000",
        (
            GroupKey("as-98fa4991.8."),
            GroupRecord(
                "consumer",
                1,
                "range",
                MEMBER,
                1795269241984,
                (MemberRecord(Profile(MEMBER, None, "a", "/127.0.0.1", 10_000, 30_000, SUBSCRIPTION), ASSIGNMENT),),
            ),
        ),
        id="stable group",
    ),
]


@pytest.mark.parametrize(("key", "value", "change"), WRITTEN_BY_KAFKA)
def test_record_of_a_real_broker_is_read_and_written_again_byte_for_byte(key, value, change):
    pair = (bytes.fromhex(key), bytes.fromhex(value))
    (read,) = decode_all([pair])
    assert read == change
    assert encode(change) == pair


@pytest.mark.parametrize(
    ("key", "written"), [(OffsetKey("g", "t", 3), "000100016700017400000003"), (GroupKey("g"), "0002000167")]
)
def test_tombstone_has_the_records_key_and_no_value(key, written):
    assert encode((key, None)) == (bytes.fromhex(written), None)


@pytest.mark.parametrize(
    ("value", "record"),
    [
        ("0000 0000000000000007 0001 78 0000000000000009", OffsetRecord(7, -1, "x", 9)),
        ("0001 0000000000000007 0001 78 0000000000000009 000000000000000b", OffsetRecord(7, -1, "x", 9)),
        ("0002 0000000000000007 0001 78 0000000000000009", OffsetRecord(7, -1, "x", 9)),
        ("0003 0000000000000007 00000005 0001 78 0000000000000009", OffsetRecord(7, 5, "x", 9)),
        ("0004 0000000000000007 00000005 02 78 0000000000000009 01 00 01 ff", OffsetRecord(7, 5, "x", 9)),
    ],
    ids=["v0", "v1", "v2", "v3", "v4 with a tag"],
)
def test_offset_of_every_version_is_read(value, record):
    key, _ = encode((OffsetKey("g", "t", 0), None))
    assert list(decode_all([(key, bytes.fromhex(value))])) == [(OffsetKey("g", "t", 0), record)]


def test_group_of_version_0_has_no_rebalance_timeout_but_the_session_timeout():
    value = struct.pack(">hh1sih1sh1si", 0, 1, b"c", 4, 1, b"r", 1, b"m", 1)
    value += struct.pack(">h1sh1sh1si", 1, b"m", 1, b"k", 1, b"h", 700) + struct.pack(">i1si1s", 1, b"s", 1, b"a")
    key, _ = encode((GroupKey("g"), None))
    expected = GroupRecord("c", 4, "r", "m", -1, (MemberRecord(Profile("m", None, "k", "h", 700, 700, b"s"), b"a"),))
    assert list(decode_all([(key, value)])) == [(GroupKey("g"), expected)]


@pytest.mark.parametrize("version", [4, 9, 15, 17, 29_999])
def test_keys_of_later_protocols_are_skipped(version):
    assert list(decode_all([(struct.pack(">h", version) + b"\0\x01g", b"\0\0\0\0\0\x01")])) == []


def test_records_of_consumer_groups_are_read_among_the_others():
    changes = [(EpochKey("g"), EpochRecord(7, 5)), (GroupKey("g"), None), (TargetEpochKey("g"), TargetEpochRecord(7))]
    stored = [(key, value) for key, value in map(encode, changes) if value is not None]
    assert list(decode_all(stored)) == [changes[0], changes[2]]


texts = st.text(max_size=20).filter(lambda text: text.isprintable())
profiles = st.builds(
    Profile, texts, st.none() | texts, texts, texts, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1),
    st.binary(max_size=30), st.none(), st.none(),
)  # fmt: skip
members = st.builds(MemberRecord, profiles, st.binary(max_size=30))
groups = st.builds(
    GroupRecord, texts, st.integers(0, 2**31 - 1), st.none() | texts, st.none() | texts,
    st.integers(-1, 2**62), st.lists(members, max_size=3).map(tuple),
)  # fmt: skip
offsets = st.builds(
    OffsetRecord, st.integers(-(2**63), 2**63 - 1), st.integers(-1, 2**31 - 1), st.text(max_size=300),
    st.integers(0, 2**62),
)  # fmt: skip
numbers, ids, epochs = st.integers(0, 2**31 - 1), st.integers(0, 2**62), st.integers(-1, 2**15 - 1)
transactions = st.builds(
    TransactionRecord, ids, epochs, epochs, numbers, st.sampled_from(Phase), st.lists(texts, max_size=3).map(tuple),
    st.integers(-1, 2**62),
)  # fmt: skip
changes = (
    st.tuples(st.builds(GroupKey, texts), groups)
    | st.tuples(st.builds(OffsetKey, texts, texts, numbers), offsets)
    | st.tuples(st.builds(PendingKey, ids, texts, texts, numbers), offsets)
    | st.tuples(st.builds(TransactionKey, texts), transactions)
    | st.tuples(st.builds(ProducerKey, ids), st.builds(ProducerRecord, epochs, numbers))
)


@given(changes)
def test_every_record_survives_a_round_trip(change):
    key, value = encode(change)
    assert value is not None
    assert list(decode_all([(key, value)])) == [change]


@given(changes, st.data())
def test_truncated_record_has_its_own_error(change, data):
    key, value = encode(change)
    assert value is not None
    cut = data.draw(st.integers(0, len(value) - 1))
    try:
        list(decode_all([(key, value[:cut])]))
    except MalformedRecord:
        return
    # Only a flexible record's tags, which are not read, can be missed.
    assert cut == len(value) - 1


def test_unknown_value_version_is_refused():
    key, _ = encode((GroupKey("g"), None))
    with pytest.raises(MalformedRecord, match="value version 9"):
        list(decode_all([(key, b"\0\x09")]))


def test_transaction_in_an_unknown_phase_is_refused():
    key, value = encode((TransactionKey("x"), TransactionRecord(7, 0, -1, 1, Phase.EMPTY, (), -1)))
    assert value is not None
    with pytest.raises(MalformedRecord, match="phase 9"):
        list(decode_all([(key, value[:18] + b"\x09" + value[19:])]))
