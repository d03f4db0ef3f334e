"""Lean members of the `consumer` design (KIP-848): ConsumerGroupHeartbeat 1 as bytes, and groups of them that settle.

A member does what a real client does: it joins, reports at once what it was asked to take or to give up, and otherwise
heartbeats at the interval that the coordinator named. Checked throughout: error codes, member ids, and at the end that
every partition has one owner, that each member has its share, and that all are in one epoch.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import itertools
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bench import lean, lean_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.lean_sockets import Connection, Sockets
    from bench.sides import Side

API, VERSION = 68, 1
JOINING = 0
_NULL = b"\0"
_UNCHANGED = -1
#: Sessions never end during a measure; members are asked to heartbeat at Kafka's default interval.
SETTINGS = {"group.consumer.session.timeout.ms": "1800000", "group.consumer.max.session.timeout.ms": "1800000"}
CREATED_S = 120.0
_PAUSE_S = 0.05
_ID_BYTES = 16
_UNKNOWN = frozenset({lean.UNKNOWN_MEMBER_ID, lean.GROUP_ID_NOT_FOUND})


class Answer(NamedTuple):
    """An answer. `rows` are the bytes of the assigned partitions, None if they have not changed."""

    error: int
    epoch: int
    interval_ms: int
    rows: bytes | None


def parsed(answer: bytes) -> Answer:
    """Read a complete answer, size included: no tags in its header."""
    (error,) = struct.unpack_from(">h", answer, 13)
    at = 15
    for _ in range(2):  # error message, member id
        at += max(answer[at], 1)
    epoch, interval_ms, is_given = struct.unpack_from(">iib", answer, at)
    return Answer(error, epoch, interval_ms, None if is_given < 0 else answer[at + 9 : -2])


def count_of(rows: bytes) -> int:
    """The number of partitions in the rows of one topic, or of none."""
    if rows[0] == 1:
        return 0
    count = shift = 0
    for byte in rows[1 + _ID_BYTES :]:
        count |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return count - 1


def partitions_of(rows: bytes) -> tuple[int, ...]:
    count = count_of(rows)
    return struct.unpack_from(f">{count}i", rows, len(rows) - 1 - 4 * count) if count else ()


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """A member's place in its group. `name` is its client id; it subscribes to one topic."""

    name: str
    group: str
    number: int
    topic: str
    member_id: str = ""
    epoch: int = JOINING
    interval_ms: int = 0
    owned: bytes = b"\1"  #: rows, as it reported them last

    def __post_init__(self) -> None:
        # Like the base64 ids of Kafka's client: the coordinator's tables are in the order of their hashes.
        digest = hashlib.blake2b(f"{self.group}/{self.name}".encode(), digest_size=16).digest()
        self.member_id = base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def join(self) -> bytes:
        topics = b"\2" + lean.compact(self.topic)
        return self._request(JOINING, lean.REBALANCE_TIMEOUT_MS, topics, b"\1")

    def report(self) -> bytes:
        """A heartbeat that says what the member owns."""
        return self._request(self.epoch, _UNCHANGED, _NULL, self.owned)

    def heartbeat(self) -> bytes:
        return self._request(self.epoch, _UNCHANGED, _NULL, _NULL)

    def leave(self) -> bytes:
        return self._request(-1, _UNCHANGED, _NULL, _NULL)

    def _request(self, epoch: int, rebalance_timeout_ms: int, topics: bytes, owned: bytes) -> bytes:
        body = lean.compact(self.group) + lean.compact(self.member_id) + struct.pack(">i", epoch)
        body += _NULL + _NULL + struct.pack(">i", rebalance_timeout_ms) + topics + _NULL + _NULL + owned + _NULL
        return lean.frame(API, VERSION, self.number, self.name, body, flexible=True)

    def heartbeat_answer(self, error: int) -> bytes:
        """The complete answer to a heartbeat that changes nothing."""
        body = struct.pack(">iBihB", self.number, 0, 0, error, 0) + lean.compact(self.member_id)
        body += struct.pack(">iibB", self.epoch, self.interval_ms, -1, 0)
        return struct.pack(">i", len(body)) + body


class Settled(NamedTuple):
    """How a group settled."""

    seconds: float
    heartbeats: int
    epoch: int


def create_topic(sockets: Sockets, side: Side, topic: str, partitions: int) -> None:
    """Create a topic, and wait until a member is assigned all of it."""
    prober = ConsumerMember("prober", f"prober-{topic}", 0, topic)
    lean_groups.find_coordinator(sockets, side.port, prober.group)
    (connection,) = connect(sockets, side.port, [prober])
    lean_groups.create_topic(sockets, connection, topic, partitions)
    deadline, frame, rows = time.monotonic() + CREATED_S, prober.join(), b"\1"
    while count_of(rows) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count_of(rows)} of {partitions} partitions were assigned after {CREATED_S:g} s")
        said = parsed(sockets.ask(connection, frame))
        if said.error not in {lean.NONE, *lean.RETRIED}:
            raise RuntimeError(f"ConsumerGroupHeartbeat of the first member: error {said.error}")
        if said.error == lean.NONE:
            prober.epoch, rows = said.epoch, said.rows or rows
            frame = prober.heartbeat()
        time.sleep(_PAUSE_S)
    sockets.ask(connection, prober.leave())
    sockets.drop([connection])


