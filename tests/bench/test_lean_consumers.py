"""Frames of the bench's members of the `consumer` design are Kafka's, and a group of them is told from a torn one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from bench import lean_consumers
from bench.lean_consumers import Answer, ConsumerMember, parsed
from kernel.clock import milliseconds
from kernel.wire.codec import decode_request, encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

TOPIC_ID = UUID(int=7)


def member() -> ConsumerMember:
    made = ConsumerMember("c7", "g", 7, "t")
    made.epoch, made.interval_ms = 3, 5_000
    return made


def answer_of(partitions: Sequence[int] | None, error: ErrorCode = ErrorCode.none) -> bytes:
    rows = [{"topic_id": TOPIC_ID, "partitions": partitions}] if partitions else []
    body = {
        "error_code": error,
        "member_id": member().member_id,
        "member_epoch": 3,
        "heartbeat_interval": 5_000,
        "assignment": None if partitions is None else {"topic_partitions": rows},
    }
    return encode_response(Api.ConsumerGroupHeartbeat, 1, 7, body)


def decoded(frame: bytes):
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return decode_request(frame[4:])


def test_requests_conform_to_the_schema():
    join = decoded(member().join())
    assert (join.api, join.version, join.client_id) == (Api.ConsumerGroupHeartbeat, 1, "c7")
    assert (join.body.group_id, join.body.member_id, join.body.member_epoch) == ("g", member().member_id, 0)
    assert (join.body.subscribed_topic_names, join.body.topic_partitions) == (("t",), ())
    heartbeat = decoded(member().heartbeat()).body
    assert (heartbeat.member_epoch, heartbeat.subscribed_topic_names, heartbeat.topic_partitions) == (3, None, None)
    assert milliseconds(heartbeat.rebalance_timeout) == -1
    assert decoded(member().leave()).body.member_epoch == -1


@pytest.mark.parametrize("partitions", [(), (5,), tuple(range(300))])
def test_what_was_assigned_is_reported(partitions: tuple[int, ...]):
    said = parsed(answer_of(partitions))
    assert said[:3] == (0, 3, 5_000)
    assert said.rows is not None
    assert lean_consumers.count_of(said.rows) == len(partitions)
    assert lean_consumers.partitions_of(said.rows) == partitions
    reporting = member()
    reporting.owned = said.rows
    report = decoded(reporting.report()).body.topic_partitions
    assert [(row.topic_id, row.partitions) for row in report] == ([(TOPIC_ID, partitions)] if partitions else [])


def test_answers_without_an_assignment_conform_to_the_schema():
    assert parsed(answer_of(None)) == Answer(0, 3, 5_000, None)
    assert member().heartbeat_answer(0) == answer_of(None)
    assert parsed(answer_of(None, ErrorCode.fenced_member_epoch)).error == 110
