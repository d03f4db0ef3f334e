"""Round trips of every message in the version table, and what is refused."""

from __future__ import annotations

import contextlib
import io
import struct
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer

from kernel.wire import codec
from kernel.wire.errors import ErrorCode, MalformedFrame, UnsupportedVersion
from kernel.wire.versions import SERVED, Api
from kernel.wire.writing import joined, writer
from tests.support.properties import examples
from tests.support.wire.entities import built
from tests.support.wire.messages import SERVED_VERSIONS, entity_of, mappings, partial_mappings

HEARTBEAT = {"group_id": "g", "generation_id": 3, "member_id": "m", "group_instance_id": None}


@settings(max_examples=examples(250), deadline=None)
@given(st.data())
def test_request_decodes_to_what_was_encoded(data: st.DataObject) -> None:
    api, version = data.draw(st.sampled_from(SERVED_VERSIONS))
    entity = entity_of(api, version, request=True)
    body = data.draw(mappings(entity))
    client_id = data.draw(st.none() | st.text(max_size=5))
    frame = codec.encode_request(api, version, 7, client_id, body)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    request = codec.decode_request(frame[4:])
    assert request == (api, version, 7, client_id, built(entity, body))


@settings(max_examples=examples(250), deadline=None)
@given(st.data())
def test_response_decodes_to_what_was_encoded(data: st.DataObject) -> None:
    api, version = data.draw(st.sampled_from(SERVED_VERSIONS))
    entity = entity_of(api, version, request=False)
    body = data.draw(mappings(entity))
    frame = codec.encode_response(api, version, -9, body)
    correlation_id, answer = codec.decode_response(api, version, frame[4:])
    assert correlation_id == -9
    assert answer == built(entity, body)


@settings(max_examples=examples(500), deadline=None)
@given(st.data())
def test_bytes_are_those_of_kios_writer_whatever_is_missing(data: st.DataObject) -> None:
    api, version = data.draw(st.sampled_from(SERVED_VERSIONS))
    request = data.draw(st.booleans())
    entity = entity_of(api, version, request=request)
    body = data.draw(partial_mappings(entity))
    expected = io.BytesIO()
    entity_writer(entity)(expected, built(entity, body))

    assert joined(writer(entity, api, request=request), body) == expected.getvalue()
    assert joined(writer(entity, api, request=request), built(entity, body)) == expected.getvalue()


@pytest.mark.parametrize(("api", "version"), SERVED_VERSIONS, ids=lambda value: getattr(value, "name", str(value)))
def test_every_served_version_has_a_codec_for_an_empty_mapping(api: Api, version: int) -> None:
    request = codec.decode_request(codec.encode_request(api, version, 1, None, {})[4:])
    assert (request.api, request.version, request.client_id) == (api, version, None)
    codec.decode_response(api, version, codec.encode_response(api, version, 1, {})[4:])


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_mutated_request_decodes_or_is_refused_by_our_own_error(data: st.DataObject) -> None:
    api, version = data.draw(st.sampled_from(SERVED_VERSIONS))
    body = data.draw(mappings(entity_of(api, version, request=True)))
    frame = bytearray(codec.encode_request(api, version, 7, "client", body)[4:])
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(4, len(frame) - 1))
        frame[where] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for candidate in (bytes(frame), bytes(frame[:cut])):
        with contextlib.suppress(MalformedFrame, UnsupportedVersion):
            codec.decode_request(candidate)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused_by_our_own_error(frame: bytes) -> None:
    with contextlib.suppress(MalformedFrame, UnsupportedVersion):
        codec.decode_request(frame)


@pytest.mark.parametrize("tags", [b"", b"\xff\xff"])
def test_api_versions_of_the_future_without_a_good_header_is_refused(tags: bytes) -> None:
    with pytest.raises(MalformedFrame):  # recorded: Kafka closes the connection
        codec.decode_request(struct.pack(">hhih", 18, 99, 5, 1) + b"c" + tags)


def test_array_that_claims_two_billion_elements_is_refused_without_making_room() -> None:
    frame = codec.encode_request(Api.LeaveGroup, 3, 1, "c", {"group_id": "g", "members": []})[4:]
    with pytest.raises(MalformedFrame):
        codec.decode_request(frame.removesuffix(b"\0\0\0\0") + b"\x7f\xff\xff\xff")


@pytest.mark.parametrize("version", [0, 4])
def test_trailing_bytes_are_refused(version: int) -> None:
    frame = codec.encode_request(Api.Heartbeat, version, 1, "c", HEARTBEAT)[4:]
    with pytest.raises(MalformedFrame, match="1 bytes after the end"):
        codec.decode_request(frame + b"\0")


