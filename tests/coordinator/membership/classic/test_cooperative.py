"""A cooperative member (KIP-429) keeps its partitions during a rebalance, and then gives up those taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import MemberState
from coordinator.membership.effects import (
    AbandonCoordinator,
    CommitPositions,
    Fail,
    FindCoordinator,
    Identity,
    Lose,
    Revoke,
)
from coordinator.membership.events import Closed, CoordinatorUnknown, Stopped, Ticked
from kernel.values import TopicPartition
from tests.coordinator.membership.classic.membership import P0, P1, P2, SETTINGS, Talk, partitions_of

U0 = TopicPartition("u", 0)
COOPERATIVE = replace(SETTINGS, cooperative=True)
NOTHING: frozenset[TopicPartition] = frozenset()
BOTH = frozenset({P0, P1})
PARTITIONS = ("partitions_assigned", "partitions_revoked", "partitions_lost")


def stable(*partitions: TopicPartition, **changed: object) -> Talk:
    return Talk(replace(COOPERATIVE, **changed)).stable(*(partitions or (P0, P1)))  # type: ignore[arg-type]


def stopping(*partitions: TopicPartition) -> Talk:
    talk = stable(*partitions)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    assert talk.state is MemberState.STOPPING
    return talk


def joining(*partitions: TopicPartition) -> Talk:
    talk = stopping(*partitions)
    talk.say(Stopped())
    assert talk.state is MemberState.JOINING
    return talk


def syncing() -> Talk:
    talk = joining()
    talk.joined(generation=2)
    return talk


def releasing(*partitions: TopicPartition) -> Talk:
    """P1 is taken away."""
    talk = syncing()
    talk.synced(*(partitions or (P0,)))
    talk.poll()
    assert talk.state is MemberState.RELEASING
    return talk


def emitted(talk: Talk, since: int) -> list[tuple[str, frozenset[TopicPartition], frozenset[TopicPartition]]]:
    """The trace's events about partitions: (kind, changed, all)."""
    return [
        (emit.kind, partitions_of(emit, "partitions"), partitions_of(emit, "all"))
        for emit in talk.emitted[since:]
        if emit.kind in PARTITIONS
    ]


# -- rounds in which nothing goes wrong -----------------------------------------------------------------------------


def test_member_that_must_rejoin_commits_and_joins_with_all_its_partitions():
    talk = stable()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    before = len(talk.emitted)
    assert talk.poll() == (CommitPositions(1, Identity("m-1", 1), wait=True), Revoke(NOTHING))
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert talk.member.owned == BOTH
    assert emitted(talk, before) == []
    assert "stop" not in talk.kinds()[before:]


def test_member_without_auto_commit_joins_at_once():
    talk = stable(auto_commit=False)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    assert talk.poll() == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert talk.member.owned == BOTH


def test_round_without_moves_stops_nothing_and_is_the_only_one():
    talk = syncing()
    before = len(talk.emitted)
    talk.synced(P0, P1)
    assert talk.poll() == (effects.Assign(2, NOTHING),)
    assert talk.resumed() == ()
    assert talk.state is MemberState.STABLE
    assert emitted(talk, before) == [("partitions_assigned", NOTHING, BOTH)]


def test_partition_that_is_new_is_added_in_one_round():
    talk = syncing()
    before = len(talk.emitted)
    talk.synced(P0, P1, P2)
    assert talk.poll() == (effects.Assign(2, frozenset({P2})),)
    talk.resumed()
    assert talk.state is MemberState.STABLE
    assert emitted(talk, before) == [("partitions_assigned", frozenset({P2}), BOTH | {P2})]


