"""What ends a membership: the coordinator, ZooKeeper, the member's clock; and what goes on without a coordinator."""

from __future__ import annotations

import pytest

from coordinator.membership.effects import AbandonCoordinator, Fail, FindCoordinator, Identity, Lose
from coordinator.membership.events import Resumed
from coordinator.membership.server import events
from coordinator.membership.server.effects import CancelAwait, Register, SendAwaitCommand, Unregister
from coordinator.membership.server.member import ServerMemberState
from tests.coordinator.membership.server.commanded import P0, P1, Talk

# -- ended by ZooKeeper -----------------------------------------------------------------------------------------------


def test_expired_session_ends_the_membership_and_the_next_session_begins_a_new_one() -> None:
    talk = Talk().started(P0, P1)
    assert talk.say(events.SessionEnded()) == (CancelAwait(), Lose(frozenset({P0, P1})))
    assert talk.state is ServerMemberState.UNREGISTERED
    assert talk.identity is None
    assert talk.kinds()[-2:] == ["partitions_lost", "rebalance_triggered"]
    assert talk.last("rebalance_triggered").fields == {"trigger": "session-expired"}
    assert talk.session(2) == (Register(talk.member.stamp, 2),)
    assert talk.registered("m-2") == (SendAwaitCommand(talk.member.stamp, "m-2", -1, -1),)  # the coordinator is known
    assert [emit.member_id for emit in talk.emitted if emit.kind == "member_started"] == ["m-1", "m-2"]


def test_new_session_without_the_end_of_the_old_one_counts_as_both() -> None:
    talk = Talk().started(P0)
    did = talk.session(2)
    assert did == (CancelAwait(), Lose(frozenset({P0})), Register(talk.member.stamp, 2))


def test_session_that_expires_during_the_registration_waits_for_a_new_session() -> None:
    talk = Talk()
    talk.session(1)
    stamp = talk.member.stamp
    assert talk.say(events.SessionEnded()) == ()
    assert talk.say(events.Registered(stamp, "m-1")) == ()  # an answer for the session that is over
    assert talk.state is ServerMemberState.UNREGISTERED
    talk.session(2)
    assert talk.state is ServerMemberState.REGISTERING


def test_session_that_expires_during_callbacks_turns_the_revocation_into_a_loss() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    assert talk.say(events.SessionEnded()) == ()
    assert talk.identity is None
    assert talk.stopped() == ()
    assert talk.state is ServerMemberState.UNREGISTERED
    assert "partitions_revoked" not in talk.kinds()
    assert talk.last("partitions_lost").member_id == "m-1"
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"


def test_session_renewed_during_callbacks_is_registered_in_afterwards() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    talk.say(events.SessionEnded())
    assert talk.session(2) == ()
    assert talk.stopped() == (Register(talk.member.stamp, 2),)


def test_session_that_expires_while_starting_loses_the_new_partitions() -> None:
    talk = Talk().waiting()
    talk.start(5, P0)
    stamp = talk.member.stamp
    assert talk.say(events.SessionEnded()) == (Lose(frozenset({P0})),)
    assert talk.say(Resumed(stamp)) == ()
    assert talk.state is ServerMemberState.UNREGISTERED


# -- ended by the member's own clock ----------------------------------------------------------------------------------


def test_member_goes_on_if_zookeeper_returns_in_time() -> None:
    talk = Talk().started(P0)
    assert talk.say(events.SessionInterrupted()) == ()
    assert talk.due_in_ms() == 1000  # a third of the session: two thirds may have passed before the silence was noticed
    assert talk.after(999) == ()
    assert talk.say(events.SessionRestored()) == ()
    assert (talk.state, talk.due_in_ms()) == (ServerMemberState.STARTED, None)


def test_member_without_zookeeper_for_the_rest_of_its_session_loses_its_partitions() -> None:
    talk = Talk().started(P0)
    talk.say(events.SessionInterrupted())
    assert talk.after(1000) == (CancelAwait(), Lose(frozenset({P0})))
    assert talk.state is ServerMemberState.UNREGISTERED
    assert talk.last("rebalance_triggered").fields == {"trigger": "disconnected"}
    assert talk.due_in_ms() is None


def test_session_that_survived_registers_again_and_reports_that_nothing_runs() -> None:
    talk = Talk().started(P0)
    talk.say(events.SessionInterrupted())
    talk.after(1000)
    assert talk.say(events.SessionRestored()) == (Register(talk.member.stamp, 1),)
    assert talk.registered("m-1") == (SendAwaitCommand(talk.member.stamp, "m-1", -1, -1),)
    assert len([emit for emit in talk.emitted if emit.kind == "member_started"]) == 1


def test_waiting_member_also_stops_its_requests_when_its_session_may_be_over() -> None:
    talk = Talk().waiting()
    talk.say(events.SessionInterrupted())
    assert talk.after(1000) == (CancelAwait(),)
    assert talk.state is ServerMemberState.UNREGISTERED