def test_librdkafkas_request_for_all_topics_is_accepted() -> None:
    recorded = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")
    request = codec.decode_request(recorded)
    assert (request.api, request.version, request.body.topics) == (Api.Metadata, 13, None)
    with pytest.raises(MalformedFrame, match="4 bytes after the end"):
        codec.decode_request(recorded + b"\0")


def test_null_array_is_refused_if_the_schema_does_not_allow_it() -> None:
    frame = codec.encode_request(Api.JoinGroup, 5, 1, "c", {"protocols": ()})[4:]
    assert frame.endswith(b"\0\0\0\0")
    with pytest.raises(MalformedFrame, match="protocols is null"):
        codec.decode_request(frame[:-4] + b"\xff\xff\xff\xff")


def test_null_array_inside_an_array_is_refused() -> None:
    body = {"topics": [{"name": "t", "partitions": ()}]}
    frame = codec.encode_request(Api.ListOffsets, 5, 1, "c", body)[4:]
    assert frame.endswith(b"\0\0\0\0")
    with pytest.raises(MalformedFrame, match=r"topics\.partitions is null"):
        codec.decode_request(frame[:-4] + b"\xff\xff\xff\xff")


@pytest.mark.parametrize(("key", "version"), [(12, 99), (12, -1), (999, 0), (-1, 0), (0, 2), (4, 0)])
def test_version_outside_of_the_table_is_reported_with_key_and_correlation_id(key: int, version: int) -> None:
    with pytest.raises(UnsupportedVersion) as refusal:
        codec.decode_request(struct.pack(">hhih", key, version, 42, -1))
    assert (refusal.value.api_key, refusal.value.version, refusal.value.correlation_id) == (key, version, 42)


@pytest.mark.parametrize(
    "frame", [b"", b"\0" * 9, struct.pack(">hhih", 12, 0, 1, 500), struct.pack(">hhih", 12, 0, 1, -2)]
)
def test_header_that_is_cut_short_is_refused(frame: bytes) -> None:
    with pytest.raises(MalformedFrame):
        codec.decode_request(frame)


def test_client_id_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="UTF-8"):
        codec.decode_request(struct.pack(">hhih", 12, 0, 1, 2) + b"\xff\xfe")


def test_misspelt_name_raises_also_when_nested() -> None:
    with pytest.raises(KeyError, match="eror_code"):
        codec.encode_response(Api.Heartbeat, 4, 1, {"eror_code": 0})
    with pytest.raises(KeyError, match="members has no field membre_id"):
        codec.encode_response(Api.JoinGroup, 4, 1, {"members": [{"membre_id": "m"}]})


def test_name_of_another_version_is_left_out() -> None:
    body = {"error_code": 0, "protocol_type": "consumer", "protocol_name": None, "skip_assignment": True}
    _, answer = codec.decode_response(Api.JoinGroup, 2, codec.encode_response(Api.JoinGroup, 2, 1, body)[4:])
    assert not hasattr(answer, "protocol_type")
    assert answer.protocol_name == "", "before version 7 the name is not nullable: None is sent as ''"


def test_remembered_heartbeat_answer_is_the_same_bytes_with_another_correlation_id() -> None:
    for version in range(5):
        for error in (0, 27, 25):
            first, second = (codec.encode_response(Api.Heartbeat, version, n, {"error_code": error}) for n in (1, 2))
            assert first[:4] + first[8:] == second[:4] + second[8:]
            assert codec.decode_response(Api.Heartbeat, version, second[4:])[1].error_code == error
    with pytest.raises(KeyError):
        codec.encode_response(Api.Heartbeat, 4, 1, {"eror_code": 0})


def test_plain_values_are_converted() -> None:
    body = {"throttle_time": 250, "responses": [{"name": "t", "partition_responses": [{"log_append_time": -1}]}]}
    _, answer = codec.decode_response(Api.Produce, 8, codec.encode_response(Api.Produce, 8, 1, body)[4:])
    assert answer.throttle_time == timedelta(milliseconds=250)
    partition = answer.responses[0].partition_responses[0]
    assert partition.log_append_time is None
    assert partition.error_code is ErrorCode.none


def test_api_versions_response_has_header_version_zero_in_every_version() -> None:
    for version in range(SERVED[Api.ApiVersions][1] + 1):
        frame = codec.encode_response(Api.ApiVersions, version, 5, {"error_code": 35})
        assert frame[4:10] == b"\0\0\0\x05\0\x23", "the error code directly follows the correlation id"
