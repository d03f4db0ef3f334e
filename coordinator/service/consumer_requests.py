"""Fast reading of ConsumerGroupHeartbeat requests, as in `group_requests`.

Members of one group say the same after their id and epoch when they join, and nothing when they heartbeat; what they
own follows. What they say is decoded by kio once and recognised by its bytes, and the partitions are read here. What is
unusual goes to kio, which also refuses it.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.groups.partitions import partitions
from kernel.clock import milliseconds
from kernel.wire.versions import Api, served_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from coordinator.groups.partitions import Partitions, TopicId

    Decode = Callable[[bytes, int], Any]

#: Remembered ends of requests of one version, and the largest size of one.
ENDS_MAX, END_BYTES_MAX = 500, 2_000
#: The most topics, and partitions of one, that are read here.
TOPICS_MAX, PARTITIONS_MAX = 100, 1_000
_EPOCH = struct.Struct(">i")
_UUID_BYTES = 16
#: Instance, rack, timeout (-1), topics, regular expression (not in version 0), assignor: nothing new.
_NOTHING_NEW = {0: b"\0\0\xff\xff\xff\xff\0\0", 1: b"\0\0\xff\xff\xff\xff\0\0\0"}


class End(NamedTuple):
    """What follows a member's epoch."""

    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topics: tuple[str, ...] | None
    topic_regex: str | None
    assignor: str | None
    owned: Partitions | None
    bare_topics: tuple[TopicId, ...]


class ConsumerHeartbeatBody(NamedTuple):
    """`size` is that of the whole request in bytes, an upper bound for every text in it."""

    size: int
    group_id: str
    member_id: str
    epoch: int
    end: End


_NO_END = End(None, None, -1, None, None, None, None, ())


class ConsumerHeartbeatReader:
    """Reads ConsumerGroupHeartbeat of one version."""

    def __init__(self, version: int) -> None:
        self._nothing_new = _NOTHING_NEW[version]
        self._ends = {self._nothing_new + b"\0\0": _NO_END}

    def __call__(self, frame: bytes, at: int, decode: Decode) -> ConsumerHeartbeatBody:
        """The body that fills `frame` from `at`; `decode(frame, at)` is kio's. Raises what that raises."""
        try:
            group_end = _end_of_text(frame, at)
            member_end = _end_of_text(frame, group_end)
            (epoch,) = _EPOCH.unpack_from(frame, member_end)
            data = frame[member_end + 4 :]
            end = self._ends.get(data) or self._owned(data)
            return ConsumerHeartbeatBody(
                len(frame), frame[at + 1 : group_end].decode(), frame[group_end + 1 : member_end].decode(), epoch, end
            )
        except (LookupError, ValueError, struct.error):
            return self._read(frame, at, decode)

    def _owned(self, data: bytes) -> End:
        """What a member says that has no news but what it owns. Raises ValueError and others if it is not that."""
        at = len(self._nothing_new)
        if not data.startswith(self._nothing_new):
            raise ValueError("more than partitions")
        found: list[tuple[TopicId, tuple[int, ...]]] = []
        count, at = _count(data, at)
        if count > TOPICS_MAX:
            raise ValueError("too many topics")
        for _ in range(count):
            topic, at = data[at : at + _UUID_BYTES], at + _UUID_BYTES
            numbers, at = _count(data, at)
            if numbers > PARTITIONS_MAX or at + 4 * numbers > len(data):
                raise ValueError("too many, or cut off")
            found.append((topic, struct.unpack_from(f">{numbers}i", data, at)))
            at += 4 * numbers + 1
            if data[at - 1]:
                raise ValueError("tags")
        if data[at:] != b"\0":
            raise ValueError("tags, or more bytes")
        return _NO_END._replace(owned=partitions(found), bare_topics=_bare(found))

    def _read(self, frame: bytes, at: int, decode: Decode) -> ConsumerHeartbeatBody:
        body = decode(frame, at)
        rows = body.topic_partitions
        found = [(_bytes(row.topic_id), row.partitions) for row in rows or ()]
        end = End(
            body.instance_id,
            body.rack_id,
            milliseconds(body.rebalance_timeout),
            body.subscribed_topic_names,
            getattr(body, "subscribed_topic_regex", None),
            body.server_assignor,
            None if rows is None else partitions(found),
            _bare(found),
        )
        if not rows and end.instance_id is None:
            self._remember(frame, at, end)
        return ConsumerHeartbeatBody(len(frame), body.group_id, body.member_id, body.member_epoch, end)

    def _remember(self, frame: bytes, at: int, end: End) -> None:
        try:
            data = frame[_end_of_text(frame, _end_of_text(frame, at)) + 4 :]
        except (LookupError, ValueError):
            return
        if len(data) <= END_BYTES_MAX:
            if len(self._ends) >= ENDS_MAX:
                for oldest in list(itertools.islice(self._ends, ENDS_MAX // 2)):
                    del self._ends[oldest]
            self._ends[data] = end


def _end_of_text(frame: bytes, at: int) -> int:
    """The index after a compact text, not past the frame. ValueError for null, and for a long one."""
    end = at + frame[at]
    if not at < end <= at + 127 or end > len(frame):
        raise ValueError("null, long, or cut off")
    return end


def _count(data: bytes, at: int) -> tuple[int, int]:
    """The length of a compact array, and where its elements begin. ValueError for null."""
    count = shift = 0
    while True:
        byte = data[at]
        at += 1
        count |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ValueError("a long number")
    if not count:
        raise ValueError("null")
    return count - 1, at


def _bare(found: list[tuple[TopicId, tuple[int, ...]]]) -> tuple[TopicId, ...]:
    return tuple([topic for topic, numbers in found if not numbers])


def _bytes(topic_id: UUID | None) -> bytes:
    """Kio reads the zero id as None."""
    return bytes(16) if topic_id is None else topic_id.bytes


#: By served version.
HEARTBEAT_READERS: Mapping[int, ConsumerHeartbeatReader] = {
    version: ConsumerHeartbeatReader(version) for version in served_versions(Api.ConsumerGroupHeartbeat)
}
