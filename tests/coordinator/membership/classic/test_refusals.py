"""What errors do to a member: every code, in the states where it can arrive."""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import ALIVE, MemberState
from coordinator.membership.classic.reactions import REACTIONS, reaction
from coordinator.membership.classic.table import TABLE, step
from coordinator.membership.effects import AbandonCoordinator, Fail, FindCoordinator, Identity, Lose
from coordinator.membership.events import UNANSWERED, Closed, CoordinatorUnknown, Refused, Stopped, Ticked
from tests.coordinator.membership.classic.membership import P0, P1, SETTINGS, Talk

OWNED = frozenset({P0, P1})


def joining() -> Talk:
    talk = Talk()
    talk.poll()
    talk.found()
    talk.say(events.MemberIdGiven(1, "m-1"))
    return talk


def syncing() -> Talk:
    talk = joining()
    talk.joined()
    return talk


def stopping() -> Talk:
    talk = Talk().stable()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    return talk


# -- the identity is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit"])
def test_unknown_member_id_drops_id_and_generation_and_loses_the_partitions(api):
    talk = Talk().stable()
    assert talk.refused(api, "UNKNOWN_MEMBER_ID") == (Lose(OWNED),)
    assert talk.state is MemberState.UNJOINED
    assert (talk.member.member_id, talk.identity, talk.member.owned) == ("", None, frozenset())
    assert talk.last("partitions_lost").fields["generation"] == 1
    assert talk.last("partitions_lost").member_id == "m-1"
    assert talk.poll() == (effects.SendJoin(stamp=3, member_id=""),)
    assert talk.last("rebalance_started").fields["trigger"] == "member-forgotten"


@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit"])
def test_illegal_generation_drops_the_generation_and_keeps_the_member_id(api):
    """KAFKA-13419."""
    talk = Talk().stable()
    assert talk.refused(api, "ILLEGAL_GENERATION") == (Lose(OWNED),)
    assert (talk.member.member_id, talk.identity) == ("m-1", None)
    assert talk.poll() == (effects.SendJoin(stamp=3, member_id="m-1"),)
    assert "partitions_revoked" not in talk.kinds()


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"])
def test_response_to_a_request_of_an_earlier_identity_changes_nothing(error):
    """KAFKA-9823: the refusal for the old generation arrives after the rejoin."""
    talk = Talk().stable()
    old = talk.member.stamp
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    talk.say(Stopped())
    talk.joined(generation=2)
    talk.synced(P0)
    talk.poll()
    talk.resumed()
    before = talk.member
    assert talk.refused("Heartbeat", error, stamp=old) == ()
    assert talk.member == before


def test_unknown_member_id_on_a_join_asks_for_a_new_id_at_once():
    talk = joining()
    assert talk.refused("JoinGroup", "UNKNOWN_MEMBER_ID") == (effects.SendJoin(stamp=4, member_id=""),)
    assert talk.kinds()[-3:] == ["attempt_ended", "attempt_started", "join"]


def test_unknown_member_id_on_a_join_without_an_id_waits_for_the_backoff():
    talk = Talk()
    talk.poll()
    talk.found()
    assert talk.refused("JoinGroup", "UNKNOWN_MEMBER_ID") == ()
    assert talk.state is MemberState.SEEKING
    assert talk.due_in_ms() == 100


def test_illegal_generation_on_a_sync_rejoins_under_the_same_id():
    talk = syncing()
    assert talk.refused("SyncGroup", "ILLEGAL_GENERATION") == (effects.SendJoin(stamp=4, member_id="m-1"),)


def test_identity_refused_while_stopping_turns_the_revocation_into_a_loss():
    talk = stopping()
    assert talk.refused("OffsetCommit", "UNKNOWN_MEMBER_ID") == ()
    assert talk.state is MemberState.STOPPING
    assert talk.identity is None
    talk.say(Stopped())
    assert talk.kinds()[-2:] == ["partitions_lost", "join"]
    assert "partitions_revoked" not in talk.kinds()


