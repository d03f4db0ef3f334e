"""Requests of a lean member as bytes, and the few fields of the answers that it needs.

JoinGroup 5, SyncGroup 3, Heartbeat 4, LeaveGroup 3, OffsetCommit 7, OffsetFetch 5, FindCoordinator 1, CreateTopics 2,
which Kafka 4.1 and (except LeaveGroup) librdkafka's mock cluster support too. The driver should cost less than what it
measures: it decodes only what it needs, and compares answers that are known in advance as bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OFFSET_COMMIT, OFFSET_FETCH, FIND, JOIN, HEARTBEAT, LEAVE, SYNC, CREATE_TOPICS = 8, 9, 10, 11, 12, 13, 14, 19
NONE, COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 0, 14, 15, 16
UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, GROUP_ID_NOT_FOUND, MEMBER_ID_REQUIRED = 25, 27, 69, 79
#: Answers to the heartbeat of an unknown member: by brokers, and by librdkafka's mock.
UNKNOWN = frozenset({UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND})
#: Errors after which a client waits, or looks up the coordinator again.
RETRIED = frozenset({COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})

#: Long enough that no session ends during a measure, however busy the machine is.
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 1_800_000, 600_000
#: A subscription to the topic "t" in the consumer protocol's version 0.
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def compact(value: str) -> bytes:
    """A compact string, shorter than 127 bytes."""
    data = value.encode()
    assert len(data) < 127, value
    return bytes((len(data) + 1,)) + data


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def frame(api: int, version: int, correlation: int, client: str, body: bytes, *, flexible: bool = False) -> bytes:
    """A complete request, size included."""
    header = struct.pack(">hhi", api, version, correlation) + text(client) + (b"\x00" if flexible else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


@dataclass(slots=True)
class Member:
    """A member's identity in its group. `name` is its client id; `number` is the partition that it is assigned."""

    name: str
    group: str
    number: int
    member_id: str = ""
    generation: int = -1
    assignment: bytes = b""
    awaits: int = NONE  #: the request in flight

    def join(self) -> bytes:
        body = text(self.group) + struct.pack(">ii", SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS) + text(self.member_id)
        body += text(None) + text("consumer") + struct.pack(">i", 1) + text("range") + blob(SUBSCRIPTION)
        return frame(JOIN, 5, self.number, self.name, body)

    def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """SyncGroup, with `assignments` by member id from the leader and none from the others."""
        body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id) + text(None)
        rows = b"".join(text(member_id) + blob(assignment) for member_id, assignment in assignments.items())
        return frame(SYNC, 3, self.number, self.name, body + struct.pack(">i", len(assignments)) + rows)

    def heartbeat(self) -> bytes:
        body = compact(self.group) + struct.pack(">i", self.generation) + compact(self.member_id) + b"\x00\x00"
        return frame(HEARTBEAT, 4, self.number, self.name, body, flexible=True)

    def heartbeat_answer(self, error: int) -> bytes:
        """The complete answer: no tags, no throttling."""
        return struct.pack(">iiBihB", 12, self.number, 0, 0, error, 0)

    def partitions(self, each: int) -> range:
        """The partitions that it commits, if every member of the group commits as many."""
        return range(self.number * each, (self.number + 1) * each)

    def commit(self, topic: str, partitions: Sequence[int], offset: int) -> bytes:
        """OffsetCommit of one offset for all of these partitions."""
        body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id) + text(None)
        body += struct.pack(">i", 1) + text(topic) + struct.pack(">i", len(partitions))
        body += b"".join(struct.pack(">iqi", partition, offset, -1) + text("") for partition in partitions)
        return frame(OFFSET_COMMIT, 7, self.number, self.name, body)

    def commit_answer(self, topic: str, partitions: Sequence[int]) -> bytes:
        """The complete answer when every commit succeeded."""
        rows = b"".join(struct.pack(">ih", partition, NONE) for partition in partitions)
        body = struct.pack(">iii", self.number, 0, 1) + text(topic) + struct.pack(">i", len(partitions)) + rows
        return struct.pack(">i", len(body)) + body


