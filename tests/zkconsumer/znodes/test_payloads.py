"""Znodes of the 0.8 consumer: the bytes that 0.8.2.2 wrote, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.client.connection import BrokerConnection
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, BrokerAddress
from kernel.zookeeper.offset_text import offset_text
from zkconsumer.znodes.filters import matching
from zkconsumer.znodes.payloads import (
    NO_LISTENER,
    STATIC,
    UnreadableZnode,
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


def test_1_1_escapes_a_pattern_twice_so_that_one_with_a_backslash_matches_nothing() -> None:
    """Recorded from 1.1.1: al\\w+/?"?é? is read back as a pattern with escapes in it."""
    payload = registration_payload({'al\\w+/?"?é?': 1}, 1, "white_list", release="1.1")
    assert '"al\\\\\\\\w+\\\\/?\\\\\\"?é?":1' in payload.decode()
    read = parse_registration("/p", payload)
    assert list(read.subscription) == ['al\\\\w+\\/?\\"?é?']
    assert matching("white_list", next(iter(read.subscription)), ["alpha"], exclude_internal=True) == ()
    assert registration_payload({"t": 2}, 1, release="1.1") == registration_payload({"t": 2}, 1)


def test_a_member_without_topics_registers_an_empty_subscription() -> None:
    payload = registration_payload({}, 1)
    assert payload == b'{"version":1,"subscription":{},"pattern":"static","timestamp":"1"}'
    assert parse_registration("/p", payload).subscription == {}


@given(st.dictionaries(TOPICS, st.integers(1, 20), max_size=5), st.integers(0, 2**50))
def test_registration_survives_a_round_trip(topics: dict[str, int], timestamp_ms: int) -> None:
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
        (b'{"subscription":{"t":2},"pattern":null}', STATIC),
        (b'{"subscription":{"t\t":2},"pattern":"static"}\x00\n', STATIC),
        (b'{"subscription":{"\xff":2},"pattern":"static"}', STATIC),
        (b'{"subscription":{"(":2},"pattern":"static"}', STATIC),
        (b'{"subscription":{"a\\.b":2},"pattern":"white_list"}', "white_list"),
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
        b'{"pattern":"static","subscription":{"t":0}}',
        b'{"pattern":"static","subscription":{"t":1.0}}',
        b'{"pattern":"static","subscription":{"t":2147483648}}',
        b'{"pattern":"static","subscription":{"t":2000000000}}',
        b'{"pattern":"static","subscription":{"t":' + b"9" * 5000 + b"}}",
        b'{"pattern":"static","subscription":{"\\ud800":1}}',
        b'{"pattern":"static","subscription":null}',
        b'{"pattern":5,"subscription":{"t":1}}',
        b'{"pattern":"static","subscription":{"t":1},"timestamp":1416000000000}',
        b'{"pattern":"static","subscription":{"t":1},"version":NaN}',
        b'{"pattern":"static","subscription":{"t":1}} and more',
        b'{"pattern":"white_list","subscription":{"(":1}}',
        b'{"pattern":"black_list","subscription":{"[a&&b]":1}}',
        b'{"pattern":"static","subscription":{"t":1},"deep":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    ],
)
def test_an_unreadable_registration_is_refused_and_named(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/consumers/g/ids/c: "):
        parse_registration("/consumers/g/ids/c", data)


def test_backslash_that_escapes_nothing_is_literal() -> None:
    # As 0.8.2.2's parser reads it: such a pattern was written by hand.
    data = b'{"subscription":{"a\\.b\\\\d\\"":1},"pattern":"white_list"}'
    assert parse_registration("/p", data).subscription == {'a\\.b\\d"': 1}


def test_first_of_several_patterns_counts() -> None:
    data = b'{"subscription":{"a":1,"b":2},"pattern":"black_list"}'
    assert parse_registration("/p", data).subscription == {"a": 1}


@given(st.text(min_size=1).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)), st.integers(1, 9))
def test_any_name_survives_the_escapes(name: str, streams: int) -> None:
    # Static, so that it need not be an expression. Except for U+FFFD, decoding replaces nothing.
    read = parse_registration("/p", registration_payload({name: streams}, 1))
    assert read.subscription == {name: streams}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["pattern", "subscription", "partitions", "host", "port", "0", "7", "-1", "white_list", "t"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_znode_holds_is_read_or_refused_by_its_name(data: bytes) -> None:
    for parse in (parse_registration, parse_partitions, parse_broker, parse_offset):
        said = refusal(parse, "/brokers/ids/7", data)
        assert said is None or (said.startswith("/brokers/ids/7: ") and len(said) < 400)


def refusal(parse: Callable[[str, bytes], object], path: str, data: bytes) -> str | None:
    try:
        parse(path, data)
    except UnreadableZnode as error:
        return str(error)
    return None


def test_partitions_are_read_in_numeric_order_from_old_and_new_brokers() -> None:
    old = b'{"version":1,"partitions":{"10":[1],"2":[1,2],"0":[2]}}'
    new = b'{"removing_replicas":{},"partitions":{"0":[1]},"topic_id":"abc","adding_replicas":{},"version":3}'
    assert parse_partitions("/p", old) == (0, 2, 10)
    assert parse_partitions("/p", new) == (0,)
    assert parse_partitions("/p", None) == ()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[1]", b'{"partitions":null}', b'{"partitions":[0]}', b'{"partitions":{"x":[0]}}'),
        *(b'{"partitions":{"-1":[]}}', b'{"partitions":{"2147483648":[]}}', b'{"partitions":{"0":[1.5]}}'),
    ],
)
def test_an_unreadable_topic_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/brokers/topics/t: "):
        parse_partitions("/brokers/topics/t", data)


