"""Heartbeat responses of our own encoder compared with kio's, byte for byte."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.partitions import partitions
from coordinator.service.consumer_records import encode_partitions
from kernel.wire import codec
from kernel.wire.codec import encode_response
from kernel.wire.consumer_heartbeats import consumer_heartbeat_tail
from kernel.wire.errors import ErrorCode
from kernel.wire.heartbeats import TAILS
from kernel.wire.versions import SERVED, Api


@pytest.mark.parametrize("version", range(SERVED[Api.Heartbeat][0], SERVED[Api.Heartbeat][1] + 1))
def test_every_answer_is_the_one_that_kio_writes(version: int) -> None:
    assert set(TAILS[version]) == {code.value for code in ErrorCode}
    for code in ErrorCode:
        written = codec.encode_response(Api.Heartbeat, version, 9, {"error_code": code})
        assert codec.response_with(9, TAILS[version][code.value]) == written


# -- ConsumerGroupHeartbeat responses encoded by hand are byte for byte what kio writes --------------------------------

LOWEST, HIGHEST = SERVED[Api.ConsumerGroupHeartbeat]
TEXTS = st.text(max_size=300)
INT32 = st.integers(-(2**31), 2**31 - 1)
TOPICS = st.dictionaries(st.uuids().map(lambda given: given.bytes), st.sets(st.integers(0, 2**31 - 1), min_size=1))


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
@given(
    st.sampled_from(ErrorCode),
    st.none() | TEXTS,
    st.none() | TEXTS,
    INT32,
    st.integers(0, 2**31 - 1),
    st.none() | TOPICS.map(dict.items),
)
def test_response_is_encoded_as_by_kio(version, error, message, member_id, epoch, interval_ms, given_) -> None:
    assignment = None if given_ is None else partitions(given_)
    rows = [{"topic_id": UUID(bytes=t), "partitions": sorted(ns)} for t, ns in sorted((assignment or {}).items())]
    body = {
        "error_code": error,
        "error_message": message,
        "member_id": member_id,
        "member_epoch": epoch,
        "heartbeat_interval": interval_ms,
        "assignment": None if assignment is None else {"topic_partitions": rows},
    }
    tail = consumer_heartbeat_tail(
        error=error.value,
        message=message,
        member_id=member_id,
        epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        rows=None if assignment is None else encode_partitions(assignment),
    )
    assert encode_response(Api.ConsumerGroupHeartbeat, version, 1, body)[8:] == tail