def test_revoked_partition_is_committed_and_another_round_follows_at_once():
    talk = syncing()
    before = len(talk.emitted)
    talk.synced(P0, P2)
    taken = frozenset({P1})
    assert talk.poll() == (CommitPositions(2, Identity("m-1", 2), wait=True), Revoke(taken))
    assert talk.member.owned == BOTH
    assert talk.say(Stopped()) == (effects.Assign(2, frozenset({P2})),)
    talk.resumed()
    assert talk.state is MemberState.REJOIN_NEEDED
    assert emitted(talk, before) == [
        ("partitions_revoked", taken, frozenset({P0})),
        ("partitions_assigned", frozenset({P2}), frozenset({P0, P2})),
    ]
    assert talk.last("rebalance_triggered").fields == {"trigger": "partitions-revoked"}
    assert talk.last("rebalance_ended").fields == {"outcome": "ok", "generation": 2}
    talk.poll()
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=3, member_id="m-1"),)
    assert talk.last("rebalance_started").fields == {"trigger": "partitions-revoked"}


def test_phases_of_a_round_with_a_revocation():
    talk = joining()
    before = len(talk.emitted)
    talk.joined(generation=2)
    talk.synced(P0)
    talk.poll()
    talk.say(Stopped())
    talk.resumed()
    phases = [emit.fields["phase"] for emit in talk.emitted[before:] if emit.kind == "phase_entered"]
    assert phases == ["claim", "stop", "resume"]


def test_27_during_a_revocation_is_not_a_second_trigger():
    talk = releasing()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.say(Stopped())
    talk.resumed()
    assert talk.state is MemberState.REJOIN_NEEDED
    triggers = [emit.fields["trigger"] for emit in talk.emitted if emit.kind == "rebalance_triggered"]
    assert triggers == ["group-rebalancing"] * 2  # one for each round


# -- its own subscription -------------------------------------------------------------------------------------------


def subscribed_to_both() -> Talk:
    talk = Talk(COOPERATIVE)
    talk.say(events.SubscriptionChanged(frozenset({"t", "u"})))
    return talk.stable(P0, U0)


def test_only_unsubscribed_partitions_are_revoked_before_the_join():
    talk = subscribed_to_both()
    before = len(talk.emitted)
    talk.say(events.SubscriptionChanged(frozenset({"t"})))
    assert talk.poll()[-1] == Revoke(frozenset({U0}))
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert emitted(talk, before) == [("partitions_revoked", frozenset({U0}), frozenset({P0}))]


def test_subscription_that_changes_again_meanwhile_revokes_more():
    talk = subscribed_to_both()
    talk.say(events.SubscriptionChanged(frozenset({"t"})))
    talk.poll()
    talk.say(events.SubscriptionChanged(frozenset({"v"})))
    assert talk.say(Stopped())[-1] == Revoke(frozenset({P0}))
    assert talk.state is MemberState.STOPPING
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert talk.member.owned == NOTHING


def test_assignment_of_unsubscribed_topics_leaves_kept_partitions():
    talk = joining(P0)
    talk.joined(generation=2)
    talk.say(events.SubscriptionChanged(frozenset({"t", "u"})))
    talk.say(events.SubscriptionChanged(frozenset({"u"})))
    talk.synced(P0, P1)
    assert talk.poll()[-1] == Revoke(frozenset({P0}))
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=3, member_id="m-1"),)


# -- the identity is lost -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "member_id"), [("UNKNOWN_MEMBER_ID", ""), ("ILLEGAL_GENERATION", "m-1")])
def test_identity_refused_between_join_and_sync_loses_kept_partitions(error: str, member_id: str):
    talk = syncing()
    before = len(talk.emitted)
    assert talk.refused("SyncGroup", error) == (Lose(BOTH), effects.SendJoin(4, member_id))
    assert talk.member.owned == NOTHING
    assert emitted(talk, before) == [("partitions_lost", BOTH, NOTHING)]


def test_identity_refused_before_the_join_loses_all_partitions_at_once():
    talk = subscribed_to_both()
    talk.say(events.SubscriptionChanged(frozenset({"t"})))
    talk.poll()
    before = len(talk.emitted)
    assert talk.refused("OffsetCommit", "UNKNOWN_MEMBER_ID") == (Lose(frozenset({P0})),)
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=3, member_id=""),)
    assert emitted(talk, before) == [
        ("partitions_lost", frozenset({P0}), frozenset({U0})),
        ("partitions_lost", frozenset({U0}), NOTHING),
    ]


