"""Encodes and decodes the records of groups of the `consumer` design, as Kafka 4.1.1 does.

Layouts are those of ConsumerGroup...Key and ConsumerGroup...Value (JSON schemas of 4.1): keys of the versions 3, 5 to 8
and 16, values of version 0, flexible. Partitions are written in ascending order. The key of version 4, what a group
subscribed to, is of 4.0 and before; since 4.1 a hash in the group's epoch takes its place, so it is skipped.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from coordinator.groups.consumer_records import (
    ClassicTerms,
    ClientKey,
    ClientRecord,
    CurrentKey,
    CurrentRecord,
    EpochKey,
    EpochRecord,
    RegexKey,
    RegexRecord,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    TargetRecord,
)
from coordinator.groups.partitions import partitions
from coordinator.groups.requests import Protocol
from coordinator.service.record_reader import MalformedRecord, RecordReader
from kernel.wire.tags import uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.groups.consumer_records import ConsumerChange, ConsumerKey, ConsumerRecord
    from coordinator.groups.partitions import Partitions

#: Key class by key version.
KEYS: dict[int, type[ConsumerKey]] = {
    3: EpochKey,
    5: ClientKey,
    6: TargetEpochKey,
    7: TargetKey,
    8: CurrentKey,
    16: RegexKey,
}
_SHORT, _HEAD_OF_CURRENT = struct.Struct(">h"), struct.Struct(">iib")
_VERSION_BYTES = {kind: _SHORT.pack(version) for version, kind in KEYS.items()}
_VALUE = 0
_NO_TAGS = b"\0"
_NO_TOPICS = b"\1"
_HASH_TAG = 0
_CLASSIC_TAG = 0
#: The only tagged field, which Kafka writes though it is null.
_NO_CLASSIC_TERMS = b"\1\0\1\0"
_IS_NOT_NULL = b"\1"  #: before a nullable structure
_UUID_BYTES = 16


def encode_consumer(change: ConsumerChange) -> tuple[bytes, bytes | None]:
    """Key and value; a tombstone's value is None."""
    key, value = change
    return _encode_key(key), None if value is None else struct.pack(">h", _VALUE) + _encode_value(value)


def decode_consumer_key(raw: bytes) -> ConsumerKey | None:
    """None for a key of another version. Raises `MalformedRecord`."""
    reader = RecordReader(raw)
    match KEYS.get(reader.int16()):
        case None:
            return None
        case kind if kind in (EpochKey, TargetEpochKey):
            return kind(reader.text())
        case kind:
            return cast("type[ClientKey | TargetKey | CurrentKey | RegexKey]", kind)(reader.text(), reader.text())


def decode_consumer_value(key: ConsumerKey, value: bytes) -> ConsumerRecord:
    """Raises `MalformedRecord`."""
    reader = RecordReader(value)
    if (version := reader.int16()) != _VALUE:
        raise MalformedRecord(f"a record of a consumer group of value version {version}: this coordinator supports 0")
    match key:
        case EpochKey():
            return _decode_epoch(reader)
        case ClientKey():
            return _decode_client(reader)
        case TargetEpochKey():
            return TargetEpochRecord(reader.int32())
        case TargetKey():
            return TargetRecord(_decode_partitions(reader))
        case CurrentKey():
            head = reader.int32(), reader.int32(), reader.int8()
            return CurrentRecord(*head, _decode_partitions(reader), _decode_partitions(reader))
        case RegexKey():
            return RegexRecord(_decode_texts(reader), reader.int64(), reader.int64())


def _encode_key(key: ConsumerKey) -> bytes:
    head = _VERSION_BYTES[type(key)] + _text(key.group_id)
    match key:
        case ClientKey(_, second) | TargetKey(_, second) | CurrentKey(_, second) | RegexKey(_, second):
            return head + _text(second)
    return head


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _SHORT.pack(len(encoded)) + encoded