def test_stop_that_outlasts_the_session_becomes_a_loss() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    talk.say(events.SessionInterrupted())
    talk.after(1000)
    assert talk.identity is None
    talk.stopped()
    assert talk.state is ServerMemberState.UNREGISTERED
    assert talk.last("partitions_lost").fields["all"] == []


# -- ended by the coordinator -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "UNKNOWN_CONSUMER"])
def test_refused_commit_loses_all_partitions(error: str) -> None:
    talk = Talk().started(P0)
    assert talk.refused("CommitOwned", error) == (CancelAwait(), Lose(frozenset({P0})))
    assert talk.state is ServerMemberState.WAITING
    assert talk.identity is None
    assert talk.last("rebalance_triggered").fields == {"trigger": "generation-outdated"}
    assert talk.after(100) == (SendAwaitCommand(talk.member.stamp, "m-1", -1, -1),)


def test_refused_commit_while_stopping_becomes_a_loss_without_an_acknowledgement() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    assert talk.refused("CommitOwned", "ILLEGAL_GENERATION") == ()
    assert talk.identity is None
    assert talk.stopped() == (SendAwaitCommand(talk.member.stamp, "m-1", -1, -1),)
    assert talk.kinds()[-2:] == ["partitions_lost", "join"]
    assert talk.last("partitions_lost").fields["generation"] == 4


def test_late_refusal_of_an_old_generation_does_not_affect_the_next_one() -> None:
    talk = Talk().started(P0, generation=4)
    stamp = talk.member.stamp
    talk.stop(4)
    talk.stopped()
    talk.start(5, P0)
    talk.resumed()
    assert talk.refused("CommitOwned", "ILLEGAL_GENERATION", stamp=stamp) == ()
    assert talk.identity == Identity("m-1", 5)


def test_generation_above_the_coordinators_is_dropped() -> None:
    """A coordinator that lost its log counts from the beginning: it answers 22, or commands an earlier generation."""
    talk = Talk().started(P0, generation=4)
    assert talk.refused("AwaitCommand", "ILLEGAL_GENERATION") == (Lose(frozenset({P0})),)
    assert talk.after(100) == (SendAwaitCommand(talk.member.stamp, "m-1", -1, -1),)
    talk = Talk().started(P0, generation=4)
    assert talk.start(1, P0) == (Lose(frozenset({P0})),)
    talk.after(100)
    talk.start(1, P0)
    assert talk.identity == Identity("m-1", 1)


def test_start_without_a_stop_loses_the_running_partitions() -> None:
    talk = Talk().started(P0, generation=4)
    did = talk.start(6, P1)
    assert did[0] == Lose(frozenset({P0}))
    assert talk.state is ServerMemberState.STARTING
    assert talk.member.owned == {P1}
    assert talk.last("rebalance_triggered").fields == {"trigger": "superseded"}


@pytest.mark.parametrize("error", ["INCONSISTENT_STRATEGY", "UNKNOWN_STRATEGY", "INVALID_REQUEST"])
def test_permanent_error_takes_the_member_out_of_the_group(error: str) -> None:
    talk = Talk().waiting()
    assert talk.refused("AwaitCommand", error) == (Unregister(), Fail("AwaitCommand", error))
    assert talk.state is ServerMemberState.FAILED
    about = talk.last("member_refused").fields
    assert (about["api"], about["error"]) == ("AwaitCommand", error)
    talk.close()
    assert talk.state is ServerMemberState.LEFT


# -- not ended: the coordinator is unavailable -----------------------------------------------------------------------


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "UNANSWERED"])
def test_member_keeps_its_partitions_during_the_coordinator_lookup(error: str) -> None:
    talk = Talk().started(P0, generation=4)
    assert talk.refused("AwaitCommand", error) == (AbandonCoordinator(),)
    assert talk.identity == Identity("m-1", 4)
    assert talk.member.owned == {P0}
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.unknown() == ()
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.found(2) == (SendAwaitCommand(talk.member.stamp, "m-1", 4, -1),)


def test_loading_coordinator_is_asked_again_after_the_backoff() -> None:
    talk = Talk().started(P0)
    assert talk.refused("AwaitCommand", "COORDINATOR_LOAD_IN_PROGRESS") == ()
    assert talk.after(99) == ()
    assert talk.after(1) == (SendAwaitCommand(talk.member.stamp, "m-1", 4, -1),)


def test_coordinator_lost_while_stopping_is_looked_up_for_the_commit() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    assert talk.refused("CommitOwned", "UNANSWERED") == (AbandonCoordinator(),)
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.found(2) == ()  # no request before the stop is done
    assert talk.stopped() == (SendAwaitCommand(talk.member.stamp, "m-1", 4, 4),)
