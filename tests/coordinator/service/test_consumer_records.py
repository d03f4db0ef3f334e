"""The records of groups of the `consumer` design beside those that a real 4.1.1 wrote to `__consumer_offsets`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.consumer.draft import Draft
from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.leaving import remove
from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.consumer_records import (
    ClassicTerms,
    ClientKey,
    ClientRecord,
    ConsumerKey,
    ConsumerRecord,
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
from coordinator.groups.partitions import Partitions, partitions
from coordinator.groups.requests import Protocol
from coordinator.service.consumer_records import decode_consumer_key, decode_consumer_value, encode_consumer
from coordinator.service.record_reader import MalformedRecord
from tests.support.groups.consumer import World, owned_by_name, topic_id

RECORDED = json.loads(Path(__file__).with_name("consumer-records-4.1.1.json").read_text())
NAMES = {bytes.fromhex(identity): name for name, identity in RECORDED["topics"].items()}
RECORDS = [(key, value) for step in RECORDED["steps"] for key, value in step["records"]]
#: Whose session ended while this was recorded, in the course of which step.
EXPIRED = {"s returns": "mb"}


def decoded(key: str, value: str | None) -> tuple[ConsumerKey, ConsumerRecord | None]:
    found = decode_consumer_key(bytes.fromhex(key))
    assert found is not None
    return found, None if value is None else decode_consumer_value(found, bytes.fromhex(value))


@pytest.mark.parametrize(("key", "value"), RECORDS)
def test_records_of_4_1_1_are_read_and_written_byte_for_byte(key: str, value: str | None) -> None:
    encoded = encode_consumer(decoded(key, value))  # type: ignore[arg-type]  # key and value belong together
    assert encoded == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def by_our_ids(given: Partitions) -> Partitions:
    return {topic_id(NAMES[topic]): numbers for topic, numbers in given.items()}


def comparable(value: ConsumerRecord | None) -> ConsumerRecord | None:
    """Our topics have other ids, and our hash is another one."""
    match value:
        case EpochRecord(epoch, metadata_hash):
            return EpochRecord(epoch, int(metadata_hash != 0))
        case _:
            return value


def ours(value: ConsumerRecord | None) -> ConsumerRecord | None:
    match value:
        case TargetRecord(target):
            return TargetRecord(by_our_ids(target))
        case CurrentRecord():
            return value._replace(assigned=by_our_ids(value.assigned), revoking=by_our_ids(value.revoking))
        case _:
            return comparable(value)


def play(world: World, step: dict[str, Any]) -> None:
    asked = dict(step["request"])
    owned = asked.pop("topic_partitions", None)
    answer = world.ask(
        asked["member_id"],
        asked["member_epoch"],
        group=asked["group_id"],
        client_id=step["conn"],
        instance_id=asked.get("instance_id"),
        rack_id=asked.get("rack_id"),
        rebalance_timeout_ms=asked["rebalance_timeout"],
        topics=None if "subscribed_topic_names" not in asked else tuple(asked["subscribed_topic_names"]),
        topic_regex=asked.get("subscribed_topic_regex"),
        assignor=asked.get("server_assignor"),
        owned=None if owned is None else owned_by_name({row["topic_id"][1:]: row["partitions"] for row in owned}),
    )
    assert f"{int(answer.error)} {answer.error.name}" == step["error"]
    assert answer.epoch == step["epoch"]
    if gone := EXPIRED.get(step["name"]):
        world.step(partial(remove, Draft(world.group, world.settings, world.topics), gone))
    for key, value in (decoded(*record) for record in step["records"]):
        if isinstance(key, RegexKey) and isinstance(value, RegexRecord):
            world.step(partial(world.groups.matched, key.group_id, {key.regex: value}))


def test_same_conversation_writes_the_same_records_in_the_same_order() -> None:
    world, log = World({"foo": 6, "bar": 3, "t1": 4, "t2": 2}), {}
    for step in RECORDED["steps"]:
        world.written.clear()
        play(world, step)
        expected = []
        for key, value in (decoded(*record) for record in step["records"]):
            if key not in log or log[key] != ours(value):  # Kafka writes a replaced member's target twice
                expected.append((key, ours(value)))
            log[key] = ours(value)
        assert [(key, comparable(value)) for key, value in world.written] == expected, step["name"]


TEXTS = st.text(max_size=8)
NUMBERS = st.lists(st.integers(0, 2**31 - 1), max_size=4)
PARTITIONS = st.lists(st.tuples(st.binary(min_size=16, max_size=16), NUMBERS), max_size=3).map(partitions)
PROTOCOLS = st.lists(st.builds(Protocol, TEXTS, st.binary(max_size=4)), max_size=3).map(tuple)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TOPICS = st.lists(TEXTS, max_size=3).map(tuple)
CHANGES = st.one_of(
    st.tuples(st.builds(EpochKey, TEXTS), st.builds(EpochRecord, INT32, INT64)),
    st.tuples(
        st.builds(ClientKey, TEXTS, TEXTS),
        st.builds(
            ClientRecord,
            st.none() | TEXTS,
            st.none() | TEXTS,
            TEXTS,
            TEXTS,
            TOPICS,
            TEXTS,
            INT32,
            st.none() | TEXTS,
            st.none() | st.builds(ClassicTerms, INT32, PROTOCOLS),
        ),
    ),
    st.tuples(st.builds(TargetEpochKey, TEXTS), st.builds(TargetEpochRecord, INT32)),
    st.tuples(st.builds(TargetKey, TEXTS, TEXTS), st.builds(TargetRecord, PARTITIONS)),
    st.tuples(
        st.builds(CurrentKey, TEXTS, TEXTS),
        st.builds(CurrentRecord, INT32, INT32, st.sampled_from(ConsumerMemberState), PARTITIONS, PARTITIONS),
    ),
    st.tuples(st.builds(RegexKey, TEXTS, TEXTS), st.builds(RegexRecord, TOPICS, INT64, INT64)),
)


@given(CHANGES)
def test_records_survive_being_written_and_read(change: Any) -> None:
    key, value = encode_consumer(change)
    assert value is not None
    assert decode_consumer_key(key) == change[0]
    assert decode_consumer_value(change[0], value) == change[1]


@given(st.sampled_from(RECORDS), st.data())
def test_damaged_records_are_malformed_or_read_as_something_else(record: tuple[str, str | None], data: Any) -> None:
    key, value = bytes.fromhex(record[0]), bytes.fromhex(record[1] or "0000")
    found = decode_consumer_key(key)
    assert found is not None
    place = data.draw(st.integers(0, len(value) - 1))
    damaged = value[:place] + data.draw(st.binary(max_size=3))
    try:
        decode_consumer_value(found, damaged)
    except MalformedRecord:
        return


def test_states_of_later_versions_are_unknown() -> None:
    group = ConsumerGroup("g")
    group.apply(CurrentKey("g", "m"), CurrentRecord(1, 0, 9, {}, {}))
    assert group.members["m"].state is ConsumerMemberState.UNKNOWN


def test_what_a_group_of_4_0_subscribed_to_is_skipped() -> None:
    assert decode_consumer_key(b"\0\4\0\1g") is None
