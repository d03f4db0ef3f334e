"""The hard state of a group, record by record: `apply`, its inverse `stored`, and tombstones in any order."""

from __future__ import annotations

import pytest

from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.states import ConsumerGroupState, ConsumerMemberState
from coordinator.groups.consumer_records import (
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
from coordinator.groups.partitions import NONE
from tests.support.groups.consumer import GROUP, World, owned_by_name, topic_id

CLIENT = ClientRecord("i", "rack", "client", "/host", ("bar", "foo"), "", 5_000, "range")
FOO = topic_id("foo")


def current(epoch: int, assigned: list[int], revoking: list[int] | None = None) -> CurrentRecord:
    state = ConsumerMemberState.UNREVOKED_PARTITIONS if revoking else ConsumerMemberState.STABLE
    both = [owned_by_name({"foo": numbers}) or NONE for numbers in (assigned, revoking or [])]
    return CurrentRecord(epoch, epoch - 1, state, *both)


RECORDS: list[tuple[ConsumerKey, ConsumerRecord]] = [
    (EpochKey(GROUP), EpochRecord(10, 77)),
    (TargetEpochKey(GROUP), TargetEpochRecord(9)),
    (ClientKey(GROUP, "m"), CLIENT),
    (TargetKey(GROUP, "m"), TargetRecord(owned_by_name({"foo": [0, 1]}) or NONE)),
    (CurrentKey(GROUP, "m"), current(8, [0, 1], [2])),
    (RegexKey(GROUP, "f.*"), RegexRecord(("foo",), 3, 4)),
]


@pytest.mark.kafka(
    "testReplayConsumerGroupMetadata",
    "testReplayConsumerGroupTargetAssignmentMetadata",
    "testReplayConsumerGroupMemberMetadata",
    "testReplayConsumerGroupTargetAssignmentMember",
    "testReplayConsumerGroupCurrentMemberAssignment",
)
@pytest.mark.parametrize(("key", "record"), RECORDS, ids=[type(key).__name__ for key, _ in RECORDS])
def test_record_is_in_the_state_and_can_be_read_from_it(key: ConsumerKey, record: ConsumerRecord) -> None:
    group = ConsumerGroup(GROUP)
    assert group.stored(key) is None
    group.apply(key, record)
    assert group.stored(key) == record


@pytest.mark.kafka(
    "testReplayConsumerGroupMetadataTombstone",
    "testReplayConsumerGroupTargetAssignmentMetadataTombstone",
    "testReplayConsumerGroupMemberMetadataTombstone",
    "testReplayConsumerGroupTargetAssignmentMemberTombstone",
    "testReplayConsumerGroupCurrentMemberAssignmentTombstone",
    "testRemoveMember",
)
def test_tombstones_leave_nothing_behind() -> None:
    group = ConsumerGroup(GROUP)
    for key, record in RECORDS:
        group.apply(key, record)
    for key, _ in reversed(RECORDS):
        group.apply(key, None)
        assert group.stored(key) is None
    assert group == ConsumerGroup(GROUP)


@pytest.mark.parametrize("key", [key for key, _ in RECORDS], ids=[type(key).__name__ for key, _ in RECORDS])
def test_tombstone_of_what_is_not_there_changes_nothing(key: ConsumerKey) -> None:
    """KAFKA-17306: compaction may have removed the record before."""
    group = ConsumerGroup(GROUP)
    group.apply(key, None)
    assert group == ConsumerGroup(GROUP)


def test_records_of_a_member_may_come_in_any_order() -> None:
    """A log that was compacted in between has them so."""
    forth, back = ConsumerGroup(GROUP), ConsumerGroup(GROUP)
    for key, record in RECORDS:
        forth.apply(key, record)
    for key, record in reversed(RECORDS):
        back.apply(key, record)
    assert forth == back


# -- members ------------------------------------------------------------------------------------------------------


def with_members(**owned: list[int]) -> ConsumerGroup:
    group = ConsumerGroup(GROUP)
    for name, numbers in owned.items():
        group.apply(ClientKey(GROUP, name), CLIENT._replace(instance_id=None))
        group.apply(CurrentKey(GROUP, name), current(5, numbers))
    return group


@pytest.mark.kafka("testGetOrCreateMember", "ConsumerGroupTest.testUpdateMember")
def test_second_record_of_a_member_replaces_the_first() -> None:
    group = with_members(m=[0])
    group.apply(ClientKey(GROUP, "m"), CLIENT._replace(topics=("bar",), rack_id=None))
    assert group.members["m"].topics == {"bar"}
    assert group.members["m"].rack_id is None
    assert group.members["m"].epoch == 5  # the other record stays


@pytest.mark.kafka("testNoStaticMember", "testGetStaticMemberByInstanceId")
def test_instance_id_finds_its_member() -> None:
    group = with_members(m=[0])
    assert not group.instances
    group.apply(ClientKey(GROUP, "s"), CLIENT)
    assert group.instances == {"i": "s"}


@pytest.mark.kafka("testRemoveStaticMember")
def test_instance_stays_with_the_member_that_replaced_a_removed_one() -> None:
    group = ConsumerGroup(GROUP)
    group.apply(ClientKey(GROUP, "s"), CLIENT)
    group.apply(ClientKey(GROUP, "s2"), CLIENT)
    group.apply(ClientKey(GROUP, "s"), None)
    assert group.instances == {"i": "s2"}
    group.apply(ClientKey(GROUP, "s2"), None)
    assert not group.instances


# -- owners -------------------------------------------------------------------------------------------------------


@pytest.mark.kafka("testUpdatingMemberUpdatesPartitionEpoch", "testAddPartitionEpochs")
def test_member_owns_what_it_has_and_what_it_gives_up() -> None:
    group = with_members(m=[0])
    group.apply(CurrentKey(GROUP, "m"), current(6, [0, 1], [2]))
    assert group.owners == {(FOO, number): "m" for number in (0, 1, 2)}
    assert not group.is_free(FOO, 2)
    assert group.is_free(FOO, 3)
    group.apply(CurrentKey(GROUP, "m"), current(7, [1]))
    assert group.owners == {(FOO, 1): "m"}


@pytest.mark.kafka(
    "testUpdatingMemberUpdatesPartitionEpochWhenPartitionIsReassignedBeforeBeingRevoked", "testRemovePartitionEpochs"
)
def test_partition_of_another_stays_when_the_former_owner_gives_it_up() -> None:
    group = with_members(a=[1])
    group.apply(CurrentKey(GROUP, "b"), current(6, [1]))
    group.apply(CurrentKey(GROUP, "a"), current(6, [2]))
    assert group.owners == {(FOO, 1): "b", (FOO, 2): "a"}


@pytest.mark.kafka("testUpdatingMemberUpdatesPartitionEpochWhenPartitionIsNotReleased")
def test_log_that_gives_a_partition_to_two_is_read_as_the_last_record_has_it() -> None:
    """Kafka 4.1.1 does not fail to load such a log either (KAFKA-19862)."""
    group = with_members(a=[1], b=[1])
    assert group.owners == {(FOO, 1): "b"}


@pytest.mark.kafka("testDeletingMemberRemovesPartitionEpoch")
def test_partitions_of_a_removed_member_are_free() -> None:
    group = with_members(a=[0], b=[1])
    group.apply(CurrentKey(GROUP, "a"), current(6, [], [0]))
    group.apply(ClientKey(GROUP, "a"), None)
    assert group.owners == {(FOO, 1): "b"}


@pytest.mark.kafka("testWaitingOnUnreleasedPartition")
def test_member_waits_for_its_target_until_the_others_have_released_it() -> None:
    world = World({"foo": 6})
    world.join("a", "foo")
    world.join("b", "foo")
    assert world.group.members["b"].state is ConsumerMemberState.UNRELEASED_PARTITIONS
    world.beat("a", {"foo": [0, 1, 2]})
    world.beat("b")
    assert world.group.members["b"].state is ConsumerMemberState.STABLE


# -- what follows from the records --------------------------------------------------------------------------------


@pytest.mark.kafka("testGroupState")
def test_state_follows_from_members_and_epochs() -> None:
    group = ConsumerGroup(GROUP)
    assert group.state is ConsumerGroupState.EMPTY
    group.apply(EpochKey(GROUP), EpochRecord(1, 0))
    group.apply(ClientKey(GROUP, "m"), CLIENT)
    assert group.state is ConsumerGroupState.ASSIGNING
    group.apply(TargetEpochKey(GROUP), TargetEpochRecord(1))
    assert group.state is ConsumerGroupState.RECONCILING
    group.apply(CurrentKey(GROUP, "m"), current(1, [0]))
    assert group.state is ConsumerGroupState.STABLE
    group.apply(CurrentKey(GROUP, "m"), current(1, [0], [1]))
    assert group.state is ConsumerGroupState.RECONCILING
    group.apply(ClientKey(GROUP, "m"), None)
    assert group.state is ConsumerGroupState.EMPTY


@pytest.mark.kafka("testPreferredServerAssignor")
def test_most_votes_win_and_members_without_one_do_not_count() -> None:
    group = ConsumerGroup(GROUP)
    known = ("uniform", "range")
    assert group.assignor(known) == "uniform"
    for name, vote in {"a": "range", "b": None, "c": "range", "d": "uniform"}.items():
        group.apply(ClientKey(GROUP, name), CLIENT._replace(assignor=vote))
    assert group.assignor(known) == "range"
    group.apply(ClientKey(GROUP, "c"), CLIENT._replace(assignor="uniform"))
    assert group.assignor(known) == "uniform"
    for name in ("c", "d"):
        group.apply(ClientKey(GROUP, name), None)
    assert group.assignor(known) == "range"


@pytest.mark.kafka("testPreferredServerAssignor")
def test_tie_goes_to_the_vote_that_only_the_asking_member_gave() -> None:
    group = ConsumerGroup(GROUP)
    for name, vote in {"a": "range", "b": "uniform"}.items():
        group.apply(ClientKey(GROUP, name), CLIENT._replace(assignor=vote))
    assert group.assignor(("uniform", "range")) == "uniform"
    assert group.assignor(("uniform", "range"), group.members["a"]) == "range"
    assert group.assignor(("uniform", "range"), group.members["a"]._replace(assignor=None)) == "uniform"


@pytest.mark.kafka("testUpdateSubscribedTopicNamesAndSubscriptionType", "testIsSubscribedToTopic")
def test_group_subscribes_to_what_its_members_name_or_match() -> None:
    group = ConsumerGroup(GROUP)
    assert group.subscribed() == frozenset()
    group.apply(ClientKey(GROUP, "a"), CLIENT._replace(topics=("foo",)))
    group.apply(ClientKey(GROUP, "b"), CLIENT._replace(topics=("foo", "bar")))
    group.apply(ClientKey(GROUP, "c"), CLIENT._replace(topics=(), topic_regex="t.*"))
    assert group.subscribed() == {"foo", "bar"}
    group.apply(RegexKey(GROUP, "t.*"), RegexRecord(("t1", "t2"), 1, 1))
    assert group.subscribed() == {"foo", "bar", "t1", "t2"}
    group.apply(ClientKey(GROUP, "c"), None)
    group.apply(ClientKey(GROUP, "b"), None)
    assert group.subscribed() == {"foo"}
