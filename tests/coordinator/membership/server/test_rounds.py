"""A member of the server design obeys: it registers first, sends one request at a time, and stops before it starts."""

from __future__ import annotations

from dataclasses import replace

from coordinator.membership.effects import CommitPositions, FindCoordinator, Identity, Revoke
from coordinator.membership.server.effects import CancelAwait, Register, SendAwaitCommand, StartDelivery, Unregister
from coordinator.membership.server.events import SubscriptionAnnounced
from coordinator.membership.server.member import ServerMemberState
from tests.coordinator.membership.server.commanded import P0, P1, P2, SETTINGS, Talk


def test_member_registers_before_the_coordinator_lookup_and_the_first_await() -> None:
    talk = Talk()
    assert talk.session(17) == (Register(1, 17),)
    assert talk.found(2) == ()  # no request to the coordinator before the member's id is registered
    talk = Talk()
    talk.session()
    assert talk.registered("m-1") == (FindCoordinator(),)
    assert talk.found() == (SendAwaitCommand(1, "m-1", -1, -1),)
    assert talk.state is ServerMemberState.WAITING
    assert talk.identity is None
    assert talk.kinds() == ["rebalance_started", "attempt_started", "join", "member_started"]
    assert talk.last("rebalance_started").fields == {"trigger": "subscribe"}


def test_empty_response_is_followed_by_one_request_at_once() -> None:
    talk = Talk().waiting()
    (asked,) = talk.nothing()
    assert asked == SendAwaitCommand(1, "m-1", -1, -1)
    assert talk.found() == ()  # one is in flight
    assert talk.due_in_ms() is None


def test_start_notifies_the_listener_before_it_is_confirmed() -> None:
    talk = Talk().waiting()
    assert talk.start(5, P0, P2) == (StartDelivery(2, {P0: 7, P2: 7}),)
    assert talk.state is ServerMemberState.STARTING
    assert talk.identity == Identity("m-1", 5)
    assert talk.resumed() == (SendAwaitCommand(2, "m-1", 5, -1),)
    assert talk.state is ServerMemberState.STARTED
    assert talk.kinds()[4:] == ["resume", "partitions_assigned", "attempt_ended", "rebalance_ended"]
    assert talk.last("partitions_assigned").fields["generation"] == 5
    assert talk.last("rebalance_ended").fields == {"outcome": "ok", "generation": 5}


def test_stop_is_acknowledged_only_after_commit_and_callbacks() -> None:
    talk = Talk().started(P0, P1, generation=4)
    commit = CommitPositions(2, Identity("m-1", 4), wait=True)
    assert talk.stop(4) == (commit, Revoke(frozenset({P0, P1})))
    assert talk.state is ServerMemberState.STOPPING
    assert talk.identity == Identity("m-1", 4)  # what the listener commits is accepted
    assert talk.stopped() == (SendAwaitCommand(3, "m-1", 4, 4),)
    assert talk.state is ServerMemberState.WAITING
    assert talk.identity is None
    assert talk.start(5, P1) == (StartDelivery(4, {P1: 7}),)
    talk.resumed()
    emitted = talk.kinds()[8:]
    assert emitted == [
        "rebalance_triggered",
        "rebalance_started",
        "attempt_started",
        "stop",
        "partitions_revoked",
        "join",
        "resume",
        "partitions_assigned",
        "attempt_ended",
        "rebalance_ended",
    ]


def test_stop_without_auto_commit_leaves_the_commit_to_the_listener() -> None:
    talk = Talk(replace(SETTINGS, auto_commit=False)).started(P0)
    assert talk.stop(4) == (Revoke(frozenset({P0})),)


def test_member_without_partitions_acknowledges_a_stop_at_once() -> None:
    talk = Talk().waiting()
    talk.start(4)
    talk.resumed()
    assert talk.stop(4) == (SendAwaitCommand(3, "m-1", 4, 4),)
    assert "partitions_revoked" not in talk.kinds()


def test_stopped_generation_may_be_started_again() -> None:
    """A successor does not know of its predecessor's STOP."""
    talk = Talk().started(P0, generation=4)
    talk.stop(4)
    talk.stopped()
    assert talk.start(4, P0) == (StartDelivery(4, {P0: 7}),)
    assert talk.resumed() == (SendAwaitCommand(4, "m-1", 4, -1),)


def test_repeated_start_changes_nothing_and_the_next_await_follows_the_backoff() -> None:
    talk = Talk().started(P0, generation=4)
    assert talk.start(4, P0) == ()
    assert (talk.state, talk.due_in_ms()) == (ServerMemberState.STARTED, 100)
    assert talk.after(100) == (SendAwaitCommand(2, "m-1", 4, -1),)


def test_stop_of_another_generation_is_ignored_until_the_backoff_ends() -> None:
    talk = Talk().started(P0, generation=4)
    assert talk.stop(3) == ()
    assert talk.state is ServerMemberState.STARTED
    assert talk.after(100) == (SendAwaitCommand(2, "m-1", 4, -1),)
    talk = Talk().waiting()
    assert talk.stop(3) == ()
    assert talk.after(100) == (SendAwaitCommand(1, "m-1", -1, -1),)


def test_waiting_await_is_repeated_when_the_subscription_changes() -> None:
    talk = Talk().started(P0)
    assert talk.say(SubscriptionAnnounced()) == (CancelAwait(), SendAwaitCommand(2, "m-1", 4, -1))
    assert talk.member.owned == {P0}
    talk.stop(4)
    assert talk.say(SubscriptionAnnounced()) == ()  # the acknowledgement will announce it


def test_due_commit_is_made_only_in_a_poll() -> None:
    talk = Talk().started(P0)
    assert talk.poll() == ()
    talk.clock.advance_ms(1000)
    assert talk.due_in_ms() is None
    assert talk.poll() == (CommitPositions(2, Identity("m-1", 4), wait=False),)
    assert talk.poll() == ()


def test_closing_commits_and_revokes_and_cancels_the_await() -> None:
    talk = Talk().started(P0)
    assert talk.close() == (CancelAwait(), CommitPositions(2, Identity("m-1", 4), wait=True), Revoke(frozenset({P0})))
    assert talk.stopped() == (Unregister(),)
    assert talk.state is ServerMemberState.LEFT
    assert talk.kinds()[-2:] == ["partitions_revoked", "member_closed"]


def test_closing_while_stopping_uses_the_running_revocation() -> None:
    talk = Talk().started(P0)
    talk.stop(4)
    assert talk.close() == ()
    assert talk.stopped() == (Unregister(),)
    assert talk.state is ServerMemberState.LEFT
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"


def test_closing_before_anything_was_started_leaves_at_once() -> None:
    for talk, did in ((Talk(), ()), (Talk().waiting(), (CancelAwait(), Unregister()))):
        assert talk.close() == did
        assert talk.state is ServerMemberState.LEFT
        assert talk.last("member_closed").fields == {"group": "g"}