def test_identity_refused_while_closing_leaves_nothing():
    talk = Talk().stable()
    talk.say(Closed())
    talk.refused("OffsetCommit", "UNKNOWN_MEMBER_ID")
    assert talk.say(Stopped()) == ()
    assert talk.state is MemberState.LEFT
    assert "partitions_lost" in talk.kinds()


def test_identity_refused_before_taking_over_ends_the_rebalance():
    talk = syncing()
    talk.synced(P0)
    talk.refused("Heartbeat", "UNKNOWN_MEMBER_ID")
    assert talk.state is MemberState.UNJOINED
    assert talk.last("rebalance_ended").fields["outcome"] == "superseded"
    assert "partitions_lost" not in talk.kinds()


# -- the group rebalances -----------------------------------------------------------------------------------------


def test_rebalance_in_progress_on_a_sync_rejoins_at_once_and_keeps_the_identity():
    talk = syncing()
    assert talk.refused("SyncGroup", "REBALANCE_IN_PROGRESS") == (effects.SendJoin(stamp=3, member_id="m-1"),)
    assert talk.identity == Identity("m-1", 1)
    assert talk.last("attempt_started").fields["attempt"] == 2


def test_rebalance_in_progress_on_a_heartbeat_before_the_sync_is_ignored():
    talk = syncing()
    assert talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS") == ()
    assert talk.state is MemberState.SYNCING


def test_rebalance_in_progress_on_a_commit_makes_the_member_rejoin():
    talk = Talk().stable()
    talk.refused("OffsetCommit", "REBALANCE_IN_PROGRESS")
    assert talk.state is MemberState.REJOIN_NEEDED
    assert talk.member.owned == OWNED


# -- the coordinator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", UNANSWERED])
@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit", "OffsetFetch"])
def test_lost_coordinator_is_looked_up_again_and_costs_no_partition(api, error):
    talk = Talk().stable()
    assert talk.refused(api, error) == (AbandonCoordinator(), FindCoordinator())
    assert talk.state is MemberState.STABLE
    assert talk.member.owned == OWNED
    assert talk.found(2) == ()
    assert talk.due_in_ms() == 0  # a heartbeat asks it at once whether it knows the member
    assert talk.say(Ticked()) == (effects.SendHeartbeat(1, Identity("m-1", 1)),)


def test_lookup_that_fails_is_repeated_after_the_backoff():
    talk = Talk().stable()
    talk.refused("Heartbeat", "NOT_COORDINATOR")
    assert talk.say(CoordinatorUnknown("COORDINATOR_NOT_AVAILABLE")) == ()
    assert talk.due_in_ms() == 100
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.after(100) == ()  # one lookup at a time


def test_lookup_that_fails_before_the_first_join_is_a_backoff():
    talk = Talk()
    talk.poll()
    talk.say(CoordinatorUnknown("no broker answers"))
    assert talk.state is MemberState.SEEKING
    assert talk.kinds()[-1] == "backoff"
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.kinds()[-1] == "join"


@pytest.mark.parametrize(("api", "start"), [("JoinGroup", joining), ("SyncGroup", syncing)])
@pytest.mark.parametrize("error", ["NOT_COORDINATOR", UNANSWERED])
def test_lost_coordinator_with_a_parked_request_starts_over_after_the_backoff(api, start, error):
    talk = start()
    assert talk.refused(api, error) == (AbandonCoordinator(),)
    assert talk.state is MemberState.SEEKING
    assert talk.last("attempt_ended").fields["outcome"] == "unavailable"
    assert talk.after(100) == (FindCoordinator(),)
    assert talk.found(2) == (effects.SendJoin(stamp=talk.member.stamp, member_id="m-1"),)


