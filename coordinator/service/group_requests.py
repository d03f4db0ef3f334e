"""Fast reading of JoinGroup and SyncGroup requests, for groups of thousands of members.

The requests of a group's members differ only in the member id. The front before it (group and timeouts, or generation)
and the end after it (subscription, or no assignments) are decoded once by kio and cached by their bytes, so that only
the id of the next member's request has to be decoded. Anything not cached or unusual (null, long, not UTF-8, cut off)
goes to kio, which also refuses it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from coordinator.groups.requests import Protocol
from kernel.clock import milliseconds
from kernel.wire.versions import Api, served_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Decode = Callable[[bytes, int], Any]

#: Cached fronts, and as many ends, of one version, and the largest size of one.
PARTS_MAX, PART_BYTES_MAX = 500, 2_000
#: The most protocols of a cached end: hundreds of empty ones would fit into its bytes.
PROTOCOLS_MAX = 8

Front = TypeVar("Front")
End = TypeVar("End")


class JoinBody(NamedTuple):
    """JoinGroup. `size` is that of the whole request in bytes, an upper bound for every text in it."""

    size: int
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: tuple[Protocol, ...]


class SyncBody(NamedTuple):
    """SyncGroup. Protocol type and name are None in versions without them."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[tuple[str, bytes], ...]


class _Reader(Generic[Front, End]):
    """For one version of one message: group id, some numbers, member id, and the rest."""

    def __init__(self, *, flexible: bool, numbers_bytes: int) -> None:
        self._end_of_text = _end_of_compact_text if flexible else _end_of_text
        self._length_bytes = 1 if flexible else 2
        self._numbers_bytes = numbers_bytes
        self._fronts: dict[bytes, Front] = {}
        self._ends: dict[bytes, End] = {}

    def _remembered(self, frame: bytes, at: int) -> tuple[Front, str, End] | None:
        """The decoded parts of the frame, whose body begins at `at`; None if kio has to decode it."""
        try:
            member_at = self._end_of_text(frame, at) + self._numbers_bytes
            front = self._fronts[frame[at:member_at]]
            end_at = self._end_of_text(frame, member_at)
            member_id = frame[member_at + self._length_bytes : end_at].decode()
            return front, member_id, self._ends[frame[end_at:]]
        except (LookupError, ValueError):
            return None

    def _remember(self, frame: bytes, at: int, front: Front, end: End) -> None:
        """Cache the parts of a frame that kio has accepted."""
        try:
            member_at = self._end_of_text(frame, at) + self._numbers_bytes
            end_at = self._end_of_text(frame, member_at)
        except ValueError:
            return
        _keep(self._fronts, frame[at:member_at], front)
        _keep(self._ends, frame[end_at:], end)


class JoinReader(_Reader[tuple[str, int, int], tuple[str, tuple[Protocol, ...]]]):
    """Reads JoinGroup."""

    def __init__(self, version: int) -> None:
        super().__init__(flexible=version >= 6, numbers_bytes=8 if version >= 1 else 4)
        self._version = version

    def __call__(self, frame: bytes, at: int, decode: Decode) -> JoinBody:
        """The body that fills `frame` from `at`; `decode(frame, at)` is kio's. Raises what that raises."""
        remembered = self._remembered(frame, at)
        if remembered is None:
            return self._read(frame, at, decode)
        front, member_id, end = remembered
        return JoinBody(len(frame), *front, member_id, None, *end)

    def _read(self, frame: bytes, at: int, decode: Decode) -> JoinBody:
        body = decode(frame, at)
        session_timeout_ms = milliseconds(body.session_timeout)
        rebalance_timeout_ms = milliseconds(body.rebalance_timeout) if self._version >= 1 else session_timeout_ms
        front = (body.group_id, session_timeout_ms, rebalance_timeout_ms)
        instance_id = getattr(body, "group_instance_id", None)
        end = (body.protocol_type, tuple([Protocol(p.name, bytes(p.metadata)) for p in body.protocols]))
        if instance_id is None and len(body.protocols) <= PROTOCOLS_MAX:
            self._remember(frame, at, front, end)
        return JoinBody(len(frame), *front, body.member_id, instance_id, *end)


class SyncReader(_Reader[tuple[str, int], tuple[str | None, str | None]]):
    """Reads SyncGroup; caches only requests without assignments, which are all but the leader's."""

    def __init__(self, version: int) -> None:
        super().__init__(flexible=version >= 4, numbers_bytes=4)

    def __call__(self, frame: bytes, at: int, decode: Decode) -> SyncBody:
        """As `JoinReader`."""
        remembered = self._remembered(frame, at)
        if remembered is None:
            return self._read(frame, at, decode)
        front, member_id, end = remembered
        return SyncBody(*front, member_id, None, *end, ())

    def _read(self, frame: bytes, at: int, decode: Decode) -> SyncBody:
        body = decode(frame, at)
        front = (body.group_id, body.generation_id)
        instance_id = getattr(body, "group_instance_id", None)
        end = (getattr(body, "protocol_type", None), getattr(body, "protocol_name", None))
        assignments = tuple([(a.member_id, bytes(a.assignment)) for a in body.assignments])
        if instance_id is None and not assignments:
            self._remember(frame, at, front, end)
        return SyncBody(*front, body.member_id, instance_id, *end, assignments)


def _keep(parts: dict[bytes, Any], part: bytes, meaning: object) -> None:
    if len(part) <= PART_BYTES_MAX:
        if len(parts) >= PARTS_MAX:
            for oldest in list(itertools.islice(parts, PARTS_MAX // 2)):
                del parts[oldest]
        parts[part] = meaning


def _end_of_text(frame: bytes, at: int) -> int:
    """The index after a text; past the frame if it is cut off, so no cached part matches. ValueError for null."""
    if frame[at] & 0x80:
        raise ValueError("null, or a negative length")
    return at + 2 + (frame[at] << 8 | frame[at + 1])


def _end_of_compact_text(frame: bytes, at: int) -> int:
    """As `_end_of_text`."""
    if not 0 < frame[at] < 128:
        raise ValueError("null, or long")
    return at + frame[at]


#: By served version.
JOIN_READERS: Mapping[int, JoinReader] = {version: JoinReader(version) for version in served_versions(Api.JoinGroup)}
SYNC_READERS: Mapping[int, SyncReader] = {version: SyncReader(version) for version in served_versions(Api.SyncGroup)}