def _encode_value(value: ConsumerRecord) -> bytes:
    match value:
        case EpochRecord(epoch, metadata_hash):
            return struct.pack(">i", epoch) + _encode_hash(metadata_hash)
        case ClientRecord():
            return _encode_client(value)
        case TargetEpochRecord(epoch):
            return struct.pack(">i", epoch) + _NO_TAGS
        case TargetRecord(target):
            return encode_partitions(target) + _NO_TAGS
        case CurrentRecord(epoch, previous_epoch, state, assigned, revoking):
            head = _HEAD_OF_CURRENT.pack(epoch, previous_epoch, state)
            return head + encode_partitions(assigned) + encode_partitions(revoking) + _NO_TAGS
        case RegexRecord(topics, version, wall_ms):
            return _encode_texts(topics) + struct.pack(">qq", version, wall_ms) + _NO_TAGS


def _encode_hash(metadata_hash: int) -> bytes:
    """A tagged field, left out if it is 0."""
    return struct.pack(">BBBq", 1, _HASH_TAG, 8, metadata_hash) if metadata_hash else _NO_TAGS


def _decode_epoch(reader: RecordReader) -> EpochRecord:
    epoch, tagged = reader.int32(), reader.tags().get(_HASH_TAG, bytes(8))
    return EpochRecord(epoch, RecordReader(tagged).int64())


def _encode_client(record: ClientRecord) -> bytes:
    return b"".join(
        (
            _compact(record.instance_id),
            _compact(record.rack_id),
            _compact(record.client_id),
            _compact(record.client_host),
            _encode_texts(record.topics),
            _compact(record.topic_regex),
            struct.pack(">i", record.rebalance_timeout_ms),
            _compact(record.assignor),
            _NO_CLASSIC_TERMS if record.classic is None else _encode_classic(record.classic),
        )
    )


def _encode_classic(classic: ClassicTerms) -> bytes:
    protocols = [_compact(p.name) + uvarint(len(p.metadata) + 1) + p.metadata + _NO_TAGS for p in classic.protocols]
    body = b"".join(
        (
            _IS_NOT_NULL,
            struct.pack(">i", classic.session_timeout_ms),
            uvarint(len(protocols) + 1),
            *protocols,
            _NO_TAGS,
        )
    )
    return struct.pack(">BB", 1, _CLASSIC_TAG) + uvarint(len(body)) + body


def _decode_client(reader: RecordReader) -> ClientRecord:
    return ClientRecord(
        reader.compact_nullable(),
        reader.compact_nullable(),
        reader.compact_text(),
        reader.compact_text(),
        _decode_texts(reader),
        reader.compact_nullable() or "",
        reader.int32(),
        reader.compact_nullable(),
        _decode_classic(reader.tags().get(_CLASSIC_TAG, b"")),
    )


def _decode_classic(body: bytes) -> ClassicTerms | None:
    if not body.startswith(_IS_NOT_NULL):
        return None
    reader = RecordReader(body[len(_IS_NOT_NULL) :])
    return ClassicTerms(reader.int32(), tuple(_decode_protocol(reader) for _ in range(reader.compact_count())))


def _decode_protocol(reader: RecordReader) -> Protocol:
    protocol = Protocol(reader.compact_text(), reader.compact_blob())
    reader.tags()
    return protocol


def _compact(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()
    return uvarint(len(encoded) + 1) + encoded


def _encode_texts(texts: Iterable[str]) -> bytes:
    encoded = [_compact(text) for text in texts]
    return uvarint(len(encoded) + 1) + b"".join(encoded)


def _decode_texts(reader: RecordReader) -> tuple[str, ...]:
    return tuple(reader.compact_text() for _ in range(reader.compact_count()))


def encode_partitions(given: Partitions) -> bytes:
    """A compact array of topics, ascending; ConsumerGroupHeartbeat has it, too."""
    if not given:
        return _NO_TOPICS
    parts = [uvarint(len(given) + 1)]
    for topic in sorted(given):
        numbers = sorted(given[topic])
        parts += [topic, uvarint(len(numbers) + 1), struct.pack(f">{len(numbers)}i", *numbers), _NO_TAGS]
    return b"".join(parts)


def _decode_partitions(reader: RecordReader) -> Partitions:
    return partitions(_decode_topic(reader) for _ in range(reader.compact_count()))


def _decode_topic(reader: RecordReader) -> tuple[bytes, tuple[int, ...]]:
    topic, count = reader.fixed(_UUID_BYTES), reader.compact_count()
    numbers = struct.unpack(f">{count}i", reader.fixed(4 * count))
    reader.tags()
    return topic, numbers
