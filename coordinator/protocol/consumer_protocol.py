"""The bytes that members of a group send each other through the coordinator, which does not interpret them.

These are Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment (JSON schemas of kafka-clients 4.1,
versions 0 to 3), the payload of JoinGroup and SyncGroup under the protocol type "consumer":

    subscription  version i16, [topic], user data?, v1: [topic, [partition]] owned, v2: generation i32, v3: rack?
    assignment    version i16, [topic, [partition]], user data?

Each version only appends fields, so a reader takes the fields it knows and ignores the rest, as Kafka's does: members
of different versions share a group. A member writes version 3, as 4.1 does. Invalid bytes raise `MalformedMetadata`;
every length is checked against the remaining bytes before anything is built from it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.assignors.subscription import MemberSubscription
from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

#: protocol_type of JoinGroup for consumers; Connect's workers say "connect".
CONSUMER_PROTOCOL_TYPE = "consumer"

#: The version that we write, and the newest we know.
NEWEST_VERSION = 3

RACKS = 3  #: the first version with racks
_NO_GENERATION = -1
_NULL = -1


class MalformedMetadata(RebalanceLabError):
    """Another member's bytes do not follow the consumer protocol."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader assigns to one member."""

    partitions: frozenset[TopicPartition] = frozenset()
    user_data: bytes | None = None


def encode_subscription(subscription: MemberSubscription, *, version: int = NEWEST_VERSION) -> bytes:
    """Encode the metadata of one protocol in JoinGroup, without the instance id, which has a separate field."""
    assert 0 <= version <= NEWEST_VERSION, version
    parts = [struct.pack(">hi", version, len(subscription.topics))]
    parts += [_text(topic) for topic in subscription.topics]
    parts.append(_bytes(subscription.user_data))
    if version >= 1:
        parts.append(_partitions(sorted(subscription.owned)))
    if version >= 2:
        parts.append(struct.pack(">i", _NO_GENERATION if subscription.generation is None else subscription.generation))
    if version >= 3:
        parts.append(struct.pack(">h", _NULL))  # no rack: our assignors ignore it
    return b"".join(parts)


def decode_subscription(data: bytes, *, instance_id: str | None = None) -> MemberSubscription:
    """Decode a member's subscription; fields missing in its version are empty. Raises `MalformedMetadata`."""
    reader = Reader(data)
    version = reader.version()
    topics = tuple([reader.text() for _ in range(reader.count(2))])
    user_data = reader.bytes_or_null()
    owned = reader.partitions() if version >= 1 else ()
    generation = reader.int32() if version >= 2 else _NO_GENERATION
    return MemberSubscription(
        topics=topics,
        instance_id=instance_id,
        owned=owned,
        generation=None if generation < 0 else generation,
        user_data=user_data,
    )


def decode_rack(data: bytes) -> str | None:
    """The rack in a member's subscription, since version 3. Raises `MalformedMetadata`."""
    reader = Reader(data)
    if reader.version() < RACKS:
        return None
    for _ in range(reader.count(2)):
        reader.text()
    reader.bytes_or_null()
    reader.partitions()
    reader.int32()
    return reader.text_or_null()


def readable_version(data: bytes) -> int:
    """The newest version that the member who sent this can read, and we can write."""
    return max(0, min(int.from_bytes(data[:2], "big", signed=True), NEWEST_VERSION))


def subscription_of(data: bytes, *, instance_id: str | None = None) -> MemberSubscription:
    """Decode a member's subscription; a malformed one counts as empty, so that the group can go on."""
    try:
        return decode_subscription(data, instance_id=instance_id)
    except MalformedMetadata:
        return MemberSubscription(topics=(), instance_id=instance_id)


def encode_assignment(
    partitions: Iterable[TopicPartition], *, user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Encode one member's entry in the leader's SyncGroup."""
    return encode_ordered_assignment(sorted(partitions), user_data=user_data, version=version)


def encode_ordered_assignment(
    partitions: Iterable[TopicPartition], *, user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Encode an assignment with its partitions in the given order."""
    assert 0 <= version <= NEWEST_VERSION, version
    return struct.pack(">h", version) + _partitions(partitions) + _bytes(user_data)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment. Empty bytes mean no partitions: the coordinator sends them to a member that the leader
    left out (the Java client throws). Raises `MalformedMetadata`.
    """
    if not data:
        return Assignment()
    reader = Reader(data)
    reader.version()
    partitions = frozenset(reader.partitions())
    return Assignment(partitions, reader.bytes_or_null())


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return struct.pack(">h", len(encoded)) + encoded


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", _NULL) if data is None else struct.pack(">i", len(data)) + data


def _partitions(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += [_text(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join(parts)


class Reader:
    """Reads bytes from the front; checks every length against the remaining bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def position(self) -> int:
        """How many bytes have been read."""
        return self._at

    def skip_to(self, position: int) -> None:
        """Continue at `position`; the caller has read the bytes before it."""
        self._at = position

    def version(self) -> int:
        version = self._int16()
        if version < 0:
            raise MalformedMetadata(f"consumer protocol version {version}: versions count from 0")
        return version

    def int32(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def count(self, item_bytes_min: int) -> int:
        """Read an array's length; null counts as 0. Raises when even the smallest items would not fit."""
        count = self.int32()
        if count * item_bytes_min > len(self._data) - self._at:
            raise MalformedMetadata(f"an array of {count} entries in {len(self._data)} bytes")
        return max(count, 0)

    def text(self) -> str:
        """Read a string. Inlined for speed: leaders read hundreds of names for each of thousands of members."""
        data, begin = self._data, self._at + 2
        if begin > len(data):
            raise self._cut_short(2)
        if data[begin - 2] & 0x80:
            raise MalformedMetadata("a topic name is null")
        self._at = begin
        end = begin + (data[begin - 2] << 8 | data[begin - 1])
        if end > len(data):
            raise self._cut_short(end - begin)
        self._at = end
        try:
            return data[begin:end].decode()
        except UnicodeDecodeError as error:
            raise MalformedMetadata(f"a topic name is not UTF-8: {error}") from error

    def text_or_null(self) -> str | None:
        if self._data[self._at : self._at + 1] >= b"\x80":
            self._take(2)
            return None
        return self.text()

    def bytes_or_null(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def partitions(self) -> tuple[TopicPartition, ...]:
        found = []
        for _ in range(self.count(6)):
            topic = self.text()
            found += [TopicPartition(topic, self.int32()) for _ in range(self.count(4))]
        return tuple(found)

    def _int16(self) -> int:
        return int(struct.unpack(">h", self._take(2))[0])

    def _take(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise self._cut_short(length)
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken

    def _cut_short(self, wanted: int) -> MalformedMetadata:
        return MalformedMetadata(f"cut short: {wanted} bytes wanted, {len(self._data) - self._at} left")
