"""The four phases when nothing goes wrong, and the timers between them."""

from __future__ import annotations

from dataclasses import replace

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.events import GroupMember
from coordinator.membership.classic.member import Member, MemberState
from coordinator.membership.effects import CommitPositions, FindCoordinator, Identity, Revoke
from coordinator.membership.events import Closed, Stopped, Ticked
from tests.coordinator.membership.classic.membership import P0, P1, P2, SETTINGS, TOPICS, Talk


def test_member_does_nothing_before_the_first_poll():
    talk = Talk()
    assert talk.due_in_ms() is None
    assert talk.say(Ticked()) == ()
    assert talk.state is MemberState.UNJOINED


def test_first_poll_looks_for_the_coordinator_and_joins_without_a_member_id():
    talk = Talk()
    assert talk.poll() == (FindCoordinator(),)
    assert talk.state is MemberState.SEEKING
    assert talk.poll() == ()  # polls in the meantime change nothing
    assert talk.found(2) == (effects.SendJoin(stamp=1, member_id=""),)
    assert talk.state is MemberState.JOINING
    assert talk.kinds() == ["rebalance_started", "attempt_started", "join"]


def test_member_id_required_joins_again_under_the_given_id():
    talk = Talk()
    talk.poll()
    talk.found()
    assert talk.say(events.MemberIdGiven(1, "m-7")) == (effects.SendJoin(stamp=2, member_id="m-7"),)
    assert talk.state is MemberState.JOINING
    assert talk.kinds().count("attempt_started") == 1


def test_parked_join_runs_no_timer():
    talk = Talk()
    talk.poll()
    talk.found()
    assert talk.due_in_ms() is None
    talk.clock.advance_ms(60_000)
    assert talk.say(Ticked()) == ()
    assert talk.state is MemberState.JOINING


def test_follower_syncs_without_assignments_and_takes_over_in_the_next_poll():
    talk = Talk()
    talk.poll()
    talk.found()
    assert talk.joined() == (effects.SendSync(1, Identity("m-1", 1), "range", {}),)
    assert talk.state is MemberState.SYNCING
    assert talk.synced(P1, P0) == ()
    assert talk.state is MemberState.ASSIGNED
    assert talk.member.owned == frozenset()
    assert talk.poll() == (effects.Assign(1, frozenset({P0, P1})),)
    assert talk.member.owned == {P0, P1}
    assert talk.resumed() == ()
    assert talk.state is MemberState.STABLE
    assert talk.kinds() == [
        "rebalance_started",
        "attempt_started",
        "join",
        "member_started",
        "claim",
        "resume",
        "partitions_assigned",
        "attempt_ended",
        "rebalance_ended",
    ]
    assigned = talk.last("partitions_assigned")
    assert assigned.member_id == "m-1"
    assert assigned.cause == "generation:1"
    assert assigned.fields["all"] == [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]


def test_leader_assigns_between_join_and_sync_and_sends_heartbeats_meanwhile():
    talk = Talk()
    talk.poll()
    talk.found()
    members = (GroupMember("m-1", None, b"metadata"),)
    joined = events.Joined(1, "m-1", 3, "range", "m-1", members)
    assert talk.say(joined) == (effects.RunAssignor(1, "range", members),)
    assert talk.state is MemberState.DECIDING
    assert talk.after(1000) == (effects.SendHeartbeat(1, Identity("m-1", 3)),)
    sync = effects.SendSync(1, Identity("m-1", 3), "range", {"m-1": b"bytes"})
    assert talk.say(events.Decided(1, {"m-1": b"bytes"})) == (sync,)
    assert talk.due_in_ms() is None
    assert talk.kinds()[-2:] == ["decide", "claim"]


def test_heartbeats_go_one_at_a_time():
    talk = Talk().stable()
    assert talk.due_in_ms() == 1000
    assert talk.after(1000) == (effects.SendHeartbeat(1, Identity("m-1", 1)),)
    assert talk.after(1000) == ()
    talk.heartbeat_answered(sent_ms_ago=1000)
    assert talk.say(Ticked()) == (effects.SendHeartbeat(1, Identity("m-1", 1)),)


def test_auto_commit_goes_out_in_polls_only_and_not_before_its_interval():
    talk = Talk().stable()
    talk.clock.advance_ms(999)
    assert talk.poll() == ()
    talk.clock.advance_ms(1)
    assert not any(isinstance(effect, CommitPositions) for effect in talk.say(Ticked()))
    assert talk.poll() == (CommitPositions(1, Identity("m-1", 1), wait=False),)
    assert talk.poll() == ()