@pytest.mark.parametrize(("api", "start"), [("JoinGroup", joining), ("SyncGroup", syncing)])
def test_loading_coordinator_is_asked_again_after_the_backoff(api, start):
    talk = start()
    assert talk.refused(api, "COORDINATOR_LOAD_IN_PROGRESS") == ()
    assert talk.after(99) == ()
    assert talk.after(1) == (effects.SendJoin(stamp=talk.member.stamp, member_id="m-1"),)


def test_loading_coordinator_delays_the_next_heartbeat_only():
    talk = Talk().stable()
    talk.after(1000)
    talk.refused("Heartbeat", "COORDINATOR_LOAD_IN_PROGRESS")
    assert talk.state is MemberState.STABLE
    assert talk.due_in_ms() == 100


# -- the member's own timers ------------------------------------------------------------------------------------------


def test_session_expires_by_the_members_clock_counted_from_sending_the_last_answered_heartbeat():
    talk = Talk().stable()
    talk.after(1000)
    talk.clock.advance_ms(400)
    talk.heartbeat_answered(sent_ms_ago=400)
    talk.after(600)
    assert talk.member.state is MemberState.STABLE
    assert talk.after(1999) == ()
    assert talk.after(1) == (AbandonCoordinator(), Lose(OWNED))
    assert talk.state is MemberState.UNJOINED
    assert talk.member.member_id == ""
    assert talk.kinds()[-2:] == ["partitions_lost", "rebalance_triggered"]
    assert talk.poll() == (FindCoordinator(),)


def test_refusal_to_rejoin_counts_as_contact():
    talk = Talk().stable()
    talk.after(2900)
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS", sent_ms_ago=0)
    assert talk.after(2900) != ()  # a heartbeat, no loss
    assert talk.state is MemberState.REJOIN_NEEDED


def test_session_goes_on_during_the_coordinator_lookup():
    talk = Talk().stable()
    talk.refused("Heartbeat", "NOT_COORDINATOR")
    talk.say(CoordinatorUnknown("nobody answers"))
    talk.after(3000)
    assert talk.state is MemberState.UNJOINED
    assert "partitions_lost" in talk.kinds()


def test_session_that_ends_while_stopping_turns_the_revocation_into_a_loss():
    talk = stopping()
    assert talk.after(3000) == (AbandonCoordinator(),)
    assert talk.state is MemberState.STOPPING
    assert talk.say(Stopped()) == (FindCoordinator(),)
    assert talk.kinds()[-2:] == ["partitions_lost", "join"]


def test_session_that_ends_while_deciding_starts_over():
    talk = joining()
    talk.joined(leader="m-1")
    assert talk.state is MemberState.DECIDING
    assert talk.after(3000)[0] == AbandonCoordinator()
    assert talk.state is MemberState.SEEKING
    assert talk.member.member_id == ""


def test_member_that_does_not_poll_leaves_and_loses():
    """KIP-62: max.poll.interval.ms."""
    talk = Talk().stable()
    for _ in range(9):
        talk.after(1000)
        talk.heartbeat_answered()
    talk.clock.advance_ms(1000)
    assert talk.say(Ticked()) == (effects.SendLeave("m-1"), Lose(OWNED))
    assert talk.state is MemberState.UNJOINED
    assert talk.due_in_ms() is None  # a member that is not polled does not rejoin either
    assert talk.poll() == (effects.SendJoin(stamp=3, member_id=""),)
    assert talk.last("rebalance_started").fields["trigger"] == "poll-overdue"


def test_polls_keep_the_member_in_the_group():
    talk = Talk().stable()
    for _ in range(25):
        talk.after(1000)
        talk.heartbeat_answered()
        talk.poll()
    assert talk.state is MemberState.STABLE


