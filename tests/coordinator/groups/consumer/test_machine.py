"""Groups of the `consumer` design in one partition with all others: whose an id is, commits, deletion, failover."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from coordinator.groups.answers import CommitAnswer, ConsumerHeartbeatAnswer, DeleteGroupAnswer, JoinAnswer
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.effects import Moment, SetTimer, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.machine import Machine
from coordinator.groups.records import OffsetKey
from coordinator.groups.requests import (
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    OffsetToCommit,
)
from tests.support.consumer_groups import SETTINGS, World
from tests.support.group_machine import ASSIGNMENT, LIMITS, RANGE

if TYPE_CHECKING:
    from coordinator.groups.answers import Answer
    from coordinator.groups.effects import Effects, TimerKey

TOKENS = itertools.count(1)


@dataclass
class Partition:
    """A machine whose writes are stored at once."""

    log: dict[Any, Any] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    timers: dict[TimerKey, int] = field(default_factory=dict)
    now: Moment = field(default_factory=lambda: Moment(0, 1_000))

    def __post_init__(self) -> None:
        topics = World({"foo": 6}).topics
        self.machine = Machine(LIMITS, ASSIGNMENT, lambda _: 6, ConsumerGroups(lambda _: SETTINGS, topics))
        for change in self.log.items():
            self.machine.apply(change)
        for event in self.machine.wake():
            self.perform(self.machine.step(event, self.now))

    def perform(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
        self.answers |= dict(effects.replies)
        for write in effects.writes:
            for key, value in write.changes:
                self.log[key] = value
                if value is None:
                    del self.log[key]
            self.perform(self.machine.step(write.stored, self.now))

    def ask(self, kind: type[Any], **told: Any) -> Any:
        token = next(TOKENS)
        self.perform(self.machine.handle(kind(token=token, group_id="g", **told), self.now))
        return self.answers.get(token)

    def beat(self, member: str, epoch: int, **told: Any) -> Any:
        return self.ask(
            ConsumerHeartbeat, member_id=member, epoch=epoch, client_id="c", client_host="/h", fresh_id="f", **told
        )

    def join(self, member: str = "a") -> Any:
        return self.beat(member, 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})

    def commit(self, member: str, epoch: int, **told: Any) -> Error:
        offsets = (OffsetToCommit("foo", 0, 7, -1, ""),)
        told = {"absent_group_is_named": True, **told}
        answer = self.ask(Commit, member_id=member, generation=epoch, offsets=offsets, **told)
        assert isinstance(answer, CommitAnswer)
        return answer.partitions[0].error

    def classic_join(self) -> Any:
        return self.ask(
            Join,
            member_id="",
            client_id="c",
            client_host="/h",
            session_timeout_ms=5_000,
            rebalance_timeout_ms=5_000,
            protocol_type="consumer",
            protocols=RANGE,
            fresh_id="f",
            must_return_with_id=False,
        )


@pytest.fixture
def at() -> Partition:
    return Partition()


def test_group_with_members_of_one_design_refuses_those_of_another(at: Partition) -> None:
    assert at.join().epoch == 1
    refused = at.classic_join()
    assert isinstance(refused, JoinAnswer)
    assert refused.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert at.ask(Heartbeat, member_id="a", generation=1).error is Error.UNKNOWN_MEMBER_ID
    other = Partition()
    assert other.classic_join() is None  # it waits for others
    assert other.join() == ConsumerHeartbeatAnswer(Error.GROUP_ID_NOT_FOUND)
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