def test_identity_refused_during_a_revocation_ends_the_round():
    talk = releasing()
    before = len(talk.emitted)
    assert talk.refused("Heartbeat", "UNKNOWN_MEMBER_ID") == (Lose(frozenset({P0})),)
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"
    assert talk.say(Stopped()) == ()
    assert talk.state is MemberState.UNJOINED
    assert emitted(talk, before) == [
        ("partitions_lost", frozenset({P0}), frozenset({P1})),
        ("partitions_lost", frozenset({P1}), NOTHING),
    ]
    talk.poll()
    assert talk.last("rebalance_started").fields == {"trigger": "member-forgotten"}


def test_27_to_a_sync_keeps_everything_and_rejoins_with_the_new_generation():
    talk = syncing()
    assert talk.refused("SyncGroup", "REBALANCE_IN_PROGRESS") == (effects.SendJoin(3, "m-1"),)
    assert (talk.member.owned, talk.identity) == (BOTH, Identity("m-1", 2))


def test_27_before_the_takeover_skips_that_generation_and_keeps_everything():
    talk = syncing()
    talk.synced(P2)
    assert talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS") == ()
    assert (talk.state, talk.member.owned, talk.member.assigned) == (MemberState.REJOIN_NEEDED, BOTH, NOTHING)


def test_fenced_instance_id_loses_kept_partitions():
    talk = stable(auto_commit=False, instance_id="web-1")
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    talk.joined(generation=2)
    assert talk.refused("SyncGroup", "FENCED_INSTANCE_ID") == (Lose(BOTH), Fail("SyncGroup", "FENCED_INSTANCE_ID"))
    assert talk.state is MemberState.FAILED


# -- no coordinator, no poll ----------------------------------------------------------------------------------------


def test_session_expires_during_the_coordinator_lookup_and_the_join_goes_on():
    talk = joining()
    assert talk.refused("JoinGroup", "NOT_COORDINATOR") == (AbandonCoordinator(),)
    assert (talk.state, talk.member.owned) == (MemberState.SEEKING, BOTH)
    before = len(talk.emitted)
    talk.after(100)
    talk.say(CoordinatorUnknown("nobody"))
    assert talk.after(2900)[0] == Lose(BOTH)  # 3000 ms after the last answer of the old one
    assert (talk.state, talk.identity) == (MemberState.SEEKING, None)
    assert emitted(talk, before) == [("partitions_lost", BOTH, NOTHING)]
    talk.after(100)
    assert talk.found(2) == (effects.SendJoin(talk.member.stamp, ""),)


def test_join_that_was_parked_counts_as_alive_until_it_fails():
    talk = joining()
    talk.clock.advance_ms(60_000)
    talk.refused("JoinGroup", "UNANSWERED", sent_ms_ago=60_000)
    assert talk.member.owned == BOTH
    talk.after(100)
    talk.say(CoordinatorUnknown("nobody"))
    assert talk.after(2899) == (FindCoordinator(),)
    assert talk.member.owned == BOTH
    assert talk.after(1)[0] == Lose(BOTH)


def test_session_that_expires_during_a_revocation_loses_the_rest_at_once():
    talk = releasing()
    before = len(talk.emitted)
    assert talk.after(3000) == (AbandonCoordinator(), Lose(frozenset({P0})))
    assert talk.say(Stopped()) == ()
    assert talk.state is MemberState.UNJOINED
    gone = [(each.kind, each.member_id) for each in talk.emitted[before:] if each.kind in PARTITIONS]
    assert gone == [("partitions_lost", "m-1")] * 2, "under the id with which it had them"


def test_session_that_expires_while_the_leader_computes_loses_kept_partitions():
    talk = joining()
    talk.joined(generation=2, leader="m-1")
    assert talk.state is MemberState.DECIDING
    assert talk.after(3000)[:2] == (AbandonCoordinator(), Lose(BOTH))
    assert talk.state is MemberState.SEEKING


