"""Encodes and decodes the records of `__consumer_offsets` as Kafka does.

Layouts are those of Kafka's OffsetCommitKey, OffsetCommitValue, GroupMetadataKey and GroupMetadataValue (JSON schemas
of 4.1). Written records equal those of a 4.1.1 broker byte for byte: key 1 with value 4 (without the tag for the
topic's id, which only OffsetCommit 10 has), key 2 with value 3. All versions up to these are read. The records of
groups of the `consumer` design are in `consumer_records`. Keys of other versions are skipped when loading, as KIP-915
requires.

Records of transactions have key versions of our own, because this log keeps one value per key and has no transactional
batches, and because there is no second topic for transactional ids. Kafka skips them.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, cast

from coordinator.groups.consumer_records import CONSUMER_KEYS
from coordinator.groups.records import (
    GroupKey,
    GroupRecord,
    MemberRecord,
    OffsetKey,
    OffsetRecord,
    PendingKey,
    Phase,
    ProducerKey,
    ProducerRecord,
    Profile,
    ServerKey,
    ServerMember,
    ServerRecord,
    TransactionKey,
    TransactionRecord,
)
from coordinator.service.consumer_records import decode_consumer_key, decode_consumer_value, encode_consumer
from coordinator.service.record_reader import MalformedRecord, RecordReader
from kernel.values import TopicPartition
from kernel.wire.tags import uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coordinator.groups.consumer_records import ConsumerChange
    from coordinator.groups.records import Key, StoredChange

    OwnRecord = GroupRecord | OffsetRecord | TransactionRecord | ProducerRecord | ServerRecord

#: The longest text in a record, in bytes.
TEXT_BYTES_MAX = 32_767
#: Members of a group encoded in one piece.
MEMBERS_PER_PIECE = 500

_OFFSET_KEY, _GROUP_KEY = 1, 2
_OFFSET_VALUE = 4  #: the first flexible one: lengths as varints, tagged fields at the end (KIP-482)
_GROUP_VALUE = 3
#: Our own, far from Kafka's: pending offsets (whose value is an offset's), transactional ids, producer ids.
_PENDING_KEY, _TRANSACTION_KEY, _PRODUCER_KEY = 30_001, 30_002, 30_003
#: Our own too: groups of the server design.
_SERVER_KEY = 30_004
_OWN_VALUE = 0
_TRANSACTION_VALUE = 1  #: version 0 had no partitions
_NULL = -1
_INT = struct.Struct(">i")
#: An offset's value with empty metadata (`_EMPTY` is its length plus one) and no tags.
_BARE_OFFSET = struct.Struct(">hqiBqB")
_EMPTY = 1


def encode(change: StoredChange) -> tuple[bytes, bytes | None]:
    """Key and value; a tombstone's value is None."""
    key, value = change
    if type(key) is OffsetKey and type(value) is OffsetRecord:  # the most frequent records
        return _offset_head(key.group_id, key.topic) + _INT.pack(key.partition), _encode_offset(value)
    if isinstance(key, CONSUMER_KEYS):
        return encode_consumer(cast("ConsumerChange", change))
    known = cast("OwnRecord | None", value)
    return _encode_key(key), None if known is None else _encode_value(known)


def encode_ahead(changes: Iterable[StoredChange]) -> Iterator[None]:
    """Encode the members of large groups in pieces, so that `encode` is short."""
    for _, value in changes:
        if isinstance(value, GroupRecord):
            for at in range(0, len(value.members), MEMBERS_PER_PIECE):
                for member in value.members[at : at + MEMBERS_PER_PIECE]:
                    stored_form(member.profile)
                if at:
                    yield


def _encode_key(key: Key | ServerKey) -> bytes:
    match key:
        case OffsetKey(group_id, topic, partition):
            return _offset_head(group_id, topic) + _INT.pack(partition)
        case GroupKey(group_id):
            return struct.pack(">h", _GROUP_KEY) + _text(group_id)
        case PendingKey(producer_id, group_id, topic, partition):
            head = struct.pack(">hq", _PENDING_KEY, producer_id)
            return head + _text(group_id) + _text(topic) + struct.pack(">i", partition)
        case TransactionKey(transactional_id):
            return struct.pack(">h", _TRANSACTION_KEY) + _text(transactional_id)
        case ProducerKey(producer_id):
            return struct.pack(">hq", _PRODUCER_KEY, producer_id)
        case ServerKey(group_id):
            return struct.pack(">h", _SERVER_KEY) + _text(group_id)


