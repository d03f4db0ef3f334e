"""Reconciling one member, and the walk of Kafka's GroupMetadataManagerTest.testReconciliationProcess."""

from __future__ import annotations

import pytest

from coordinator.groups.consumer.group import ConsumerGroup, client_record, current_record
from coordinator.groups.consumer.member import ConsumerMember
from coordinator.groups.consumer.reconciliation import Goal, MemberFenced, reconciled
from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.consumer.topics import metadata_hash
from coordinator.groups.consumer_records import (
    ClientKey,
    CurrentKey,
    EpochKey,
    EpochRecord,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    TargetRecord,
)
from coordinator.groups.partitions import NONE
from tests.support.groups.consumer import GROUP, World, by_name, owned_by_name

STABLE, UNREVOKED = ConsumerMemberState.STABLE, ConsumerMemberState.UNREVOKED_PARTITIONS
UNRELEASED, UNKNOWN = ConsumerMemberState.UNRELEASED_PARTITIONS, ConsumerMemberState.UNKNOWN


def some(**topics):
    return owned_by_name(topics)


def member(state, epoch, assigned, revoking=NONE):
    return ConsumerMember(id="m", epoch=epoch, previous_epoch=epoch, state=state, assigned=assigned, revoking=revoking)


def goal(epoch, target, taken=NONE):
    return Goal(epoch, target, lambda topic, number: number not in taken.get(topic, ()))


@pytest.mark.kafka("testStableToStable", "testStableToStableWithNewPartitions")
@pytest.mark.parametrize("target", [some(t=[1, 2]), some(t=[1, 2, 3]), some(t=[1, 2], u=[0])])
def test_stable_member_takes_what_is_free_at_once(target) -> None:
    after = reconciled(member(STABLE, 10, some(t=[1, 2])), goal(11, target), None)
    assert (after.state, after.epoch, after.previous_epoch) == (STABLE, 11, 10)
    assert (after.assigned, after.revoking) == (target, {})


@pytest.mark.kafka("testStableToUnrevokedPartitions")
def test_stable_member_gives_up_before_it_takes() -> None:
    after = reconciled(member(STABLE, 10, some(t=[1, 2])), goal(11, some(t=[2, 3])), None)
    assert (after.state, after.epoch) == (UNREVOKED, 10)
    assert (after.assigned, after.revoking) == (some(t=[2]), some(t=[1]))


@pytest.mark.kafka("testStableToUnreleasedPartitionsWithOwnedPartitionsNotHavingRevokedPartitions")
def test_member_that_owns_nothing_of_what_it_shall_give_up_goes_on() -> None:
    before = member(STABLE, 10, some(t=[1, 2]))
    after = reconciled(before, goal(11, some(t=[2, 3, 4]), some(t=[3])), some(t=[2]))
    assert (after.state, after.epoch) == (UNRELEASED, 11)
    assert (after.assigned, after.revoking) == (some(t=[2, 4]), {})


@pytest.mark.kafka("testRemainsInUnrevokedPartitions")
@pytest.mark.parametrize("owned", [None, some(t=[1, 2]), some(t=[1])])
def test_unrevoked_member_stays_until_it_reports_without_them(owned) -> None:
    before = member(UNREVOKED, 10, some(t=[2]), some(t=[1]))
    assert reconciled(before, goal(12, some(t=[2, 5])), owned) is before


@pytest.mark.kafka("testUnrevokedPartitionsToStable")
def test_unrevoked_member_gets_to_the_latest_target() -> None:
    before = member(UNREVOKED, 10, some(t=[2]), some(t=[1]))
    after = reconciled(before, goal(12, some(t=[2, 5])), some(t=[2]))
    assert (after.state, after.epoch, after.previous_epoch) == (STABLE, 12, 10)
    assert after.assigned == some(t=[2, 5])


@pytest.mark.kafka("testUnrevokedPartitionsToUnrevokedPartitions")
def test_unrevoked_member_may_have_to_give_up_more() -> None:
    before = member(UNREVOKED, 10, some(t=[2, 3]), some(t=[1]))
    after = reconciled(before, goal(12, some(t=[3])), some(t=[2, 3]))
    assert (after.state, after.epoch, after.revoking) == (UNREVOKED, 11, some(t=[2]))


@pytest.mark.kafka("testStableToUnreleasedPartitions")
def test_stable_member_with_nothing_to_give_up_waits_at_the_new_epoch() -> None:
    after = reconciled(member(STABLE, 10, some(t=[1, 2])), goal(11, some(t=[1, 2, 3, 4]), some(t=[3, 4])), None)
    assert (after.state, after.epoch) == (UNRELEASED, 11)
    assert (after.assigned, after.revoking) == (some(t=[1, 2]), {})