@dataclass(frozen=True, slots=True)
class Joined:
    """Fields of an answer to JoinGroup; `members` has all member ids, for the leader only."""

    error: int
    generation: int
    member_id: str
    members: tuple[str, ...]


def joined(answer: bytes) -> Joined:
    """Read a complete answer, size included."""
    error, generation = struct.unpack_from(">hi", answer, 12)
    at = 18
    fields = []
    for _ in range(3):  # protocol name, leader, member id
        value, at = text_at(answer, at)
        fields.append(value)
    (count,) = struct.unpack_from(">i", answer, at)
    at += 4
    members = []
    for _ in range(count):
        length = int.from_bytes(answer[at : at + 2], "big")
        members.append(answer[at + 2 : at + 2 + length].decode())
        at += length + 4  # the id, and a null group.instance.id
        at += 4 + int.from_bytes(answer[at : at + 4], "big")
    return Joined(error, generation, fields[2], tuple(members))


def synced(answer: bytes) -> tuple[int, bytes]:
    """(error, assignment) of an answer to SyncGroup."""
    error, length = struct.unpack_from(">hi", answer, 12)
    return error, answer[18 : 18 + length]


def assignment_of(number: int) -> bytes:
    """An assignment of one partition, in version 0 of the consumer protocol."""
    return struct.pack(">hi", 0, 1) + text("t") + struct.pack(">iii", 1, number, 0)


def leave(group: str, member_ids: Iterable[str], client: str) -> bytes:
    """LeaveGroup of all of them in one request."""
    rows = [text(member_id) + text(None) for member_id in member_ids]
    return frame(LEAVE, 3, 0, client, text(group) + struct.pack(">i", len(rows)) + b"".join(rows))


def left(answer: bytes) -> list[int]:
    """The error of the request, then those of the members."""
    error, count = struct.unpack_from(">hi", answer, 12)
    errors = [error]
    at = 18
    for _ in range(count):
        _, at = text_at(answer, at)
        _, at = text_at(answer, at)
        errors.append(struct.unpack_from(">h", answer, at)[0])
        at += 2
    return errors


def find(group: str, client: str) -> bytes:
    return frame(FIND, 1, 0, client, text(group) + b"\x00")


def find_error(answer: bytes) -> int:
    return int(struct.unpack_from(">h", answer, 12)[0])


def create_topic(name: str, partitions: int) -> bytes:
    """CreateTopics 2 with one replica."""
    body = struct.pack(">i", 1) + text(name) + struct.pack(">ihii", partitions, 1, 0, 0) + struct.pack(">iB", 30_000, 0)
    return frame(CREATE_TOPICS, 2, 0, "bench", body)


def created_error(answer: bytes) -> int:
    _, at = text_at(answer, 16)
    return int(struct.unpack_from(">h", answer, at)[0])


def fetch_offsets(group: str, topic: str, partitions: Sequence[int], client: str) -> bytes:
    body = (
        text(group)
        + struct.pack(">i", 1)
        + text(topic)
        + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    )
    return frame(OFFSET_FETCH, 5, 0, client, body)


def fetched_offsets(answer: bytes) -> tuple[int, dict[tuple[str, int], int]]:
    """(error of the request, {(topic, partition): offset}). Raises for a partition with an error."""
    (topics,) = struct.unpack_from(">i", answer, 12)
    at = 16
    found: dict[tuple[str, int], int] = {}
    for _ in range(topics):
        topic, at = text_at(answer, at)
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(count):
            partition, offset, _ = struct.unpack_from(">iqi", answer, at)
            _, at = text_at(answer, at + 16)
            (error,) = struct.unpack_from(">h", answer, at)
            at += 2
            if error != NONE:
                raise RuntimeError(f"the offset of {topic}-{partition}: error {error}")
            found[topic, partition] = offset
    return int(struct.unpack_from(">h", answer, at)[0]), found


def text_at(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return ("", at + 2) if length < 0 else (data[at + 2 : at + 2 + length].decode(), at + 2 + length)