def test_member_that_must_rejoin_keeps_everything_until_it_polls_then_commits_and_revokes():
    talk = Talk().stable()
    talk.after(1000)
    assert talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS") == ()
    assert talk.state is MemberState.REJOIN_NEEDED
    assert talk.member.owned == {P0, P1}
    identity = Identity("m-1", 1)
    assert talk.poll() == (CommitPositions(1, identity, wait=True), Revoke(frozenset({P0, P1})))
    assert talk.state is MemberState.STOPPING
    assert talk.identity == identity  # a commit from the callback is still good
    assert talk.say(Stopped()) == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert talk.member.owned == frozenset()
    revoked = talk.last("partitions_revoked")
    assert revoked.fields["generation"] == 1
    assert revoked.fields["all"] == []
    assert [kind for kind in talk.kinds() if kind in ("stop", "join")] == ["join", "stop", "join"]


def test_member_that_must_rejoin_keeps_sending_heartbeats():
    talk = Talk().stable()
    talk.after(1000)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    assert talk.after(1000) == (effects.SendHeartbeat(1, Identity("m-1", 1)),)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS", sent_ms_ago=0)
    assert talk.state is MemberState.REJOIN_NEEDED
    assert talk.kinds().count("rebalance_triggered") == 1


def test_second_generation_announces_the_member_only_once():
    talk = Talk().stable()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    talk.say(Stopped())
    talk.joined(generation=2)
    talk.synced(P2)
    talk.poll()
    talk.resumed()
    assert talk.identity == Identity("m-1", 2)
    assert talk.kinds().count("member_started") == 1
    assert talk.last("rebalance_ended").fields == {"outcome": "ok", "generation": 2}


def test_member_without_auto_commit_only_revokes():
    talk = Talk(replace(SETTINGS, auto_commit=False)).stable()
    talk.clock.advance_ms(5000)
    assert talk.poll() == ()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    assert talk.poll() == (Revoke(frozenset({P0, P1})),)


def test_rebalance_without_partitions_skips_the_stop():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.joined()
    talk.synced()
    talk.poll()
    talk.resumed()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    assert talk.poll() == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert "stop" not in talk.kinds()


def test_rejoin_requested_while_taking_over_waits_until_positions_are_known():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.joined()
    talk.synced(P0)
    talk.poll()
    assert talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS") == ()
    assert talk.state is MemberState.RESUMING
    talk.resumed()
    assert talk.state is MemberState.REJOIN_NEEDED


def test_rejoin_requested_before_taking_over_skips_that_generation():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.joined()
    talk.synced(P0)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    assert talk.state is MemberState.REJOIN_NEEDED
    assert talk.poll() == (effects.SendJoin(stamp=2, member_id="m-1"),)
    assert "partitions_assigned" not in talk.kinds()
    assert talk.kinds().count("rebalance_started") == talk.kinds().count("rebalance_ended") + 1


def test_close_commits_revokes_and_leaves():
    talk = Talk().stable()
    assert talk.say(Closed()) == (CommitPositions(1, Identity("m-1", 1), wait=True), Revoke(frozenset({P0, P1})))
    assert talk.state is MemberState.CLOSING
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.state is MemberState.LEFT
    assert talk.kinds()[-2:] == ["partitions_revoked", "member_closed"]
    assert talk.say(Closed()) == ()


def test_close_before_joining_leaves_nothing():
    talk = Talk()
    assert talk.say(Closed()) == ()
    assert talk.state is MemberState.LEFT


def test_close_while_a_join_is_parked_leaves_under_the_known_id():
    talk = Talk()
    talk.poll()
    talk.found()
    talk.say(events.MemberIdGiven(1, "m-7"))
    assert talk.say(Closed()) == (effects.SendLeave("m-7"),)
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"


def test_close_while_stopping_waits_for_the_running_revocation():
    talk = Talk().stable()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    assert talk.say(Closed()) == ()
    assert talk.state is MemberState.CLOSING
    assert talk.say(Stopped()) == (effects.SendLeave("m-1"),)
    assert talk.state is MemberState.LEFT


def test_member_is_a_value():
    talk = Talk()
    before = talk.member
    talk.poll()
    assert before == Member(settings=SETTINGS, topics=TOPICS)
