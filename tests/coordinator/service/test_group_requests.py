"""JoinGroup and SyncGroup read by hand: whatever was read before, a request is read as by kio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.groups.requests import Protocol
from coordinator.service.group_requests import PART_BYTES_MAX, PARTS_MAX, PROTOCOLS_MAX, JoinReader, SyncReader
from kernel.wire import codec
from kernel.wire.errors import MalformedFrame
from kernel.wire.versions import SERVED, Api
from tests.support.properties import examples
from tests.support.wire.messages import entity_of, mappings

READERS: dict[Api, Callable[[int], Any]] = {Api.JoinGroup: JoinReader, Api.SyncGroup: SyncReader}
VERSIONS = [(api, version) for api in READERS for version in range(SERVED[api][0], SERVED[api][1] + 1)]
SIZE = 4
#: Lengths on both sides of what is read by hand.
IDS = st.text(max_size=8) | st.sampled_from([125, 126, 127, 128, 300]).map(lambda n: "x" * n)

versions = pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda value: getattr(value, "name", str(value)))


def who(api: Api) -> st.SearchStrategy[dict[str, Any]]:
    """The fields that differ between members."""
    ids: dict[str, Any] = {"group_id": IDS, "member_id": IDS, "group_instance_id": st.none() | IDS}
    if api is Api.SyncGroup:
        ids["generation_id"] = st.integers(-1, 2**31 - 1)
    return st.fixed_dictionaries(ids)


def read(reader: Any, frame: bytes) -> object:
    """The body, or a mark that it was refused."""
    key = (int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big"))
    try:
        return codec.decode_request(frame, {key: reader}).body
    except MalformedFrame:
        return "refused"


def frame_of(api: Api, version: int, body: dict[str, Any]) -> bytes:
    return codec.encode_request(api, version, 7, "client", body)[SIZE:]


@versions
@settings(max_examples=examples(30))
@given(data=st.data())
def test_request_is_read_the_same_with_and_without_cached_parts(api: Api, version: int, data: st.DataObject) -> None:
    reader = READERS[api](version)
    body = data.draw(mappings(entity_of(api, version, request=True)))
    for another in data.draw(st.lists(who(api), min_size=2, max_size=3)):
        known = {name: value for name, value in another.items() if name in body}
        frame = frame_of(api, version, body | known)
        assert read(reader, frame) == read(READERS[api](version), frame) != "refused"


@versions
@settings(max_examples=examples(30))
@given(data=st.data())
def test_damaged_request_is_read_or_refused_the_same_with_and_without_cached_parts(
    api: Api, version: int, data: st.DataObject
) -> None:
    reader = READERS[api](version)
    frame = frame_of(api, version, data.draw(mappings(entity_of(api, version, request=True))))
    read(reader, frame)
    begins = frame[:16]  # the header
    cut = data.draw(st.integers(0, len(frame) - 16))
    rest = bytearray(frame[16 : 16 + cut] if data.draw(st.booleans()) else frame[16:])
    for _ in range(data.draw(st.integers(0, 2))):
        if rest:
            rest[data.draw(st.integers(0, len(rest) - 1))] = data.draw(st.integers(0, 255))
    damaged = begins + bytes(rest)
    assert read(reader, damaged) == read(READERS[api](version), damaged)


def join_frame(metadata: bytes, member_id: str = "m") -> bytes:
    protocols = [{"name": "range", "metadata": metadata}]
    return frame_of(Api.JoinGroup, 5, {"group_id": "g", "member_id": member_id, "protocols": protocols})


def by_kio(reader: Any, frame: bytes) -> bool:
    """Whether kio read the frame."""
    asked = []
    body = codec.decode_request(frame).body
    reader(frame, 16, lambda *_: asked.append(1) or body)
    return bool(asked)


def test_second_member_with_one_subscription_is_not_decoded_again() -> None:
    reader = JoinReader(5)
    assert by_kio(reader, join_frame(b"s", "m-1"))
    assert not by_kio(reader, join_frame(b"s", "m-2"))
    assert reader(join_frame(b"s", "m-3"), 16, _not_asked).protocols == (Protocol("range", b"s"),)


def test_remembered_parts_are_bounded() -> None:
    reader = JoinReader(5)
    assert by_kio(reader, join_frame(bytes(PART_BYTES_MAX)))
    assert by_kio(reader, join_frame(bytes(PART_BYTES_MAX))), "too long to be kept"
    for number in range(PARTS_MAX + 1):
        assert by_kio(reader, join_frame(number.to_bytes(4, "big")))
    assert by_kio(reader, join_frame(bytes(4))), "forgotten when there were too many"


def test_an_end_with_many_protocols_is_not_remembered() -> None:
    def frame(count: int) -> bytes:
        protocols = [{"name": f"{number}", "metadata": b""} for number in range(count)]
        return frame_of(Api.JoinGroup, 5, {"group_id": "g", "member_id": "m", "protocols": protocols})

    reader = JoinReader(5)
    for count, again in ((PROTOCOLS_MAX, False), (PROTOCOLS_MAX + 1, True)):
        assert by_kio(reader, frame(count))
        assert by_kio(reader, frame(count)) is again


@pytest.mark.parametrize("length", [0x8000, 0xFFFF])
@pytest.mark.parametrize(("api", "version"), [(Api.JoinGroup, 5), (Api.JoinGroup, 0), (Api.SyncGroup, 3)])
def test_member_id_of_a_negative_length_is_refused_with_cached_parts(api: Api, version: int, length: int) -> None:
    reader = READERS[api](version)
    frame = frame_of(api, version, {"group_id": "g", "member_id": "m"})
    assert read(reader, frame) != "refused"
    at = frame.rindex(b"\0\1m")
    negative = frame[:at] + length.to_bytes(2, "big") + b"m" * length + frame[at + 3 :]
    assert read(reader, negative) == "refused"


def _not_asked(frame: bytes, at: int) -> object:
    raise AssertionError(f"kio was asked for {frame!r} at {at}")
