"""ConsumerGroupHeartbeat read by hand: whatever was read before, a request is read as by kio."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.service.consumer_requests import ENDS_MAX, ConsumerHeartbeatReader
from kernel.wire import codec
from kernel.wire.errors import MalformedFrame
from kernel.wire.versions import SERVED, Api
from tests.support.properties import examples
from tests.support.wire.messages import entity_of, mappings

API = Api.ConsumerGroupHeartbeat
VERSIONS = range(SERVED[API][0], SERVED[API][1] + 1)
#: Lengths on both sides of what is read by hand.
IDS = st.text(max_size=8) | st.sampled_from([125, 126, 127, 128, 300]).map(lambda n: "x" * n)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"topic_id": st.none() | st.uuids(), "partitions": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=200)}
    ),
    max_size=3,
)

versions = pytest.mark.parametrize("version", VERSIONS)


class OnlyKio(ConsumerHeartbeatReader):
    """Reads nothing by hand."""

    def __call__(self, frame: bytes, at: int, decode: Any) -> Any:
        return self._read(frame, at, decode)


def read(reader: Any, frame: bytes) -> object:
    """The body, or a mark that it was refused."""
    try:
        return codec.decode_request(frame, {(API, int.from_bytes(frame[2:4], "big")): reader}).body
    except MalformedFrame:
        return "refused"


def frame_of(version: int, body: dict[str, Any]) -> bytes:
    return codec.encode_request(API, version, 7, "client", body)[4:]


@st.composite
def bodies(draw: st.DrawFn, version: int) -> dict[str, Any]:
    """What real members send, and anything else."""
    body = {"group_id": draw(IDS), "member_id": draw(IDS), "member_epoch": draw(st.integers(-2, 9))}
    kind = draw(st.sampled_from(("nothing new", "owned", "joins", "any")))
    if kind == "owned":
        body["topic_partitions"] = draw(ROWS)
    elif kind == "joins":
        body |= {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout": 5_000}
    elif kind == "any":
        body |= draw(mappings(entity_of(API, version, request=True)))
    return body


@versions
@given(data=st.data())
def test_request_is_read_as_by_kio_whatever_came_before(version: int, data: st.DataObject) -> None:
    reader = ConsumerHeartbeatReader(version)
    for _ in range(3):
        frame = frame_of(version, data.draw(bodies(version)))
        assert read(reader, frame) == read(OnlyKio(version), frame) != "refused"


@versions
@given(data=st.data())
def test_damaged_request_is_read_or_refused_as_by_kio(version: int, data: st.DataObject) -> None:
    reader = ConsumerHeartbeatReader(version)
    frame = frame_of(version, data.draw(bodies(version)))
    read(reader, frame)
    cut = data.draw(st.integers(17, len(frame)))
    rest = bytearray(frame[17:cut] if data.draw(st.booleans()) else frame[17:])
    for _ in range(data.draw(st.integers(0, 2))):
        if rest:
            rest[data.draw(st.integers(0, len(rest) - 1))] = data.draw(st.integers(0, 255))
    damaged = frame[:17] + bytes(rest)
    assert read(reader, damaged) == read(OnlyKio(version), damaged)


@settings(max_examples=examples(20))
@given(count=st.integers(0, 300_000))
def test_any_number_of_partitions_is_read_or_refused_as_by_kio(count: int) -> None:
    frame = frame_of(1, {"topic_partitions": [{"topic_id": None, "partitions": [3] * count}]})
    assert read(ConsumerHeartbeatReader(1), frame) == read(OnlyKio(1), frame)


def test_what_is_remembered_is_bounded() -> None:
    reader = ConsumerHeartbeatReader(1)
    for number in range(3 * ENDS_MAX):
        read(reader, frame_of(1, {"subscribed_topic_names": [f"t{number}"], "topic_partitions": []}))
        assert len(reader._ends) <= ENDS_MAX
    before = len(reader._ends)
    read(reader, frame_of(1, {"subscribed_topic_names": ["t" * 200] * 20, "topic_partitions": []}))
    assert len(reader._ends) == before
