"""What a member does about changed topics in each of its states."""

from __future__ import annotations

import pytest

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import MemberState
from coordinator.membership.effects import Effect, FindCoordinator, Revoke
from coordinator.membership.events import Stopped
from kernel.values import TopicPartition
from tests.coordinator.membership.classic.membership import P0, P1, Talk

OTHER, U0 = frozenset({"u"}), TopicPartition("u", 0)
BOTH = frozenset({"t", "u"})


def changed(talk: Talk, topics: frozenset[str]) -> tuple[Effect, ...]:
    return talk.say(events.SubscriptionChanged(topics))


def triggers(talk: Talk) -> list[object]:
    return [emit.fields["trigger"] for emit in talk.emitted if emit.kind == "rebalance_triggered"]


def test_member_with_a_pattern_that_matches_nothing_still_joins():
    talk = Talk()
    changed(talk, frozenset())
    assert talk.poll() == (FindCoordinator(),)
    assert talk.state is MemberState.SEEKING


def test_member_that_unsubscribed_stays_out_until_it_subscribes_again():
    talk = Talk().stable()
    assert Revoke(frozenset({P0, P1})) in talk.say(events.Unsubscribed())
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.poll() == ()
    assert talk.state is MemberState.UNJOINED
    changed(talk, frozenset())
    assert talk.poll() == (effects.SendJoin(talk.member.stamp, ""),)


def test_stable_member_rejoins_with_its_next_poll_when_the_topics_change():
    talk = Talk().stable()
    assert changed(talk, BOTH) == ()
    assert talk.state is MemberState.REJOIN_NEEDED
    assert triggers(talk) == ["subscription-changed"]
    talk.poll()
    assert talk.say(Stopped()) == (effects.SendJoin(talk.member.stamp, "m-1"),)
    assert talk.member.joined == BOTH


def test_same_topics_are_not_a_change():
    talk = Talk().stable()
    changed(talk, frozenset({"t"}))
    assert talk.state is MemberState.STABLE
    assert triggers(talk) == []


@pytest.mark.parametrize("steps", [1, 2, 3])  # the Join is to be sent, the Join is parked, the Sync is parked
def test_topics_that_change_while_joining_are_in_the_join_or_need_another_one(steps):
    talk = Talk()
    talk.poll()
    if steps > 1:
        talk.found()
    if steps > 2:
        talk.joined()
    changed(talk, BOTH)
    if steps == 1:
        talk.found()
    if steps < 3:
        talk.joined()
    talk.synced(P0)
    assert triggers(talk) == ([] if steps == 1 else ["subscription-changed"])
    assert talk.poll() == (effects.Assign(talk.member.stamp, frozenset({P0})),)
    talk.resumed()
    assert talk.state is (MemberState.STABLE if steps == 1 else MemberState.REJOIN_NEEDED)


def test_assigned_topics_that_are_no_longer_subscribed_are_ignored():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.joined()
    changed(talk, OTHER)
    talk.synced(P0, P1)
    assert talk.poll() == (effects.SendJoin(talk.member.stamp, "m-1"),)
    assert talk.state is MemberState.JOINING
    assert talk.member.owned == frozenset()
    assert talk.last("attempt_ended").fields["error"] == "subscription changed"
    assert talk.last("rebalance_started").fields["trigger"] == "subscription-changed"
    talk.joined(generation=2)
    talk.synced(U0)
    assert talk.poll() == (effects.Assign(talk.member.stamp, frozenset({U0})),)
    assert talk.kinds().count("rebalance_started") == talk.kinds().count("rebalance_ended") + 1
