"""JoinGroup's and SyncGroup's requests from bytes to what the machine is asked; for groups of thousands.

Members of one group send the same but for who they are: in front of the member id stand the group and the timeouts, or
the generation; behind it the subscription, or nothing at all that is assigned. Both are read once, by kio, and
remembered by their bytes, so that of the next member only the id has to be read. Whatever is not remembered, or is
unusual (null, long, not UTF-8, cut off), kio reads, and refuses.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from coordinator.groups.requests import Protocol
from kernel.clock import milliseconds
from kernel.wire.versions import SERVED, Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Decode = Callable[[bytes, int], Any]

#: Fronts, and as many ends, that are remembered for one version, and the bytes that one may have.
PARTS_MAX, PART_BYTES_MAX = 500, 2_000
#: Protocols of an end that is remembered: hundreds of empty ones would fit into its bytes.
PROTOCOLS_MAX = 8

Front = TypeVar("Front")
End = TypeVar("End")


class JoinBody(NamedTuple):
    """JoinGroup. `size` is that of the whole request in bytes, and so more than any text in it has."""

    size: int
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: tuple[Protocol, ...]


class SyncBody(NamedTuple):
    """SyncGroup. Versions without protocol type and name have None."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[tuple[str, bytes], ...]


class _Reader(Generic[Front, End]):
    """Of one version of one message: group id, some numbers, member id, and the rest."""

    def __init__(self, *, flexible: bool, numbers_bytes: int) -> None:
        self._end_of_text = _end_of_compact_text if flexible else _end_of_text
        self._length_bytes = 1 if flexible else 2
        self._numbers_bytes = numbers_bytes
        self._fronts: dict[bytes, Front] = {}
        self._ends: dict[bytes, End] = {}

    def _remembered(self, frame: bytes, at: int) -> tuple[Front, str, End] | None:
        """What the frame's parts mean, its body beginning at `at`; None: kio has to be asked."""
        try:
            member_at = self._end_of_text(frame, at) + self._numbers_bytes
            front = self._fronts[frame[at:member_at]]
            end_at = self._end_of_text(frame, member_at)
            member_id = frame[member_at + self._length_bytes : end_at].decode()
            return front, member_id, self._ends[frame[end_at:]]
        except (LookupError, ValueError):
            return None

    def _remember(self, frame: bytes, at: int, front: Front, end: End) -> None:
        """Of a frame that kio has found good."""
        try:
            member_at = self._end_of_text(frame, at) + self._numbers_bytes
            end_at = self._end_of_text(frame, member_at)
        except ValueError:
            return
        _keep(self._fronts, frame[at:member_at], front)
        _keep(self._ends, frame[end_at:], end)


class JoinReader(_Reader[tuple[str, int, int], tuple[str, tuple[Protocol, ...]]]):
    """JoinGroup's."""

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
    """SyncGroup's; only of those who assign nothing, that is all but the leader, anything is remembered."""

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
    """Of one that is cut off: outside the frame, where nothing is remembered. Raises ValueError for null."""
    if frame[at] & 0x80:
        raise ValueError("null, or a negative length")
    return at + 2 + (frame[at] << 8 | frame[at + 1])


def _end_of_compact_text(frame: bytes, at: int) -> int:
    """As `_end_of_text`."""
    if not 0 < frame[at] < 128:
        raise ValueError("null, or long")
    return at + frame[at]


def _versions(api: Api) -> range:
    lowest, highest = SERVED[api]
    return range(lowest, highest + 1)


#: By version, for each that is served.
JOIN_READERS: Mapping[int, JoinReader] = {version: JoinReader(version) for version in _versions(Api.JoinGroup)}
SYNC_READERS: Mapping[int, SyncReader] = {version: SyncReader(version) for version in _versions(Api.SyncGroup)}
