"""Fetch 0 to 3 and ListOffsets 0, byte for byte, written by hand from the protocol's description."""

from __future__ import annotations

import pytest

from kernel.wire.codec import decode_request, decode_response, encode_request, encode_response
from kernel.wire.errors import ErrorCode, MalformedFrame
from kernel.wire.versions import Api

#: API 1, version, correlation 7, client "c"; replica -1, 100 ms, 1 byte.
FETCH_HEAD = "0001 000{} 00000007 0001 63 ffffffff 00000064 00000001"
#: One topic "t" with partition 1 from offset 5, 99 bytes at most.
FETCH_TOPICS = "00000001 0001 74 00000001 00000001 0000000000000005 00000063"


def framed(text: str) -> bytes:
    payload = bytes.fromhex(text)
    return len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize(("version", "limit"), [(0, ""), (1, ""), (2, ""), (3, "00000200")])
def test_fetch_request(version: int, limit: str) -> None:
    frame = framed(FETCH_HEAD.format(version) + limit + FETCH_TOPICS)
    partition = {"partition": 1, "fetch_offset": 5, "partition_max_bytes": 99}
    body = {"max_wait": 100, "min_bytes": 1, "max_bytes": 512, "topics": [{"topic": "t", "partitions": [partition]}]}
    assert encode_request(Api.Fetch, version, 7, "c", body) == frame
    request = decode_request(frame[4:])
    assert (request.api, request.version, request.client_id) == (Api.Fetch, version, "c")
    assert getattr(request.body, "max_bytes", None) == (512 if version == 3 else None)
    (topic,) = request.body.topics
    assert (topic.topic, topic.partitions[0].fetch_offset, topic.partitions[0].partition_max_bytes) == ("t", 5, 99)


@pytest.mark.parametrize(("version", "throttled"), [(0, ""), (1, "00000009"), (2, "00000009"), (3, "00000009")])
def test_fetch_response(version: int, throttled: str) -> None:
    topics = "00000001 0001 74 00000001 00000001 0006 0000000000000005 00000003 616263"
    frame = framed("00000007" + throttled + topics)
    body = {
        "throttle_time": 9,
        "error_code": ErrorCode.none,  # fields of later versions are left out
        "session_id": 0,
        "responses": [
            {
                "topic": "t",
                "topic_id": None,
                "partitions": [
                    {
                        "partition_index": 1,
                        "error_code": ErrorCode.not_leader_or_follower,
                        "high_watermark": 5,
                        "log_start_offset": 3,
                        "records": b"abc",
                    }
                ],
            }
        ],
    }
    assert encode_response(Api.Fetch, version, 7, body) == frame
    correlation_id, answer = decode_response(Api.Fetch, version, frame[4:])
    assert correlation_id == 7
    assert answer.responses[0].partitions[0].records == b"abc"


def test_list_offsets_request_and_response() -> None:
    frame = framed("0002 0000 00000007 0001 63 ffffffff 00000001 0001 74 00000001 00000001 fffffffffffffffe 00000002")
    partition = {"partition_index": 1, "timestamp": -2, "max_num_offsets": 2, "current_leader_epoch": -1}
    body = {"topics": [{"name": "t", "partitions": [partition]}]}
    assert encode_request(Api.ListOffsets, 0, 7, "c", body) == frame
    assert decode_request(frame[4:]).body.topics[0].partitions[0].max_num_offsets == 2
    answered = framed("00000007 00000001 0001 74 00000001 00000001 0000 00000002 0000000000000009 0000000000000000")
    topics = [{"name": "t", "partitions": [{"partition_index": 1, "old_style_offsets": [9, 0], "offset": 9}]}]
    assert encode_response(Api.ListOffsets, 0, 7, {"topics": topics}) == answered
    assert decode_response(Api.ListOffsets, 0, answered[4:])[1].topics[0].partitions[0].old_style_offsets == (9, 0)


@pytest.mark.parametrize("version", range(4))
def test_truncated_or_inconsistent_fetch_request_is_refused(version: int) -> None:
    frame = bytes.fromhex(FETCH_HEAD.format(version) + ("00000200" if version == 3 else "") + FETCH_TOPICS)
    for cut in range(11, len(frame)):
        with pytest.raises(MalformedFrame):
            decode_request(frame[:cut])
    with pytest.raises(MalformedFrame):
        decode_request(frame + b"\0")
    topics_at = len(bytes.fromhex(FETCH_HEAD.format(version))) + (4 if version == 3 else 0)
    for lie in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02"):
        with pytest.raises(MalformedFrame):
            decode_request(frame[:topics_at] + lie + frame[topics_at + 4 :])
