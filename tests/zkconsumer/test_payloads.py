"""Znodes of the 0.8 consumer: the bytes that 0.8.2.2 wrote, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.values import NO_OFFSET, BrokerAddress
from zkconsumer.payloads import (
    STATIC,
    UnreadableZnode,
    offset_payload,
    parse_broker,
    parse_offset,
    parse_partitions,
    parse_registration,
    registration_payload,
    stream_of,
    thread_ids,
)

TOPICS = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20)


def test_a_registration_has_the_bytes_and_key_order_of_the_original() -> None:
    # Recorded from 0.8.2.2, group `range`, {alpha:2, beta:1}; only the time differs from run to run.
    assert registration_payload({"alpha": 2, "beta": 1}, 1795268370640) == (
        b'{"version":1,"subscription":{"alpha":2,"beta":1},"pattern":"static","timestamp":"1795268370640"}'
    )


def test_a_member_without_topics_registers_an_empty_subscription() -> None:
    payload = registration_payload({}, 1)
    assert payload == b'{"version":1,"subscription":{},"pattern":"static","timestamp":"1"}'
    assert parse_registration("/p", payload).subscription == {}


@given(st.dictionaries(TOPICS, st.integers(1, 20), max_size=5), st.integers(0, 2**50))
def test_a_registration_is_read_back(topics: dict[str, int], timestamp_ms: int) -> None:
    read = parse_registration("/p", registration_payload(topics, timestamp_ms))
    assert (read.pattern, read.subscription) == (STATIC, topics)


@pytest.mark.parametrize(
    ("data", "pattern"),
    [
        (b'{"subscription":{"^t.*":2},"pattern":"white_list"}', "white_list"),
        (b'{"subscription":{"^t.*":2},"pattern":"black_list"}', "black_list"),
        (b'{"subscription":{"t":2},"pattern":"anything"}', STATIC),
        (b'{"subscription":{},"pattern":"white_list"}', STATIC),
        (b'{"later":[1],"pattern":"static","subscription":{"t":1}}', STATIC),
    ],
)
def test_a_registration_is_read_as_the_original_reads_it(data: bytes, pattern: str) -> None:
    assert parse_registration("/p", data).pattern == pattern


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"[1]",
        b"\xff\xfe",
        b"1" * 5000,
        b"[" * 100_000,
        b'{"subscription":{"t":1}}',
        b'{"pattern":"static"}',
        b'{"pattern":"static","subscription":[1]}',
        b'{"pattern":"static","subscription":{"t":"1"}}',
        b'{"pattern":"static","subscription":{"t":-1}}',
        b'{"pattern":"static","subscription":{"t":true}}',
    ],
)
def test_an_unreadable_registration_is_refused_and_named(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/consumers/g/ids/c: "):
        parse_registration("/consumers/g/ids/c", data)


def test_partitions_are_read_in_numeric_order_from_old_and_new_brokers() -> None:
    old = b'{"version":1,"partitions":{"10":[1],"2":[1,2],"0":[2]}}'
    new = b'{"removing_replicas":{},"partitions":{"0":[1]},"topic_id":"abc","adding_replicas":{},"version":3}'
    assert parse_partitions("/p", old) == (0, 2, 10)
    assert parse_partitions("/p", new) == (0,)
    assert parse_partitions("/p", None) == ()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"partitions":[0]}', b'{"partitions":{"x":[0]}}', b'{"partitions":{"-1":[]}}']
)
def test_an_unreadable_topic_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/brokers/topics/t: "):
        parse_partitions("/brokers/topics/t", data)


def test_a_broker_is_read_from_every_version_of_its_node() -> None:
    v1 = b'{"jmx_port":-1,"timestamp":"1416000000000","host":"h1","version":1,"port":9092}'
    v5 = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://h1:9092"],"jmx_port":-1,"port":9092,"host":"h1","version":5,"timestamp":"1"}'
    )
    assert parse_broker("/brokers/ids/7", v1) == parse_broker("/brokers/ids/7", v5) == BrokerAddress(7, "h1", 9092)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"host":null,"port":-1}', b'{"host":"h","port":"9092"}'])
def test_an_unreadable_broker_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/brokers/ids/7: "):
        parse_broker("/brokers/ids/7", data)


@given(st.integers(0, 2**63 - 1))
def test_an_offset_is_decimal_text(offset: int) -> None:
    assert offset_payload(offset) == str(offset).encode()
    assert parse_offset("/p", offset_payload(offset)) == offset


def test_a_missing_offset_is_no_offset_and_nonsense_is_refused() -> None:
    assert parse_offset("/p", None) == NO_OFFSET
    for data in (b"", b"4.2", b"many", "４２x".encode()):
        with pytest.raises(UnreadableZnode, match="decimal"):
            parse_offset("/p", data)


def test_threads_count_from_zero_and_know_their_stream() -> None:
    assert thread_ids("g_c-1", 3) == ("g_c-1-0", "g_c-1-1", "g_c-1-2")
    assert [stream_of(thread) for thread in thread_ids("g_c-1", 12)] == list(range(12))
