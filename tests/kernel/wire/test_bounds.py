"""Counts are checked before memory is taken for them, in every version of every message; checking costs little."""

from __future__ import annotations

import random
import struct
import subprocess

import pytest

from kernel.wire import codec
from kernel.wire.bounds import REQUEST_ELEMENTS_MAX, check_of
from kernel.wire.errors import MalformedFrame
from kernel.wire.tags import TAGS_MAX, uvarint
from kernel.wire.versions import SERVED, Api
from tests.support.lean_child import lean_command
from tests.support.wire.marked_frames import MESSAGES, Message, arrays_of, marks, minimal_body, random_body
from tests.support.wire.messages import entity_of

#: A Metadata request of 20 bytes that announces 4,294,967,294 topics: kio asks for 34 GB and the process is aborted.
TWENTY_BYTES = bytes.fromhex("0003000900000001ffff00ffffffff0f")


def test_absurd_counts_are_refused_in_every_version_of_every_message_within_little_memory() -> None:
    """In a separate process under a limit, because a count that slips through aborts it."""
    command = lean_command("tests.support.wire.absurd_counts")
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    with_counts = sum(1 for message in MESSAGES if check_of(message.entity, elements_max=1) is not None)
    assert child.stdout.startswith(f"{len(MESSAGES)} messages, {with_counts} with counts, ")
    assert int(child.stdout.split()[5]) >= 16 * with_counts, "each count was attacked twice, in at least eight ways"


def test_twenty_bytes_that_announce_four_billion_topics_are_refused() -> None:
    with pytest.raises(
        MalformedFrame, match="topics announces 4294967294 elements, but only 0 bytes are left in a MetadataReq"
    ):
        codec.decode_request(TWENTY_BYTES)


def test_count_without_room_for_the_smallest_elements_is_refused() -> None:
    """An empty name takes one byte; after the names come an option and the tags, of one byte each."""
    header = struct.pack(">hhih", Api.DescribeGroups, 5, 1, -1) + b"\0"
    request = codec.decode_request(header + uvarint(11) + b"\1" * 10 + b"\0\0")
    assert request.body.groups == ("",) * 10
    with pytest.raises(MalformedFrame, match="groups announces 13 elements, but only 12 bytes are left"):
        codec.decode_request(header + uvarint(14) + b"\1" * 10 + b"\0\0")


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (Message(api, version, is_request=True), path)
        for api, (low, high) in SERVED.items()
        for version in (low, high)
        for path in arrays_of(entity_of(api, version, request=True))
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) and isinstance(value[0], str) else None,
)
def test_arrays_of_smallest_elements_are_accepted(message: Message, path: tuple[str, ...]) -> None:
    check = check_of(message.entity, elements_max=1_000)
    assert check is not None
    check(minimal_body(message.entity, path, 300), 0)
    with pytest.raises(MalformedFrame, match=r"more are allowed"):
        check(minimal_body(message.entity, path, 1_001), 0)


def test_request_with_too_many_elements_is_refused_at_any_size() -> None:
    header = struct.pack(">hhih", Api.DescribeGroups, 5, 1, -1) + b"\0"

    def frame(number: int) -> bytes:
        return header + uvarint(number + 1) + b"\1" * number + b"\0\0"

    assert len(codec.decode_request(frame(REQUEST_ELEMENTS_MAX)).body.groups) == REQUEST_ELEMENTS_MAX
    with pytest.raises(MalformedFrame, match=r"groups announces 150001 elements, but only 150000 more are allowed"):
        codec.decode_request(frame(REQUEST_ELEMENTS_MAX + 1))


@pytest.mark.parametrize("place", ["header", "body"])
def test_millions_of_tagged_fields_are_refused_without_being_walked(place: str) -> None:
    many = uvarint(TAGS_MAX + 1) + b"\x7f\0" * (TAGS_MAX + 1)
    header = struct.pack(">hhih", Api.Heartbeat, 4, 1, -1)
    body = b"\1\0\0\0\0\1\0"
    frame = header + many + body + b"\0" if place == "header" else header + b"\0" + body + many
    with pytest.raises(MalformedFrame, match=f"{TAGS_MAX + 1} tagged fields"):
        codec.decode_request(frame)


def test_message_without_arrays_is_not_walked() -> None:
    assert all(check_of(entity_of(Api.Heartbeat, v, request=True), elements_max=1) is None for v in range(5))


def test_walk_ends_before_the_elements_of_the_only_array() -> None:
    """What makes it cheap: an OffsetCommit for one topic is read only up to its partitions' count."""
    message = Message(Api.OffsetCommit, 8, is_request=True)
    body = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"committed_metadata": "m"}] * 3}]}
    frame = message.encoded(body)
    (partitions,) = (mark for mark in marks(message, frame) if mark.name == "topics.partitions")
    check = check_of(message.entity, elements_max=4)
    assert check is not None
    check(frame[: partitions.at + partitions.size] + bytes(3 * 19), message.body_at)


def test_every_valid_message_is_decoded_as_before() -> None:
    rng = random.Random(5)
    for message in MESSAGES:
        frame = message.encoded(random_body(message.entity, rng))[4:]
        if message.is_request:
            assert codec.decode_request(frame).version == message.version
        else:
            assert codec.decode_response(message.api, message.version, frame)[0] == 7