def _encode_value(value: OwnRecord) -> bytes:
    match value:
        case OffsetRecord():
            return _encode_offset(value)
        case GroupRecord():
            return _encode_group(value)
        case TransactionRecord():
            return _encode_transaction(value)
        case ProducerRecord():
            return struct.pack(">hhi", _OWN_VALUE, *value)
        case ServerRecord():
            return _encode_server(value)


@functools.lru_cache(maxsize=10_000)
def _offset_head(group_id: str, topic: str) -> bytes:
    """An offset's key before the partition, which many share."""
    return struct.pack(">h", _OFFSET_KEY) + _text(group_id) + _text(topic)


def decode_all(items: Iterable[tuple[bytes, bytes]]) -> Iterator[StoredChange]:
    """Decode a log. Skips keys of unknown versions. Raises `MalformedRecord`.

    Most records are offsets without metadata whose keys differ only in the partition: these take a fast path.
    """
    names: dict[bytes, tuple[str, str]] = {}  # group and topic, by the bytes before the partition
    for raw, value in items:
        if (known := names.get(raw[:-4])) is not None and len(value) == _BARE_OFFSET.size:
            version, offset, leader_epoch, length, committed_wall_ms, _ = _BARE_OFFSET.unpack(value)
            if version == _OFFSET_VALUE and length == _EMPTY:
                at = OffsetKey(*known, _INT.unpack_from(raw, len(raw) - 4)[0])
                yield at, OffsetRecord(offset, leader_epoch, "", committed_wall_ms)
                continue
        key = _decode_key(raw)
        if isinstance(key, OffsetKey) and raw[:-4] == _offset_head(key.group_id, key.topic):
            names[raw[:-4]] = key[:2]
        match key:
            case OffsetKey():
                yield key, _decode_offset(value)
            case GroupKey():
                yield key, _decode_group(value)
            case PendingKey():
                yield key, _decode_offset(value)
            case TransactionKey():
                yield key, _decode_transaction(value)
            case ProducerKey():
                yield key, _decode_producer(value)
            case ServerKey():
                yield key, _decode_server(value)
            case None if (consumer_key := decode_consumer_key(raw)) is not None:
                yield cast("ConsumerChange", (consumer_key, decode_consumer_value(consumer_key, value)))


def _encode_offset(record: OffsetRecord) -> bytes:
    if not record.metadata:
        return _BARE_OFFSET.pack(_OFFSET_VALUE, record.offset, record.leader_epoch, _EMPTY, record.committed_wall_ms, 0)
    head = struct.pack(">hqi", _OFFSET_VALUE, record.offset, record.leader_epoch)
    metadata = record.metadata.encode()
    return head + uvarint(len(metadata) + 1) + metadata + struct.pack(">qb", record.committed_wall_ms, 0)


def _encode_group(record: GroupRecord) -> bytes:
    parts = [
        struct.pack(">h", _GROUP_VALUE),
        _text(record.protocol_type),
        struct.pack(">i", record.generation),
        _nullable(record.protocol_name),
        _nullable(record.leader),
        struct.pack(">qi", record.state_wall_ms, len(record.members)),
    ]
    length_of = struct.Struct(">i").pack
    for profile, assignment in record.members:
        parts += [profile.stored or stored_form(profile), length_of(len(assignment)), assignment]
    return b"".join(parts)


def stored_form(profile: Profile) -> bytes:
    """A member's part of a group's record, before its assignment; cached in the profile."""
    if profile.stored is None:
        profile.stored = b"".join(
            (
                _text(profile.member_id),
                _nullable(profile.instance_id),
                _text(profile.client_id),
                _text(profile.client_host),
                struct.pack(">ii", profile.rebalance_timeout_ms, profile.session_timeout_ms),
                _bytes(profile.subscription),
            )
        )
    return profile.stored


def _encode_transaction(record: TransactionRecord) -> bytes:
    parts = [struct.pack(">hqhhib", _TRANSACTION_VALUE, *record[:4], record.phase)]
    parts += [struct.pack(">qi", record.started_wall_ms, len(record.groups)), *map(_text, record.groups)]
    parts.append(_INT.pack(len(record.partitions)))
    parts += [_text(topic) + _INT.pack(partition) for topic, partition in record.partitions]
    return b"".join(parts)


def _decode_transaction(value: bytes) -> TransactionRecord:
    reader = RecordReader(value)
    version = _checked(reader.int16(), "a transaction", _TRANSACTION_VALUE)
    producer_id, epoch, last_epoch, timeout_ms = reader.int64(), reader.int16(), reader.int16(), reader.int32()
    phase, started_wall_ms = reader.int8(), reader.int64()
    if phase not in set(Phase):
        raise MalformedRecord(f"a transaction in phase {phase}")
    groups = tuple(reader.text() for _ in range(reader.count()))
    count = reader.count() if version >= _TRANSACTION_VALUE else 0
    partitions = tuple(TopicPartition(reader.text(), reader.int32()) for _ in range(count))
    return TransactionRecord(
        producer_id, epoch, last_epoch, timeout_ms, Phase(phase), groups, started_wall_ms, partitions
    )


