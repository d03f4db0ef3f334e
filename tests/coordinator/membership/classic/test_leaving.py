"""How a member leaves: for a while, for good, or, if it is static, without a request (KIP-345)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.events import GroupMember
from coordinator.membership.classic.member import MemberState, deadline
from coordinator.membership.effects import AbandonCoordinator, Fail, FindCoordinator, Identity, Lose, Revoke
from coordinator.membership.events import Closed, CoordinatorUnknown, Event, Stopped, Ticked
from kernel.clock import NS_PER_MS
from tests.coordinator.membership.classic.membership import P0, P1, SETTINGS, Talk

STATIC = replace(SETTINGS, instance_id="web-1")
BOTH = frozenset({P0, P1})


def test_unsubscribe_revokes_without_a_commit_and_leaves():
    talk = Talk().stable()
    assert talk.say(events.Unsubscribed()) == (Revoke(BOTH),)
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.poll() == ()
    assert "member_closed" not in talk.kinds()


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_unsubscribe_while_joining_ends_the_attempt(steps: int):
    talk = Talk()
    talk.poll()
    if steps > 1:
        talk.found()
        talk.say(events.MemberIdGiven(talk.member.stamp, "m-1"))
    if steps > 2:
        talk.joined()
    left = talk.say(events.Unsubscribed())
    assert left == (() if steps == 1 else (effects.SendLeave("m-1"),))
    assert talk.state is MemberState.UNJOINED
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"
    assert talk.member.attempt == 0


def test_responses_to_requests_before_the_unsubscribe_change_nothing():
    talk = Talk()
    talk.poll()
    talk.found()
    late = events.Joined(talk.member.stamp, "m-1", 1, "range", "other")
    talk.say(events.Unsubscribed())
    before = talk.member
    assert talk.say(late) == ()
    assert talk.member == before


def test_coordinator_found_while_unsubscribing_gets_the_leave_and_the_next_join():
    talk = Talk().stable()
    talk.refused("Heartbeat", "NOT_COORDINATOR")
    assert talk.say(events.Unsubscribed()) == (Revoke(BOTH),)
    talk.found(2)
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    talk.say(events.SubscriptionChanged(frozenset({"t"})))
    assert talk.poll() == (effects.SendJoin(talk.member.stamp, ""),)


def test_coordinator_lookup_that_fails_while_unsubscribing_is_retried():
    talk = Talk().stable()
    talk.refused("Heartbeat", "NOT_COORDINATOR")
    talk.say(events.Unsubscribed())
    talk.say(CoordinatorUnknown("nobody"))
    assert talk.say(Stopped()) == ()
    talk.say(events.SubscriptionChanged(frozenset({"t"})))
    assert talk.poll() == (FindCoordinator(),)


def test_subscription_during_an_unsubscribe_joins_after_it():
    talk = Talk().stable()
    talk.say(events.Unsubscribed())
    talk.say(events.SubscriptionChanged(frozenset({"u"})))
    talk.say(Stopped())
    assert talk.poll() == (effects.SendJoin(talk.member.stamp, ""),)
    assert talk.last("rebalance_started").fields == {"trigger": "subscribe"}


def test_close_looks_for_the_coordinator_until_the_last_commit_has_it():
    """ConsumerCoordinator.close of 4.1.1 commits, and looks the coordinator up for that as often as it has time."""
    talk = Talk().stable()
    talk.refused("Heartbeat", "NOT_COORDINATOR")
    talk.say(CoordinatorUnknown("nobody"))
    talk.say(Closed())
    assert talk.say(Ticked()) == ()  # before the backoff is over
    due_ns = deadline(talk.member)
    assert due_ns is not None
    talk.clock.advance_ms((due_ns - talk.clock.monotonic_ns()) // NS_PER_MS)
    assert talk.say(Ticked()) == (FindCoordinator(),)
    assert talk.say(Ticked()) == ()
    talk.found(2)
    assert deadline(talk.member) is None
    assert talk.refused("OffsetCommit", "NOT_COORDINATOR") == (AbandonCoordinator(), FindCoordinator())
    talk.found(1)
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.state is MemberState.LEFT


def test_close_while_it_unsubscribes_leaves_once():
    talk = Talk().stable()
    talk.say(events.Unsubscribed())
    assert talk.say(Closed()) == ()
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.kinds()[-2:] == ["partitions_revoked", "member_closed"]
    assert talk.state is MemberState.LEFT


@pytest.mark.parametrize("last", [Closed(), events.Unsubscribed()])
def test_static_member_revokes_its_partitions_without_a_leave_request(last: Event):
    talk = Talk(STATIC).stable()
    assert talk.say(last)[-1] == Revoke(BOTH)
    assert talk.say(Stopped()) == ()


def test_overdue_static_member_stops_without_a_leave_request():
    """AbstractCoordinator.maybeLeaveGroup of 4.1: it drops its generation; only dynamic members send LeaveGroup."""
    talk = Talk(STATIC).stable()
    for _ in range(4):
        talk.clock.advance_ms(2_500)
        talk.heartbeat_answered()
    assert talk.say(Ticked()) == (Lose(BOTH),)
    assert talk.poll() == (effects.SendJoin(talk.member.stamp, ""),)


def test_restarted_static_leader_leads_and_skips_the_assignment():
    """KIP-814: it must know the group's topics, so it is to read the subscriptions without assigning anything."""
    talk = Talk(STATIC)
    talk.poll()
    talk.found()
    members = (GroupMember("web-1-id", "web-1", b"metadata"),)
    joined = events.Joined(talk.member.stamp, "web-1-id", 7, "range", "web-1-id", members, skip_assignment=True)
    assert talk.say(joined) == (effects.RunAssignor(talk.member.stamp, "range", members, skip_assignment=True),)
    sync = effects.SendSync(talk.member.stamp, Identity("web-1-id", 7), "range", {})
    assert talk.say(events.Decided(talk.member.stamp, {})) == (sync,)


@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit"])
def test_replaced_static_member_ends(api: str):
    talk = Talk(STATIC).stable()
    assert talk.refused(api, "FENCED_INSTANCE_ID") == (Lose(BOTH), Fail(api, "FENCED_INSTANCE_ID"))
    assert talk.state is MemberState.FAILED
    assert talk.poll() == ()
    assert talk.say(Closed()) == ()


def test_replaced_static_member_ends_while_its_join_is_parked():
    talk = Talk(STATIC)
    talk.poll()
    talk.found()
    assert talk.refused("JoinGroup", "FENCED_INSTANCE_ID") == (Fail("JoinGroup", "FENCED_INSTANCE_ID"),)


@pytest.mark.parametrize(
    ("trigger", "state"), [("metadata-changed", MemberState.REJOIN_NEEDED), ("scheduled", MemberState.REJOIN_NEEDED)]
)
def test_requested_rejoin_begins_with_the_next_poll(trigger: str, state: MemberState):
    talk = Talk().stable()
    assert talk.say(events.RejoinWanted(trigger)) == ()
    assert talk.state is state
    assert talk.say(events.RejoinWanted("again")) == ()
    talk.poll()
    assert talk.last("rebalance_started").fields == {"trigger": trigger}


def test_rejoin_requested_during_the_takeover_follows_it():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.joined()
    talk.synced(P0)
    talk.say(events.RejoinWanted("metadata-changed"))
    assert talk.poll() == (effects.Assign(talk.member.stamp, frozenset({P0})),)
    talk.resumed()
    assert talk.state is MemberState.REJOIN_NEEDED