def connect(sockets: Sockets, port: int, members: Sequence[ConsumerMember]) -> list[Connection]:
    """Open a connection per member. Its first request is the departure of a member still unknown."""
    made = sockets.connect(port, [member.leave() for member in members])
    for member, (connection, answer) in zip(members, made, strict=True):
        connection.data = member
        if (error := parsed(answer).error) not in _UNKNOWN:
            raise RuntimeError(f"an unknown member left {member.group}: error {error}")
    return [connection for connection, _ in made]


def settle(
    sockets: Sockets, connections: Sequence[Connection], partitions: int, *, interval_s: float | None = None
) -> Settled:
    """Let all join at once, and heartbeat until each has reported that it owns its share.

    `interval_s` replaces the interval that the coordinator names.
    """
    started = time.monotonic()
    course = _Course(partitions, len(connections), interval_s)
    for connection in connections:
        course.send(connection, connection.data.join())
    while not course.is_settled:
        for connection, answer in sockets.answers_so_far(course.pause_s()):
            course.take(connection, answer)
        course.send_due()
    seconds = time.monotonic() - started
    while course.in_flight:
        for connection, answer in sockets.answers(lean_groups.SILENCE_S):
            course.take(connection, answer)
    return Settled(seconds, course.sent, _checked(sockets, connections, partitions))


class _Course:
    """A group that settles."""

    def __init__(self, partitions: int, members: int, interval_s: float | None) -> None:
        self.shares = {partitions // members, -(-partitions // members)}
        self.sent = self.in_flight = 0
        self._partitions, self._members, self._interval_s = partitions, members, interval_s
        self._last_answer = time.monotonic()
        self._sent_at: dict[Connection, float] = {}
        self._reporting: dict[Connection, int] = {}  #: the sizes of reports in flight
        self._reported: dict[Connection, int] = {}  #: what members own, as they reported it last
        self._total = self._with_share = 0
        self._due: list[tuple[float, int, Connection]] = []
        self._order = itertools.count()

    @property
    def is_settled(self) -> bool:
        return self._total == self._partitions and self._with_share == self._members

    def send(self, connection: Connection, frame: bytes) -> None:
        connection.send(frame)
        self._sent_at[connection] = time.monotonic()
        self.sent += 1
        self.in_flight += 1

    def pause_s(self) -> float:
        """The time until the next heartbeat."""
        if time.monotonic() - self._last_answer > lean_groups.SILENCE_S:
            raise TimeoutError("the broker did not answer in time")
        return min(max(self._due[0][0] - time.monotonic(), 0), 1.0) if self._due else 1.0

    def send_due(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            connection = heapq.heappop(self._due)[2]
            self.send(connection, connection.data.heartbeat())

    def take(self, connection: Connection, answer: bytes) -> None:
        """Handle an answer: report at once what has changed, or heartbeat at the next interval."""
        member: ConsumerMember = connection.data
        said = parsed(answer)
        self._last_answer = time.monotonic()
        self.in_flight -= 1
        if said.error != lean.NONE:
            raise RuntimeError(f"ConsumerGroupHeartbeat of {member.name} at epoch {member.epoch}: error {said.error}")
        member.epoch, member.interval_ms = said.epoch, said.interval_ms
        if connection in self._reporting:
            self._has_reported(connection, self._reporting.pop(connection))
        if self.is_settled:
            return
        if said.rows is not None and said.rows != member.owned:
            member.owned = said.rows
            self._reporting[connection] = count_of(said.rows)
            self.send(connection, member.report())
        else:
            interval_s = member.interval_ms / 1000 if self._interval_s is None else self._interval_s
            heapq.heappush(self._due, (self._sent_at[connection] + interval_s, next(self._order), connection))

    def _has_reported(self, connection: Connection, count: int) -> None:
        before = self._reported.get(connection)
        self._with_share += (count in self.shares) - (before in self.shares)
        self._total += count - (before or 0)
        self._reported[connection] = count


def _checked(sockets: Sockets, connections: Sequence[Connection], partitions: int) -> int:
    """The group's epoch. Raises RuntimeError if not all are in it, or do not share out all partitions."""
    members: list[ConsumerMember] = [connection.data for connection in connections]
    answers = lean_groups.ask_each(sockets, connections, [member.heartbeat() for member in members])
    for member, answer in zip(members, answers, strict=True):
        said = parsed(answer)
        if said.error != lean.NONE or said.rows is not None:
            raise RuntimeError(f"{member.name} was not settled: {said}")
        member.epoch = said.epoch
    epochs = {member.epoch for member in members}
    if len(epochs) != 1:
        raise RuntimeError(f"members are in {len(epochs)} epochs")
    owned = sorted(number for member in members for number in partitions_of(member.owned))
    if owned != list(range(partitions)):
        raise RuntimeError(f"{len(owned)} partitions are owned, {len(set(owned))} different ones, of {partitions}")
    return epochs.pop()
