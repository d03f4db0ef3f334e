"""Responses to OffsetCommit written by our own encoder equal those that kio writes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel.wire import commit_messages
from kernel.wire.codec import encode_response
from kernel.wire.versions import SERVED, Api

LOWEST, HIGHEST = SERVED[Api.OffsetCommit]
SIZE_AND_CORRELATION_ID = 8

partitions = st.lists(st.integers(0, 2**31 - 1), max_size=5) | st.just(list(range(300)))
names = st.text(max_size=30) | st.sampled_from(["", "orders", "ü" * 100, "t" * 249])


def by_kio(version: int, topics: list[tuple[str, list[int]]]) -> bytes:
    rows = [
        {"name": name, "partitions": [{"partition_index": index, "error_code": 0} for index in indexes]}
        for name, indexes in topics
    ]
    return encode_response(Api.OffsetCommit, version, 7, {"topics": rows})[SIZE_AND_CORRELATION_ID:]


@given(
    version=st.integers(LOWEST, HIGHEST),
    topics=st.lists(st.tuples(names, partitions), max_size=4) | st.just([("t", [0])] * 200),
)
def test_accepted_commit_has_the_bytes_of_kio_in_every_version(version: int, topics: list[tuple[str, list[int]]]):
    assert commit_messages.accepted(version, topics) == by_kio(version, topics)