@pytest.mark.parametrize("polls", [True, False])
def test_polls_while_it_joins_and_syncs_count_for_the_poll_interval(polls: bool):
    talk = joining()
    talk.joined(generation=2)
    talk.clock.advance_ms(9_000)
    if polls:
        assert talk.poll() == ()
    talk.clock.advance_ms(2_000)
    talk.synced(P0, P1)
    overdue = talk.say(Ticked())
    if polls:
        assert effects.SendLeave("m-1") not in overdue
        assert talk.member.owned == BOTH
    else:
        assert overdue == (effects.SendLeave("m-1"), Lose(BOTH))
        assert talk.state is MemberState.UNJOINED


def test_overdue_member_during_a_revocation_leaves_and_loses_the_rest():
    talk = releasing()
    for _ in range(4):
        talk.clock.advance_ms(2_500)
        talk.heartbeat_answered()
    assert talk.say(Ticked()) == (effects.SendLeave("m-1"), Lose(frozenset({P0})))


# -- the end ----------------------------------------------------------------------------------------------------------


def test_close_between_join_and_sync_loses_kept_partitions():
    """A commit would wait behind the parked request (ConsumerCoordinator.onLeavePrepare of 4.1)."""
    talk = syncing()
    assert talk.say(Closed()) == (Lose(BOTH), effects.SendLeave("m-1"))
    assert talk.state is MemberState.LEFT


def test_close_during_a_revocation_revokes_the_rest_after_it():
    talk = releasing()
    before = len(talk.emitted)
    assert talk.say(Closed()) == ()
    rest = frozenset({P0})
    commit = CommitPositions(2, Identity("m-1", 2), wait=True)
    assert talk.say(Stopped()) == (commit, Revoke(rest))
    assert talk.state is MemberState.CLOSING
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert emitted(talk, before) == [
        ("partitions_revoked", frozenset({P1}), rest),
        ("partitions_revoked", rest, NOTHING),
    ]


def test_close_before_the_takeover_commits_in_the_new_generation():
    talk = syncing()
    talk.synced(P0)
    commit = CommitPositions(2, Identity("m-1", 2), wait=True)
    assert talk.say(Closed()) == (commit, Revoke(BOTH))


def test_unsubscribe_during_the_commit_before_a_join_revokes_everything():
    talk = stopping()
    assert talk.say(events.Unsubscribed()) == ()
    assert talk.say(Stopped())[-1] == Revoke(BOTH)
    assert talk.state is MemberState.UNSUBSCRIBING
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.state is MemberState.UNJOINED


# -- a delay that the leader has set ----------------------------------------------------------------------------------


def delayed(delay_ms: int) -> Talk:
    talk = syncing()
    talk.say(events.Synced(talk.member.stamp, BOTH, delay_ms))
    talk.poll()
    return talk


def test_scheduled_rebalance_begins_when_it_is_due():
    talk = delayed(2000)
    talk.resumed()
    talk.after(1000)
    talk.heartbeat_answered()
    assert talk.state is MemberState.STABLE
    talk.after(1000)
    assert talk.state is MemberState.REJOIN_NEEDED
    assert talk.last("rebalance_triggered").fields == {"trigger": "scheduled"}
    assert talk.member.owned == BOTH


def test_scheduled_time_that_passes_during_the_takeover_is_not_lost():
    talk = delayed(500)
    talk.after(500)
    assert talk.state is MemberState.RESUMING
    talk.resumed()
    assert talk.due_in_ms() == 0
    talk.say(Ticked())
    assert talk.state is MemberState.REJOIN_NEEDED


def test_another_rebalance_cancels_the_scheduled_one():
    talk = delayed(2000)
    talk.resumed()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    talk.say(Stopped())
    talk.joined(generation=3)
    talk.synced(P0, P1)
    talk.poll()
    talk.resumed()
    assert talk.member.timers.rejoin_ns is None
