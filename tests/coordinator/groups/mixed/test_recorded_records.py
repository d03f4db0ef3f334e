"""The records of groups that migrate, beside those that a real 4.1.1 wrote to `__consumer_offsets`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.consumer_records import ClientRecord, CurrentRecord, EpochRecord, TargetRecord
from coordinator.groups.partitions import Partitions
from coordinator.groups.records import GroupKey, GroupRecord, OffsetKey
from coordinator.service.consumer_records import decode_consumer_key
from coordinator.service.record_codec import decode_all, encode
from tests.coordinator.groups.mixed.test_recorded_conversations import PLAYED, Player
from tests.support.groups.consumer import topic_id

RECORDED = json.loads(Path(__file__).with_name("mixed-records-4.1.1.json").read_text())
CONVERSATIONS = {c["conversation"]: c for c in RECORDED["conversations"]}
NAMES = {bytes.fromhex(identity): name for name, identity in RECORDED["topics"].items()}
EPOCHS, OF_4_0 = "0003", "0004"  #: key versions; the latter had what a group subscribed to, and is only deleted now

Record = tuple[Any, Any]


def kept(batch: Collection[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Without keys of 4.0, and without an epoch that the same batch deletes: of a newcomer with other topics."""
    gone = {key for key, value in batch if value is None and key.startswith(EPOCHS)}
    return [(key, value) for key, value in batch if not key.startswith(OF_4_0) and not (value and key in gone)]


def decoded(key: str, value: str | None) -> Record:
    raw = bytes.fromhex(key)
    if value is not None:
        ((found, record),) = decode_all([(raw, bytes.fromhex(value))])
        return found, record
    found_key = decode_consumer_key(raw)
    return found_key or GroupKey(raw[4:].decode()), None


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_records_of_4_1_1_are_read_and_written_byte_for_byte(name: str) -> None:
    for key, value in itertools.chain.from_iterable(map(kept, CONVERSATIONS[name]["batches"])):
        change: Any = decoded(key, value)
        assert encode(change) == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def comparable(key: Any, record: Any, ids: dict[str, str], topics: dict[bytes, bytes]) -> tuple[Any, ...]:
    """Without what differs by nature: groups' ids, hashes, hosts and times; ids as the conversation names them."""

    def named(given: Partitions) -> dict[bytes, frozenset[int]]:
        return {topics.get(topic, topic): numbers for topic, numbers in given.items()}

    match record:
        case EpochRecord(epoch, metadata_hash):
            record = epoch, metadata_hash != 0
        case TargetRecord(target):
            record = named(target)
        case CurrentRecord():
            record = record._replace(assigned=named(record.assigned), revoking=named(record.revoking))
        case ClientRecord():
            record = record._replace(client_host="")
        case GroupRecord():
            members = {
                ids.get(m.member_id, m.member_id): (m.profile.subscription, m.assignment) for m in record.members
            }
            leader = ids.get(record.leader, record.leader)
            record = record.generation, record.protocol_type, record.protocol_name, leader, members
    member_id = getattr(key, "member_id", "")
    return type(key).__name__, ids.get(member_id, member_id), record


def in_order(batch: Iterable[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Kafka's order of members is that of its hash maps; that of the kinds of records counts."""
    return [sorted(run, key=repr) for _, run in itertools.groupby(batch, key=lambda record: record[0])]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_same_conversation_writes_the_same_records_in_the_same_order(name: str) -> None:
    recorded = CONVERSATIONS[name]
    real_ids = {real: symbol for symbol, real in recorded["ids"].items()}
    real_topics = {identity: topic_id(topic) for identity, topic in NAMES.items()}
    player = Player()
    for step in PLAYED[name]["steps"]:
        player.play(step)
    our_ids = {ours: symbol for symbol, ours in player.ids.items()}
    expected = [
        in_order(comparable(*decoded(key, value), real_ids, real_topics) for key, value in kept(batch))
        for batch in recorded["batches"]
    ]
    written = [in_order(comparable(key, record, our_ids, {}) for key, record in batch) for batch in player.at.batches]
    offsets = OffsetKey.__name__
    assert written == [batch for batch in expected if batch[0][0][0] != offsets]
