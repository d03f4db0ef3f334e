"""Groups of the `consumer` design in one partition with all others: whose an id is, commits, deletion, failover."""

from __future__ import annotations

import pytest

from coordinator.groups.answers import ConsumerHeartbeatAnswer, DeleteGroupAnswer
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.effects import Moment, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.records import OffsetKey
from coordinator.groups.requests import DeleteGroup, DeleteOffsets, Heartbeat, Leave, Leaving
from tests.support.groups.consumer_partition import Partition


@pytest.fixture
def at() -> Partition:
    return Partition()


def test_requests_of_the_other_protocol_do_not_know_a_member(at: Partition) -> None:
    assert at.join().epoch == 1
    assert at.ask(Heartbeat, member_id="a", generation=1).error is Error.UNKNOWN_MEMBER_ID
    other = Partition()
    assert other.classic_join() is None  # it waits for others
    assert other.beat("c-f", 1) == ConsumerHeartbeatAnswer(Error.GROUP_ID_NOT_FOUND)
    assert not other.machine.consumer.groups


def test_administrator_removes_members_with_leave_group(at: Partition) -> None:
    """As in a real 4.1.1: one LeaveGroup, one new epoch."""
    at.join()
    at.join("b")
    at.beat("s", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={}, instance_id="i")
    wrong = (Leaving("x"), Leaving("x", "i"), Leaving("", "j"))
    answer = at.ask(Leave, members=(Leaving("a"), Leaving("", "i"), *wrong))
    errors = [Error.NONE, Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID]
    assert [left.error for left in answer.members] == errors
    shown = at.machine.consumer.describe("g")
    assert (shown.epoch, [member.member_id for member in shown.members]) == (4, ["b"])
    at.beat("t", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={}, instance_id="i")
    assert at.ask(Leave, members=(Leaving("x", "i"),)).members[0].error is Error.FENCED_INSTANCE_ID
    assert at.machine.consumer.describe("g").epoch == 5


def test_offsets_are_committed_with_the_members_epoch_and_kept(at: Partition) -> None:
    at.join()
    assert at.commit("a", 2) is Error.STALE_MEMBER_EPOCH
    assert at.commit("a", 1, absent_group_is_named=False) is Error.UNSUPPORTED_VERSION
    assert at.commit("", -1) is Error.UNKNOWN_MEMBER_ID
    assert not [key for key in at.log if isinstance(key, OffsetKey)]
    assert at.commit("a", 1) is Error.NONE
    assert at.log[OffsetKey("g", "foo", 0)].offset == 7
    at.beat("a", -1)
    assert at.commit("a", 1) is Error.UNKNOWN_MEMBER_ID
    assert at.commit("", -1) is Error.NONE


def test_offsets_of_subscribed_topics_are_not_deleted(at: Partition) -> None:
    at.join()
    at.commit("a", 1)
    asked = {"partitions": (("foo", 0), ("bar", 0))}
    errors = [row.error for row in at.ask(DeleteOffsets, **asked).partitions]
    assert errors == [Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.NONE]
    assert OffsetKey("g", "foo", 0) in at.log
    at.beat("a", 1, topics=())
    assert at.ask(DeleteOffsets, **asked).partitions[0].error is Error.NONE
    assert OffsetKey("g", "foo", 0) not in at.log


@pytest.mark.kafka("testConsumerGroupMaybeDelete", "testValidateDeleteGroup")
def test_group_is_deleted_with_its_offsets_once_it_is_empty(at: Partition) -> None:
    at.join()
    at.commit("a", 1)
    assert at.ask(DeleteGroup) == DeleteGroupAnswer(Error.NON_EMPTY_GROUP)
    at.beat("a", -1)
    assert at.ask(DeleteGroup) == DeleteGroupAnswer(Error.NONE)
    assert not at.log
    assert at.ask(DeleteGroup) == DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND)
    at.join()
    at.beat("a", -1)
    assert at.ask(DeleteGroup) == DeleteGroupAnswer(Error.NONE)
    assert not at.log


def test_successor_has_members_epochs_and_sessions(at: Partition) -> None:
    at.join()
    at.join("b")
    other = Partition(dict(at.log))
    assert other.machine.consumer.describe("g") == at.machine.consumer.describe("g")
    assert other.beat("a", 1, owned=None).epoch == 1
    due = [key for key, at_ms in other.timers.items() if key.kind is TimerKind.CONSUMER_SESSION and at_ms == 3_000]
    assert sorted(key.member_id for key in due) == ["a", "b"]
    other.now = Moment(3_000, 4_000)
    for key in due:
        other.perform(other.machine.timer_fired(key, other.now))
    assert other.machine.consumer.describe("g").state is ConsumerGroupState.EMPTY
    effects = other.machine.unload(other.now)
    assert not effects.replies


@pytest.mark.kafka("testOffsetExpirationCondition")
def test_offsets_expire_unless_a_member_subscribes_and_an_empty_group_ends_with_the_last(at: Partition) -> None:
    at.join()
    at.commit("a", 1)
    at.commit("a", 1, topic="other")
    at.expire()
    assert [key for key in at.log if isinstance(key, OffsetKey)] == [OffsetKey("g", "foo", 0)]
    assert at.beat("a", 1).error is Error.NONE
    at.beat("a", -1)
    assert at.machine.consumer.describe("g").state is ConsumerGroupState.EMPTY
    at.commit("", -1, topic="other")
    at.expire()
    assert not at.log
    assert at.machine.consumer.describe("g").state is ConsumerGroupState.DEAD
    assert not at.machine.knows("g")


def test_empty_group_without_offsets_ends_at_the_next_search(at: Partition) -> None:
    at.join()
    at.expire()
    assert at.machine.consumer.describe("g").epoch == 1
    at.beat("a", -1)
    at.expire()
    assert not at.log
    assert not list(at.machine.list())
