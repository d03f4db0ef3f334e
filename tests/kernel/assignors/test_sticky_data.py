"""User data of the sticky strategies: Kafka's bytes, older ones, and garbled ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.sticky_data import (
    NO_GENERATION,
    Claim,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kernel.values import TopicPartition

HAD = (TopicPartition("a", 1), TopicPartition("bc", 0), TopicPartition("bc", 7))
BYTES = "00000002000161000000010000000100026263000000020000000000000007"


def test_bytes_are_those_of_kafkas_schemas():
    assert encode_sticky(HAD, None).hex() == BYTES
    assert encode_sticky(HAD, 9).hex() == BYTES + "00000009"
    assert encode_sticky((), 0).hex() == "0000000000000000"
    assert encode_cooperative(3).hex() == "00000003"


def test_bytes_are_read_back_with_and_without_a_generation():
    assert decode_sticky(bytes.fromhex(BYTES + "00000009")) == Claim(HAD, 9)
    assert decode_sticky(bytes.fromhex(BYTES)) == Claim(HAD, None)
    assert decode_sticky(bytes.fromhex(BYTES + "00000009ff")) == Claim(HAD, 9)
    assert decode_sticky(bytes.fromhex(BYTES + "0000")) == Claim(HAD, None)


@pytest.mark.parametrize("data", [None, b""])
def test_no_user_data_is_no_claim(data):
    assert decode_sticky(data) == Claim((), None)


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex(BYTES)[:-1],
        b"\x00",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">ihi", 1, 0, 2**31 - 1),
        struct.pack(">ihi", 1, 0, -1),
        struct.pack(">ih", 1, -1) + bytes(8),
        struct.pack(">ih", 1, 100) + bytes(8),
    ],
)
def test_malformed_data_claims_nothing_without_a_generation(data):
    assert decode_sticky(data) == Claim((), NO_GENERATION)


def test_name_that_is_not_utf8_leaves_the_other_topics_claimed():
    """Kafka 4.1.1 assigns `bc` to a member with this claim, as Java decodes such bytes as replacement characters."""
    claimed, generation = decode_sticky(bytes.fromhex(BYTES + "00000009").replace(b"a", b"\xff"))
    assert claimed[1:] == HAD[1:]
    assert generation == 9


def test_cooperative_generation_is_four_bytes():
    assert decode_cooperative(None) is None
    assert decode_cooperative(b"") == NO_GENERATION
    assert decode_cooperative(bytes(3)) == NO_GENERATION
    assert decode_cooperative(bytes.fromhex("00000004ff")) == 4


partitions = st.lists(st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1)), unique=True)


@given(partitions, st.one_of(st.none(), st.integers(-1, 2**31 - 1)))
def test_user_data_survives_a_round_trip(had, generation):
    claim = decode_sticky(encode_sticky(had, generation))
    assert sorted(claim.partitions) == sorted(had)
    assert claim.generation == generation


@given(st.binary(max_size=60))
def test_reader_survives_any_bytes(data):
    assert isinstance(decode_sticky(data), Claim)
    assert isinstance(decode_cooperative(data), int)