# -- for good -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        "FENCED_INSTANCE_ID",
        "GROUP_MAX_SIZE_REACHED",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_SESSION_TIMEOUT",
        "SURPRISE",
    ],
)
def test_permanent_error_fails_the_member(error):
    talk = joining()
    assert talk.refused("JoinGroup", error) == (Fail("JoinGroup", error),)
    assert talk.state is MemberState.FAILED
    assert talk.kinds()[-3:] == ["attempt_ended", "rebalance_ended", "member_refused"]
    assert talk.poll() == ()
    assert talk.say(Closed()) == ()
    assert talk.state is MemberState.LEFT


def test_unreadable_assignment_fails_the_member_and_it_leaves():
    """The Java client, too, raises in every poll, and leaves when the application closes it."""
    talk = syncing()
    assert talk.refused("SyncGroup", "assignment: cut short") == (
        effects.SendLeave("m-1"),
        Fail("SyncGroup", "assignment: cut short"),
    )
    assert talk.state is MemberState.FAILED


def test_lookup_that_is_refused_fails_the_member():
    talk = Talk()
    talk.poll()
    event = Refused(stamp=talk.member.stamp, api="FindCoordinator", error="INVALID_GROUP_ID", sent_ns=0)
    assert talk.say(event) == (Fail("FindCoordinator", "INVALID_GROUP_ID"),)
    assert talk.state is MemberState.FAILED


def test_fenced_member_loses_what_it_owned():
    talk = Talk().stable()
    assert talk.refused("Heartbeat", "FENCED_INSTANCE_ID") == (Lose(OWNED), Fail("Heartbeat", "FENCED_INSTANCE_ID"))


# -- the tables -------------------------------------------------------------------------------------------------------


def test_every_state_has_a_row():
    assert set(TABLE) == set(MemberState)


def test_every_reaction_is_known_where_a_member_is_in_the_group():
    for event in set(REACTIONS.values()):
        for state in (MemberState.STABLE, MemberState.REJOIN_NEEDED, MemberState.STOPPING):
            assert event in TABLE[state], (event, state)


def test_commit_error_that_concerns_only_its_caller_is_not_an_event():
    for error in ("OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_LOAD_IN_PROGRESS"):
        assert reaction("OffsetCommit", error, stamp=1, sent_ns=0) is None


def test_states_with_an_identity_are_the_ones_that_tick_and_those_that_look_for_the_coordinator():
    ticking = {state for state, row in TABLE.items() if Ticked in row}
    assert ticking == ALIVE | {MemberState.SEEKING, MemberState.CLOSING}


def test_event_that_a_row_does_not_name_changes_nothing():
    talk = Talk()
    member, wanted = step(talk.member, Stopped(), 0)
    assert (member, wanted) == (talk.member, ())


# -- faults that the Java client had -------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit"])
def test_before_3_2_an_illegal_generation_cost_the_member_id_too(api):
    """KAFKA-13419: it joins as a new member, beside its former self, whose session goes on."""
    talk = Talk(dataclasses.replace(SETTINGS, forgets_id_with_generation=True)).stable()
    assert talk.refused(api, "ILLEGAL_GENERATION") == (Lose(OWNED),)
    assert talk.poll() == (effects.SendJoin(stamp=3, member_id=""),)


@pytest.mark.parametrize("faulty", [False, True])
def test_in_3_3_a_sync_refused_by_the_next_rebalance_cost_all_partitions(faulty):
    """KAFKA-13891: otherwise a cooperative member keeps what it has, and claims it in the generation that it is of."""
    talk = Talk(dataclasses.replace(SETTINGS, cooperative=True, loses_all_between_generations=faulty)).stable()
    talk.refused("Heartbeat", "REBALANCE_IN_PROGRESS")
    talk.poll()
    talk.say(Stopped())
    talk.joined(generation=2)
    refused = talk.refused("SyncGroup", "REBALANCE_IN_PROGRESS")
    assert (Lose(OWNED) in refused) is faulty
    assert any(isinstance(effect, effects.SendJoin) and effect.member_id == "m-1" for effect in refused)
    assert talk.member.owned == (frozenset() if faulty else OWNED)