@pytest.mark.parametrize(
    "data", [b"nonsense", b" ", b"5", b"{}", b'{"version":1}', b'{"partitions":{}}', b"[" * 100_000]
)
def test_topic_without_a_partitions_field_has_none_as_in_the_original(data: bytes) -> None:
    assert parse_partitions("/p", data) == ()


def test_partitions_may_have_gaps_and_any_replicas() -> None:
    data = b'{"partitions":{"7":null,"3":"x","+5":[1],"007":[]}}'
    assert parse_partitions("/p", data) == (3, 5, 7)


def test_a_broker_is_read_from_every_version_of_its_node() -> None:
    v1 = b'{"jmx_port":-1,"timestamp":"1416000000000","host":"h1","version":1,"port":9092}'
    v5 = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://h1:9092"],"jmx_port":-1,"port":9092,"host":"h1","version":5,"timestamp":"1"}'
    )
    assert parse_broker("/brokers/ids/7", v1) == parse_broker("/brokers/ids/7", v5) == BrokerAddress(7, "h1", 9092)


@pytest.mark.parametrize(
    "data",
    [b'{"host":null,"port":-1}', b'{"host":"h","port":-1}', b'{"host":"h","port":70000}', b'{"host":"","port":1}'],
)
def test_a_broker_without_a_plain_listener_counts_and_cannot_be_connected_to(data: bytes) -> None:
    found = parse_broker("/brokers/ids/7", data)
    assert found == BrokerAddress(7, *NO_LISTENER)
    with pytest.raises(Unavailable):
        asyncio.run(BrokerConnection.open(found.host, found.port, "c", timeout_ms=2000))


@pytest.mark.parametrize("path", ["/brokers/ids/x", "/brokers/ids/-1", "/brokers/ids/" + "9" * 5000])
def test_broker_with_a_non_numeric_name_is_refused(path: str) -> None:
    with pytest.raises(UnreadableZnode, match="a broker needs"):
        parse_broker(path, b'{"host":"h","port":1}')


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"host":"h"}', b'{"host":1,"port":1}', b'{"host":"h","port":"9092"}', b'{"host":"h","port":true}'],
)
def test_an_unreadable_broker_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableZnode, match="/brokers/ids/7: "):
        parse_broker("/brokers/ids/7", data)


@given(st.integers(0, 2**63 - 1))
def test_an_offset_is_decimal_text(offset: int) -> None:
    assert offset_text(offset) == str(offset).encode()
    assert parse_offset("/p", offset_text(offset)) == offset


def test_missing_offset_is_none_and_a_malformed_one_is_refused() -> None:
    assert parse_offset("/p", None) == NO_OFFSET
    assert parse_offset("/p", b"+5") == 5
    assert parse_offset("/p", b"-1") == NO_OFFSET
    for data in (b"", b"4.2", b"many", "４２x".encode(), b" 5", b"1_000", b"9" * 19, b"9" * 5000, b"5\n"):
        with pytest.raises(UnreadableZnode, match="decimal"):
            parse_offset("/p", data)


def test_threads_count_from_zero_and_know_their_stream() -> None:
    assert thread_ids("g_c-1", 3) == ("g_c-1-0", "g_c-1-1", "g_c-1-2")
    assert [stream_of(thread) for thread in thread_ids("g_c-1", 12)] == list(range(12))
