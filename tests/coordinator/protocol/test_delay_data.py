"""The bytes that carry the delay, and the page that documents them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.protocol.consumer_protocol import (
    MalformedMetadata,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator.protocol.delay_data import DELAY_MS_MAX, delay_of, encode_delay
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

PAGE = Path(__file__).resolve().parents[3] / "docs" / "delayed-protocol.md"
EXAMPLE = re.compile(
    r"```\n(subscription|assignment) C\d owns (nothing|[\d ]+ of t),? (?:delay|since generation) (\d+)\n"
    r"([0-9a-f \n]+)```"
)


@given(st.integers(0, DELAY_MS_MAX), st.binary(max_size=4))
def test_delay_is_read_despite_appended_fields(delay_ms, appended):
    assert delay_of(encode_delay(delay_ms) + appended) == delay_ms


@pytest.mark.parametrize("nothing", [None, b""])
def test_assignment_without_user_data_asks_for_no_rejoin(nothing):
    assert delay_of(nothing) == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\0\0\0\1", "a delay in 5 bytes"),
        (b"\0\0\xff\xff\xff\xff", "a delay of -1 ms"),
        (b"\xff\xff\0\0\0\1", "version -1"),
    ],
)
def test_unreadable_delay_is_malformed(data, message):
    with pytest.raises(MalformedMetadata, match=message):
        delay_of(data)


def test_examples_of_the_page_equal_our_bytes():
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) == 4
    for kind, owned, number, text in examples:
        partitions = tuple(TopicPartition("t", int(n)) for n in re.findall(r"\d+", owned))
        data = bytes.fromhex(text)
        if kind == "subscription":
            subscription = MemberSubscription(topics=("t",), owned=partitions, generation=int(number))
            assert encode_subscription(subscription) == data
            assert decode_subscription(data) == subscription
        else:
            assert encode_assignment(partitions, user_data=encode_delay(int(number))) == data
            read = decode_assignment(data)
            assert (read.partitions, delay_of(read.user_data)) == (frozenset(partitions), int(number))
