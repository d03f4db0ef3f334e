"""A member of a KIP-848 group, by conversation: what it sends, what the listener hears, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.membership.consumer import events
from coordinator.membership.consumer.effects import (
    AssignPartitions,
    Callback,
    LosePartitions,
    RaiseError,
    RevokePartitions,
    SendHeartbeat,
)
from coordinator.membership.consumer.member import ConsumerMember, ConsumerMemberSettings, ConsumerMemberState, deadline
from coordinator.membership.consumer.reactions import HEARTBEAT, reaction
from coordinator.membership.consumer.table import step
from coordinator.membership.effects import AbandonCoordinator, CommitPositions, Effect, Fail, FindCoordinator
from coordinator.membership.events import UNANSWERED, Closed, CoordinatorFound, CoordinatorUnknown, Event, Polled
from kernel.values import TopicPartition
from tests.coordinator.membership.talk import MemberTalk

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))
TOPICS = frozenset({"t"})
SETTINGS = ConsumerMemberSettings(group="g", max_poll_interval_ms=10_000)
STATIC = ConsumerMemberSettings(group="g", max_poll_interval_ms=10_000, instance_id="i")


class Talk(MemberTalk[ConsumerMember]):
    def __init__(self, settings: ConsumerMemberSettings = SETTINGS) -> None:
        super().__init__(ConsumerMember(settings=settings, member_id="m"), step, deadline)

    def joining(self) -> SendHeartbeat:
        self.say(events.Subscribed(TOPICS))
        assert self.poll() == (FindCoordinator(),)
        (sent,) = self.found()
        assert isinstance(sent, SendHeartbeat)
        return sent

    def answer(self, epoch: int, *assigned: TopicPartition) -> tuple[Any, ...]:
        """Answer with these partitions."""
        return self.say(events.HeartbeatAnswered(self.member.stamp, epoch, 1000, frozenset(assigned)))

    def unchanged(self, epoch: int) -> tuple[Any, ...]:
        return self.say(events.HeartbeatAnswered(self.member.stamp, epoch, 1000))

    def refuse(self, error: str) -> tuple[Any, ...]:
        event = reaction(HEARTBEAT, error, stamp=self.member.stamp, sent_ns=self.clock.monotonic_ns())
        assert event is not None
        return self.say(event)

    def returned(self) -> tuple[Any, ...]:
        return self.say(events.CallbackReturned(self.member.callbacks))

    def raised(self) -> tuple[Any, ...]:
        return self.say(events.CallbackReturned(self.member.callbacks, failed=True))

    def stable(self, *assigned: TopicPartition) -> Talk:
        self.joining()
        self.answer(1, *assigned)
        self.say(Polled())
        self.returned()
        self.unchanged(1)
        assert self.state is ConsumerMemberState.STABLE
        return self

    @property
    def state(self) -> ConsumerMemberState:
        return self.member.state


def sent_only(effects: tuple[Effect, ...]) -> SendHeartbeat:
    (sent,) = effects
    assert isinstance(sent, SendHeartbeat)
    return sent


def test_first_member_joins_and_acknowledges_as_recorded() -> None:
    talk = Talk()
    join = talk.joining()
    assert (join.epoch, join.rebalance_timeout_ms, join.topics, join.owned) == (0, 10_000, TOPICS, frozenset())
    assert talk.answer(1, P0, P1) == ()
    assert talk.state is ConsumerMemberState.RECONCILING
    assert talk.say(Polled()) == (AssignPartitions(1, frozenset({P0, P1})),)
    acknowledged = sent_only(talk.returned())
    assert acknowledged == SendHeartbeat(stamp=talk.member.stamp, member_id="m", epoch=1, owned=frozenset({P0, P1}))
    assert talk.state is ConsumerMemberState.STABLE
    talk.unchanged(1)
    assert talk.after(999) == ()
    assert sent_only(talk.after(1)) == SendHeartbeat(stamp=talk.member.stamp, member_id="m", epoch=1)
    assert talk.kinds()[-1] == "rebalance_ended"


def test_first_assignment_is_told_to_the_listener_even_if_it_is_empty() -> None:
    talk = Talk()
    talk.joining()
    talk.answer(1)
    assert talk.say(Polled()) == (AssignPartitions(1, frozenset()),)
    assert sent_only(talk.returned()).owned == frozenset()


def test_target_is_taken_over_by_commit_revocation_and_assignment_in_this_order() -> None:
    talk = Talk().stable(P0, P1)
    talk.answer(2, P1, P2)
    commit, revoke = talk.say(Polled())
    assert isinstance(commit, CommitPositions)
    assert commit.wait
    assert revoke == RevokePartitions(2, frozenset({P0}))
    assert talk.returned() == (AssignPartitions(3, frozenset({P2})),)
    assert sent_only(talk.returned()).owned == frozenset({P1, P2})


def test_target_that_changes_during_a_reconciliation_is_taken_over_next() -> None:
    talk = Talk().stable(P0)
    talk.answer(2, P0, P1)
    talk.say(Polled())
    talk.answer(3, P0, P2)
    assert talk.say(Polled()) == ()  # one at a time
    assert sent_only(talk.returned()).owned == frozenset({P0, P1})
    assert talk.state is ConsumerMemberState.RECONCILING
    assert talk.say(Polled())[1:] == (RevokePartitions(3, frozenset({P1})),)
    assert talk.returned() == (AssignPartitions(4, frozenset({P2})),)


def test_listener_that_raises_is_called_again_in_the_next_poll_and_nothing_is_acknowledged_meanwhile() -> None:
    """As seen of kafka-clients 4.1.1: after `assigned` raised, it is called with no partitions."""
    talk = Talk().stable(P0, P1)
    talk.answer(2, P1, P2)
    talk.say(Polled())
    assert talk.raised() == ()
    assert talk.member.owned == {P0, P1}
    commit, revoke = talk.say(Polled())
    assert isinstance(commit, CommitPositions)
    assert revoke == RevokePartitions(3, frozenset({P0}))
    assert talk.returned() == (AssignPartitions(4, frozenset({P2})),)
    assert talk.raised() == ()
    assert talk.say(Polled())[1:] == (AssignPartitions(5, frozenset()),)
    assert sent_only(talk.returned()).owned == frozenset({P1, P2})


def test_listener_that_raises_does_not_keep_a_member_from_leaving() -> None:
    talk = Talk().stable(P0)
    talk.say(Closed())
    assert sent_only(talk.raised()).epoch == -1


@pytest.mark.parametrize("error", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_fenced_member_loses_everything_and_joins_again_with_epoch_0(error: str) -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    assert talk.refuse(error) == (LosePartitions(2, frozenset({P0})),)
    assert (talk.state, talk.member.owned, talk.member.identity) == (ConsumerMemberState.FENCED, frozenset(), None)
    rejoin = sent_only(talk.returned())
    assert (rejoin.epoch, rejoin.topics, rejoin.owned) == (0, TOPICS, frozenset())


def test_fenced_while_the_listener_revokes_joins_only_when_it_has_returned() -> None:
    talk = Talk().stable(P0)
    talk.answer(2)
    talk.say(Polled())
    assert talk.refuse("FENCED_MEMBER_EPOCH") == (LosePartitions(3, frozenset()),)
    assert talk.say(events.CallbackReturned(2)) == ()
    assert sent_only(talk.returned()).epoch == 0


@pytest.mark.parametrize(("settings", "epoch"), [(SETTINGS, -1), (STATIC, -2)])
@pytest.mark.parametrize("leave", [Closed(), events.Unsubscribed()])
def test_leaving_revokes_and_sends_the_epoch_of_its_kind_and_closing_commits_first(
    settings: ConsumerMemberSettings, epoch: int, leave: Event
) -> None:
    talk = Talk(settings).stable(P0)
    *commits, revoke = talk.say(leave)
    assert [isinstance(commit, CommitPositions) for commit in commits] == [True] * isinstance(leave, Closed)
    assert revoke == RevokePartitions(2, frozenset({P0}))
    assert sent_only(talk.returned()).epoch == epoch
    assert talk.state is ConsumerMemberState.UNSUBSCRIBED
    assert talk.member.closed == isinstance(leave, Closed) == talk.kinds().count("member_closed")


def test_heartbeat_while_the_listener_revokes_the_last_partitions_names_no_other_topics() -> None:
    """The group would share the partitions out before the member has left, and those of a static member move."""
    talk = Talk(STATIC).stable(P0)
    talk.say(Closed())
    assert sent_only(talk.after(1000)).topics is None
    talk.refuse("COORDINATOR_LOAD_IN_PROGRESS")
    assert sent_only(talk.after(1000)).topics == TOPICS
    assert sent_only(talk.returned()).topics == frozenset()


def test_leaving_does_not_wait_for_the_outstanding_heartbeat() -> None:
    """As AbstractHeartbeatRequestManager.poll of kafka-clients 4.1.1; the coordinator reads them in order."""
    talk = Talk().stable(P0)
    talk.after(1000)
    stamp = talk.member.stamp
    talk.say(Closed())
    assert sent_only(talk.returned()).epoch == -1
    assert talk.state is ConsumerMemberState.UNSUBSCRIBED
    assert talk.say(events.HeartbeatAnswered(stamp, 2, 1000, frozenset({P0}))) == ()
    assert not talk.member.owned


def test_member_that_does_not_poll_leaves_and_joins_again_at_the_next_poll() -> None:
    talk = Talk().stable(P0)
    lost, left = talk.after(10_000)
    assert lost == LosePartitions(2, frozenset({P0}))
    assert left.epoch == -1
    assert talk.state is ConsumerMemberState.STALE
    assert deadline(talk.member) is None
    assert talk.say(Polled()) == ()  # runs the callback
    assert sent_only(talk.returned()).epoch == 0


def test_moved_coordinator_is_looked_up_and_hears_all_fields_under_the_same_epoch() -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    assert talk.refuse("NOT_COORDINATOR") == (AbandonCoordinator(), FindCoordinator())
    assert talk.say(CoordinatorUnknown("nobody")) == ()
    assert talk.after(100) == (FindCoordinator(),)
    full = sent_only(talk.say(CoordinatorFound(2)))
    assert (full.epoch, full.topics, full.owned, full.rebalance_timeout_ms) == (1, TOPICS, frozenset({P0}), 10_000)


def test_loading_coordinator_is_asked_again_after_a_backoff_that_doubles() -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    for backoff_ms in (100, 200, 400, 800, 1000, 1000):
        assert talk.refuse("COORDINATOR_LOAD_IN_PROGRESS") == ()
        assert talk.after(backoff_ms - 1) == ()
        assert sent_only(talk.after(1)).epoch == 1


@pytest.mark.parametrize(
    "error", ["UNSUPPORTED_ASSIGNOR", "GROUP_AUTHORIZATION_FAILED", "UNRELEASED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"]
)
def test_fatal_error_loses_everything_and_fails(error: str) -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    lost, fail = talk.refuse(error)
    assert isinstance(lost, LosePartitions)
    assert fail == Fail("ConsumerGroupHeartbeat", error)
    assert talk.say(Polled()) == ()
    assert talk.state is ConsumerMemberState.FATAL


def test_missing_right_to_a_topic_is_raised_and_tried_again() -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    assert talk.refuse("TOPIC_AUTHORIZATION_FAILED") == (
        RaiseError("ConsumerGroupHeartbeat", "TOPIC_AUTHORIZATION_FAILED"),
    )
    assert talk.state is ConsumerMemberState.STABLE
    assert sent_only(talk.after(100)).topics == TOPICS


def test_changed_subscription_is_in_the_next_heartbeat_alone() -> None:
    talk = Talk().stable(P0)
    talk.say(events.Subscribed(frozenset({"t", "u"})))
    sent = sent_only(talk.after(1000))
    assert (sent.topics, sent.owned, sent.rebalance_timeout_ms) == (frozenset({"t", "u"}), None, -1)
    talk.unchanged(1)
    assert sent_only(talk.after(1000)).topics is None


def test_regular_expression_is_said_once_and_its_end_by_an_empty_one() -> None:
    """As HeartbeatState.buildRequestData of kafka-clients 4.1.1."""
    talk = Talk()
    talk.say(events.Subscribed(frozenset(), "t.*"))
    talk.say(Polled())
    (join,) = talk.say(CoordinatorFound(1))
    assert (join.epoch, join.topics, join.regex) == (0, frozenset(), "t.*")
    talk.answer(1, P0)
    talk.say(Polled())
    assert sent_only(talk.returned()).regex is None
    talk.unchanged(1)
    talk.say(events.Subscribed(TOPICS))
    changed = sent_only(talk.after(1000))
    assert (changed.topics, changed.regex) == (TOPICS, "")
    talk.unchanged(1)
    talk.say(events.Subscribed(frozenset(), "u"))
    assert sent_only(talk.after(1000)).regex == "u"
    talk.unchanged(1)
    talk.say(events.Unsubscribed())
    assert sent_only(talk.returned()).regex == ""


def test_unanswered_heartbeat_leaves_the_member_delivering() -> None:
    talk = Talk().stable(P0)
    talk.after(1000)
    assert not any(isinstance(effect, Callback) for effect in talk.refuse(UNANSWERED))
    assert talk.member.owned == {P0}