@pytest.mark.kafka("testUnrevokedPartitionsToUnreleasedPartitions")
def test_unrevoked_member_that_gave_up_waits_for_what_others_have() -> None:
    before = member(UNREVOKED, 10, some(t=[2]), some(t=[1]))
    after = reconciled(before, goal(12, some(t=[2, 5, 6]), some(t=[5])), some(t=[2]))
    assert (after.state, after.epoch) == (UNRELEASED, 12)
    assert (after.assigned, after.revoking) == (some(t=[2, 6]), {})


@pytest.mark.kafka("testUnreleasedPartitionsToUnrevokedPartitions")
def test_unreleased_member_has_to_give_up_what_a_later_target_takes() -> None:
    before = member(UNRELEASED, 11, some(t=[2, 3]))
    after = reconciled(before, goal(12, some(t=[3, 4]), some(t=[4])), None)
    assert (after.state, after.epoch) == (UNREVOKED, 11)
    assert (after.assigned, after.revoking) == (some(t=[3]), some(t=[2]))


@pytest.mark.kafka(
    "testUnreleasedPartitionsToUnreleasedPartitions",
    "testUnreleasedPartitionsToStable",
    "testUnreleasedPartitionsToStableWithNewPartitions",
)
def test_unreleased_member_takes_partitions_as_they_become_free() -> None:
    before = member(UNRELEASED, 11, some(t=[2]))
    target = some(t=[2, 3, 4])
    assert reconciled(before, goal(11, target, some(t=[3, 4])), None) == before
    part = reconciled(before, goal(11, target, some(t=[4])), None)
    assert (part.state, part.assigned) == (UNRELEASED, some(t=[2, 3]))
    whole = reconciled(part, goal(11, target), None)
    assert (whole.state, whole.assigned) == (STABLE, target)


@pytest.mark.kafka("testUnknownState")
def test_member_of_a_later_version_is_fenced_unless_it_owns_nothing() -> None:
    before = member(UNKNOWN, 10, some(t=[1]))
    for owned in (None, some(t=[1])):
        with pytest.raises(MemberFenced):
            reconciled(before, goal(11, some(t=[2])), owned)
    after = reconciled(before, goal(11, some(t=[2])), NONE)
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, some(t=[2]))


WALK = [
    # who, epoch, what it reports -> epoch, what it is told, its state
    ("m1", 10, None, 10, {"foo": [0, 1], "bar": [0]}, UNREVOKED),
    ("m2", 10, None, 10, {"foo": [3], "bar": [2]}, UNREVOKED),
    ("m3", 11, None, 11, None, UNRELEASED),
    ("m1", 10, {"foo": [0, 1], "bar": [0]}, 11, None, STABLE),
    ("m2", 10, None, 10, None, UNREVOKED),
    ("m3", 11, None, 11, {"bar": [1]}, UNRELEASED),
    ("m3", 11, None, 11, None, UNRELEASED),
    ("m2", 10, {"foo": [3], "bar": [2]}, 11, {"foo": [2, 3], "bar": [2]}, STABLE),
    ("m3", 11, {"bar": [1]}, 11, {"foo": [4, 5], "bar": [1]}, STABLE),
]


def put(group: ConsumerGroup, name: str, assigned, target) -> None:
    at = ConsumerMember(id=name, topics=frozenset({"foo", "bar"}), rebalance_timeout_ms=5_000, client_id=name)
    at = at._replace(client_host="/127.0.0.1", epoch=10, previous_epoch=9, assigned=assigned)
    group.apply(ClientKey(GROUP, name), client_record(at))
    group.apply(TargetKey(GROUP, name), TargetRecord(target))
    if assigned:
        group.apply(CurrentKey(GROUP, name), current_record(at))


@pytest.mark.kafka("testReconciliationProcess")
def test_members_revoke_and_take_partition_by_partition_without_a_barrier() -> None:
    world = World({"foo": 6, "bar": 3})
    group = world.groups.groups[GROUP] = ConsumerGroup(GROUP)
    put(group, "m1", some(foo=[0, 1, 2], bar=[0, 1]), some(foo=[0, 1], bar=[0]))
    put(group, "m2", some(foo=[3, 4, 5], bar=[2]), some(foo=[2, 3], bar=[2]))
    put(group, "m3", NONE, some(foo=[4, 5], bar=[1]))
    group.apply(EpochKey(GROUP), EpochRecord(11, metadata_hash(group.subscribed(), world.topics)))
    group.apply(TargetEpochKey(GROUP), TargetEpochRecord(11))
    joined = world.join("m3", "foo", "bar")
    assert (joined.epoch, joined.assignment) == (11, {})
    for who, epoch, owned, next_epoch, told, state in WALK:
        answer = world.ask(who, epoch, owned=owned_by_name(owned))
        assert (answer.epoch, by_name(answer.assignment)) == (next_epoch, told), (who, epoch, owned)
        assert group.members[who].state is state
    assert group.state.value == "Stable"
