"""The bytes of the consumer protocol: compared with kafka-python's, round trips, and garbled input."""

from __future__ import annotations

import struct
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.protocol.consumer_protocol import (
    NEWEST_VERSION,
    Assignment,
    MalformedMetadata,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python calls a deprecated function while it is imported
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

VERSIONS = range(NEWEST_VERSION + 1)
OWNED = (TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("bé", 1))
SUBSCRIPTION = MemberSubscription(topics=("a", "bé"), owned=OWNED, generation=7, user_data=b"\x00x")


def theirs(version: int) -> bytes:
    """kafka-python's encoding of SUBSCRIPTION, with its version in front."""
    owned = []
    if version >= 1:
        owned = [
            ConsumerProtocolSubscription.TopicPartition(topic="a", partitions=[0, 3], version=version),
            ConsumerProtocolSubscription.TopicPartition(topic="bé", partitions=[1], version=version),
        ]
    message = ConsumerProtocolSubscription(
        topics=["a", "bé"],
        user_data=b"\x00x",
        owned_partitions=owned,
        generation_id=7 if version >= 2 else -1,
        rack_id=None,
        version=version,
    )
    return bytes(message.encode())


def known_to(version: int) -> MemberSubscription:
    """The part of SUBSCRIPTION that a version can express."""
    return MemberSubscription(
        topics=SUBSCRIPTION.topics,
        owned=OWNED if version >= 1 else (),
        generation=7 if version >= 2 else None,
        user_data=SUBSCRIPTION.user_data,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_subscription_has_the_bytes_that_kafka_python_writes(version: int) -> None:
    assert encode_subscription(SUBSCRIPTION, version=version) == theirs(version)
    assert decode_subscription(theirs(version)) == known_to(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_assignment_has_the_bytes_that_kafka_python_writes(version: int) -> None:
    parts = [
        ConsumerProtocolAssignment.TopicPartition(topic="a", partitions=[0, 3], version=version),
        ConsumerProtocolAssignment.TopicPartition(topic="bé", partitions=[1], version=version),
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=parts, user_data=None, version=version)
    assert encode_assignment(OWNED, version=version) == bytes(message.encode())
    assert decode_assignment(bytes(message.encode())) == Assignment(frozenset(OWNED), None)


def test_golden_bytes_of_version_3() -> None:
    """Written out by hand from the schema: version, topics, null user data, owned, generation -1, no rack."""
    plain = encode_subscription(MemberSubscription(topics=("t",)))
    assert plain.hex() == "000300000001000174ffffffff00000000ffffffffffff"
    assert encode_assignment([TopicPartition("t", 2)]).hex() == "0003000000010001740000000100000002ffffffff"


def test_newer_version_is_read_up_to_the_known_fields() -> None:
    newer = struct.pack(">h", 9) + theirs(3)[2:] + b"fields of the future"
    assert decode_subscription(newer) == known_to(3)
    assert decode_assignment(struct.pack(">h", 9) + encode_assignment(OWNED)[2:] + b"more").partitions == set(OWNED)


def test_instance_id_comes_from_join_group() -> None:
    assert decode_subscription(theirs(1), instance_id="i").instance_id == "i"


def test_no_bytes_are_an_empty_assignment() -> None:
    assert decode_assignment(b"") == Assignment()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xff\x00\x00\x00\x00",  # version -1
        b"\x00\x00\x7f\xff\xff\xff",  # two billion topics
        b"\x00\x00\x00\x00\x00\x01\xff\xff",  # a null topic
        b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe\xff\xff\xff\xff",  # not UTF-8
        theirs(3)[:-3],
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMetadata):
        decode_subscription(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except MalformedMetadata:
            continue


topics = st.text(min_size=1, max_size=8)
partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))


@given(
    st.builds(
        MemberSubscription,
        topics=st.lists(topics).map(tuple),
        owned=st.sets(partitions).map(lambda owned: tuple(sorted(owned))),
        generation=st.one_of(st.none(), st.integers(0, 2**31 - 1)),
        user_data=st.one_of(st.none(), st.binary()),
    )
)
def test_subscription_survives_a_round_trip(subscription: MemberSubscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(st.frozensets(partitions), st.one_of(st.none(), st.binary()))
def test_assignment_survives_a_round_trip(assigned: frozenset[TopicPartition], user_data: bytes | None) -> None:
    assert decode_assignment(encode_assignment(assigned, user_data=user_data)) == Assignment(assigned, user_data)