def _decode_producer(value: bytes) -> ProducerRecord:
    reader = RecordReader(value)
    _checked(reader.int16(), "a producer", _OWN_VALUE)
    return ProducerRecord(reader.int16(), reader.int32())


def _encode_server(record: ServerRecord) -> bytes:
    parts = [struct.pack(">hi", _OWN_VALUE, record.generation), _text(record.strategy)]
    parts.append(struct.pack(">i", len(record.sizes)))
    parts += [_text(topic) + struct.pack(">i", size) for topic, size in record.sizes]
    parts.append(struct.pack(">i", len(record.members)))
    for member in record.members:
        parts += [_text(member.member_id), struct.pack(">i", len(member.topics)), *map(_text, member.topics)]
        parts.append(struct.pack(">i", len(member.partitions)))
        parts += [_text(topic) + struct.pack(">i", partition) for topic, partition in member.partitions]
    return b"".join(parts)


def _decode_server(value: bytes) -> ServerRecord:
    reader = RecordReader(value)
    _checked(reader.int16(), "a group of the server design", _OWN_VALUE)
    generation, strategy = reader.int32(), reader.text()
    sizes = tuple((reader.text(), reader.int32()) for _ in range(reader.count()))
    members = tuple(_decode_server_member(reader) for _ in range(reader.count()))
    return ServerRecord(generation, strategy, sizes, members)


def _decode_server_member(reader: RecordReader) -> ServerMember:
    member_id = reader.text()
    topics = tuple(reader.text() for _ in range(reader.count()))
    partitions = tuple(TopicPartition(reader.text(), reader.int32()) for _ in range(reader.count()))
    return ServerMember(member_id, topics, partitions)


def _decode_key(raw: bytes) -> Key | ServerKey | None:
    reader = RecordReader(raw)
    version = reader.int16()
    if version in (0, _OFFSET_KEY):
        return OffsetKey(reader.text(), reader.text(), reader.int32())
    if version == _GROUP_KEY:
        return GroupKey(reader.text())
    if version == _PENDING_KEY:
        return PendingKey(reader.int64(), reader.text(), reader.text(), reader.int32())
    if version == _TRANSACTION_KEY:
        return TransactionKey(reader.text())
    if version == _SERVER_KEY:
        return ServerKey(reader.text())
    return ProducerKey(reader.int64()) if version == _PRODUCER_KEY else None


def _decode_offset(value: bytes) -> OffsetRecord:
    reader = RecordReader(value)
    version = _checked(reader.int16(), "an offset", _OFFSET_VALUE)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    if version >= _OFFSET_VALUE:
        return OffsetRecord(offset, leader_epoch, reader.compact_text(), reader.int64())  # tags are ignored
    return OffsetRecord(offset, leader_epoch, reader.text(), reader.int64())  # v1's expiry time is ignored


def _decode_group(value: bytes) -> GroupRecord:
    reader = RecordReader(value)
    version = _checked(reader.int16(), "a group", _GROUP_VALUE)
    protocol_type, generation = reader.text(), reader.int32()
    protocol_name, leader = reader.nullable(), reader.nullable()
    state_wall_ms = reader.int64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(max(reader.int32(), 0)))
    return GroupRecord(protocol_type, generation, protocol_name, leader, state_wall_ms, members)


def _decode_member(reader: RecordReader, version: int) -> MemberRecord:
    member_id = reader.text()
    instance_id = reader.nullable() if version >= 3 else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_timeout_ms = reader.int32() if version >= 1 else None
    session_timeout_ms = reader.int32()
    profile = Profile(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        session_timeout_ms,
        reader.blob(),
    )
    return MemberRecord(profile, reader.blob())


def _checked(version: int, what: str, highest: int) -> int:
    if not 0 <= version <= highest:
        raise MalformedRecord(f"{what} of value version {version}: this coordinator supports 0 to {highest}")
    return version


def _text(text: str) -> bytes:
    encoded = text.encode()
    assert len(encoded) <= TEXT_BYTES_MAX, f"a text of {len(encoded)} bytes should have been refused on arrival"
    return struct.pack(">h", len(encoded)) + encoded


def _nullable(text: str | None) -> bytes:
    return struct.pack(">h", _NULL) if text is None else _text(text)


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
