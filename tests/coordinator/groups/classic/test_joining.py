"""Joining a group: ids, new members, the size of a group, and how a rebalance ends."""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.groups.effects import Effects, TimerKey, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.requests import Protocol
from tests.support.groups.classic import LIMITS, RANGE, Machine, assignment, completing, empty, stable, subscription

CHANGED = (Protocol("range", subscription("t", "u")),)
FULL = [f"m{number}" for number in range(LIMITS.members_max)]
SMALL = dataclasses.replace(LIMITS, members_max=2)


def errors(asked) -> list[Error]:
    return [each.answer.error for each in asked]


# -- being admitted -----------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "testValidJoinGroup",
    "testJoinGroupReturnsTheProtocolType",
    "testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs",
)
def test_join_response_has_the_protocol_type_unless_refused():
    machine = Machine()
    leader, follower = machine.admit("a"), machine.admit("b")
    machine.wait(100)
    assert errors([leader, follower]) == [Error.NONE, Error.NONE]
    assert {each.answer.protocol_type for each in (leader, follower)} == {"consumer"}
    assert [len(each.answer.members) for each in (leader, follower)] == [2, 0]
    refused = machine.join("c", protocol_type="connect").answer
    assert (refused.error, refused.protocol_type, refused.protocol_name) == (
        Error.INCONSISTENT_GROUP_PROTOCOL,
        None,
        None,
    )


def test_first_to_join_leads_and_votes_choose_a_strategy_that_all_support():
    machine = Machine()
    one, two, own = (Protocol(name, subscription("t")) for name in ("range", "roundrobin", "own"))
    asked = [machine.admit("z", protocols=(own, one, two)), *(machine.admit(who, protocols=(two, one)) for who in "ab")]
    machine.wait(200)
    assert {(each.answer.leader, each.answer.protocol_name) for each in asked} == {(machine.ids["z"], "roundrobin")}


@pytest.mark.kafka("testJoinGroupSecondJoinInconsistentProtocol")
def test_pending_id_that_joins_without_a_protocol_is_refused_and_may_retry():
    machine = Machine()
    machine.join("a")
    refused = machine.join("a", protocols=()).answer
    assert (refused.error, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, machine.ids["a"])
    joining = machine.join("a")
    machine.wait(50)
    assert (joining.answer.error, joining.answer.generation) == (Error.NONE, 1)


@pytest.mark.kafka("testGenerateRecordsOnNewClassicGroup")
def test_group_is_stored_from_its_first_join_on():
    machine = Machine()
    machine.join("a")
    ((key, record),) = machine.log.items()
    assert (key.group_id, record.generation, record.members) == ("g", 0, ())
    assert machine.successor().state == "Empty"


# -- the initial delay (KIP-134) ----------------------------------------------------------------------------------


@pytest.mark.kafka(
    "shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance",
    "testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance",
    "shouldDelayRebalanceUptoRebalanceTimeout",
    "testDelayRebalanceUptoRebalanceTimeout",
)
@pytest.mark.parametrize(
    ("rebalance_timeout_ms", "comings", "ends_at"), [(150, (0, 49), 100), (100, (0, 0, 51), 100), (150, (0,), 50)]
)
def test_initial_delay_ends_when(rebalance_timeout_ms, comings, ends_at):
    machine = Machine()
    asked = []
    for number, at in enumerate(comings):
        machine.wait(at - machine.now_ms)
        asked.append(machine.join(f"m{number}", returns=False, rebalance_timeout_ms=rebalance_timeout_ms))
    machine.wait(ends_at - 1 - machine.now_ms)
    assert {each.answer for each in asked} == {None}
    machine.wait(1)
    assert {each.answer.generation for each in asked} == {1}


# -- pending ids (KIP-394) ----------------------------------------------------------------------------------------


def rebalancing_with_a_pending_id() -> Machine:
    """a and b, both joining again, and p, an id that has not come back."""
    machine = stable("a", "b")
    machine.join("p", session_timeout_ms=200)
    machine.join("a")
    machine.join("b")
    assert machine.state == "PreparingRebalance"
    return machine


@pytest.mark.kafka("testJoinGroupCompletionWhenPendingMemberJoins")
def test_rebalance_ends_when_the_pending_id_joins():
    machine = rebalancing_with_a_pending_id()
    machine.join("p")
    assert (machine.state, machine.group.generation, len(machine.group.members)) == ("CompletingRebalance", 2, 3)


@pytest.mark.kafka(
    "testJoinGroupCompletionWhenPendingMemberTimesOut", "testHeartbeatExpirationShouldRemovePendingMember"
)
def test_rebalance_ends_when_the_pending_ids_session_expires():
    machine = rebalancing_with_a_pending_id()
    machine.wait(199)
    assert machine.state == "PreparingRebalance"
    machine.wait(1)
    assert (machine.state, machine.group.generation, len(machine.group.members)) == ("CompletingRebalance", 2, 2)
    assert machine.join("p").answer.error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.kafka("testPendingMembersLeavesGroup", "testPendingMembersLeaveGroup")
def test_rebalance_ends_when_the_pending_id_leaves():
    machine = rebalancing_with_a_pending_id()
    assert [left.error for left in machine.leave("p").answer.members] == [Error.NONE]
    assert (machine.state, machine.group.generation, len(machine.group.members)) == ("CompletingRebalance", 2, 2)


@pytest.mark.kafka("testPendingMemberBatchLeaveGroup", "testJoinedMemberPendingMemberBatchLeaveGroup")
def test_members_and_pending_ids_leave_together():
    machine = rebalancing_with_a_pending_id()
    machine.join("q")
    assert [left.error for left in machine.leave("p", "b", "q").answer.members] == [Error.NONE] * 3
    assert (machine.state, list(machine.group.members), machine.group.pending) == (
        "CompletingRebalance",
        [machine.ids["a"]],
        {},
    )


@pytest.mark.kafka("testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember")
def test_unknown_id_in_a_leave_request_does_not_affect_the_others():
    machine = rebalancing_with_a_pending_id()
    left = machine.leave("p", "b", "nobody").answer.members
    assert [each.error for each in left] == [Error.NONE, Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert machine.state == "CompletingRebalance"


@pytest.mark.kafka("testSecondMemberPartiallyJoinAndTimeout")
def test_pending_id_that_never_joins_does_not_affect_a_stable_group():
    machine = stable("a", session_timeout_ms=60_000)
    machine.join("p", session_timeout_ms=200)
    machine.wait(200)
    assert (machine.state, machine.group.generation, machine.group.pending) == ("Stable", 1, {})


@pytest.mark.kafka("testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException")
def test_pending_id_with_an_instance_id_is_a_failure():
    machine = Machine()
    machine.join("a")
    assert machine.join("a", instance_id="i").answer.error is Error.UNKNOWN_SERVER_ERROR
    assert machine.state == "Empty"


# -- new members (KAFKA-7610) -------------------------------------------------------------------------------------


@pytest.mark.kafka("testNewMemberTimeoutCompletion")
def test_new_member_timeout_of_five_minutes_ends_with_its_first_response():
    limits = Limits(initial_rebalance_delay_ms=50)
    machine = stable("a", limits=limits, session_timeout_ms=305_000)
    machine.wait(304_900)
    assert machine.state == "Stable"
    machine.wait(100)
    assert machine.state == "Empty"


@pytest.mark.kafka("testNewMemberFailureAfterJoinGroupCompletion")
def test_new_member_that_fails_before_its_sync_is_removed_by_its_session():
    machine = Machine()
    machine.admit("a", rebalance_timeout_ms=5_000)
    machine.admit("b", session_timeout_ms=200)
    machine.wait(100)
    machine.sync("a", {"a": assignment("t", 0)})
    machine.wait(200)
    assert (machine.state, list(machine.group.members)) == ("PreparingRebalance", [machine.ids["a"]])


@pytest.mark.kafka("testNewMemberFailureAfterSyncGroupCompletion")
def test_new_member_that_fails_after_its_sync_is_removed_by_its_session():
    machine = completing("a", "b", session_timeout_ms=200)
    machine.sync("a", {"a": assignment("t", 0)})
    machine.sync("b")
    machine.wait(150)
    machine.heartbeat("a")
    machine.wait(50)
    assert (machine.state, list(machine.group.members)) == ("PreparingRebalance", [machine.ids["a"]])


# -- group.max.size (KAFKA-7641) ----------------------------------------------------------------------------------


@pytest.mark.kafka("testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember")
def test_more_ids_than_places_are_issued_and_the_last_to_join_is_refused():
    machine = Machine()
    names = [*FULL, "late"]
    assert set(errors([machine.join(name) for name in names])) == {Error.MEMBER_ID_REQUIRED}
    asked = [machine.join(name) for name in names]
    assert (asked[-1].answer.error, asked[-1].answer.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    machine.wait(100)
    assert set(errors(asked[:-1])) == {Error.NONE}
    assert machine.join("late").answer.error is Error.GROUP_MAX_SIZE_REACHED


@pytest.mark.kafka(
    "testDynamicMembersJoinGroupWithMaxSize",
    "testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember",
    "testJoinGroupShouldReceiveErrorIfGroupOverMaxSize",
)
def test_full_group_admits_no_member_while_preparing_completing_and_stable():
    machine = Machine()
    for name in FULL:
        machine.join(name, returns=False)
    refused = [machine.join("late", returns=False)]
    machine.wait(100)
    refused.append(machine.join("late", returns=False))
    for name in FULL:
        machine.sync(name)
    assert machine.state == "Stable"
    refused.append(machine.join("late", returns=False))
    assert errors(refused) == [Error.GROUP_MAX_SIZE_REACHED] * 3
    assert len(machine.group.members) == LIMITS.members_max


@pytest.mark.kafka(
    "testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing",
    "testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing",
)
def test_members_of_a_full_group_rejoin_while_it_rebalances():
    machine = stable(*FULL)
    asked = [machine.join(name, protocols=CHANGED) for name in FULL]
    assert set(errors(asked)) == {Error.NONE}
    assert (machine.group.generation, len(machine.group.members)) == (2, LIMITS.members_max)


@pytest.mark.kafka(
    "testOnLoadedExceedGroupMaxSizeTriggersRebalance",
    "testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize",
    "testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize",
)
def test_loaded_group_that_is_too_large_rebalances_and_the_first_to_rejoin_stay():
    machine = stable(*FULL)
    machine.limits = SMALL
    machine = machine.successor()
    assert machine.state == "PreparingRebalance"
    asked = [machine.join(name) for name in FULL]
    assert errors(asked[2:]) == [Error.GROUP_MAX_SIZE_REACHED] * 2
    machine.wait(500)  # as in 4.1.1, members that are refused do not end the wait
    assert errors(asked[:2]) == [Error.NONE] * 2
    assert (machine.group.generation, len(machine.group.members)) == (2, 2)


# -- the end of a rebalance ---------------------------------------------------------------------------------------


@pytest.mark.kafka("testGenerationIdIncrementsOnRebalance")
def test_generation_grows_by_one_with_each_rebalance():
    machine = stable("a")
    for generation in (2, 3):
        assert machine.join("a").answer.generation == generation
        machine.sync("a")


def test_members_keep_their_ids_in_a_rebalance_and_get_new_ones_when_they_restart():
    machine = stable("a", "b")
    before = dict(machine.ids)
    machine.join("b", protocols=CHANGED)
    rejoined = machine.join("a")
    assert {member.member_id for member in rejoined.answer.members} == set(before.values())
    machine.join("a", new=True)
    assert machine.ids["a"] not in before.values()
    assert machine.ids["b"] == before["b"]


def test_group_that_all_members_leave_during_a_rebalance_is_empty_and_not_dead():
    machine = stable("a", "b")
    machine.join("b", protocols=CHANGED)
    assert machine.state == "PreparingRebalance"
    machine.leave("a", "b")
    assert (machine.state, machine.successor().state) == ("Empty", "Empty")


@pytest.mark.kafka("testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout")
def test_leader_that_rejoins_in_time_stays_leader():
    machine = stable("a", "b", session_timeout_ms=60_000)
    follower = machine.join("b", protocols=CHANGED)
    machine.wait(499)
    leader = machine.join("a")
    assert {each.answer.leader for each in (leader, follower)} == {machine.ids["a"]}
    assert len(leader.answer.members) == 2


@pytest.mark.kafka(
    "testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout",
    "testCompleteJoinRemoveNotYetRejoinedDynamicMembers",
)
def test_leader_that_does_not_rejoin_in_time_is_dropped_and_another_leads():
    machine = stable("a", "b", "c", session_timeout_ms=60_000)
    asked = [machine.join(name, protocols=CHANGED) for name in "bc"]
    machine.wait(500)
    assert {each.answer.leader for each in asked} == {machine.ids["b"]}
    assert [len(each.answer.members) for each in asked] == [2, 0]
    assert machine.heartbeat("a").answer.error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.kafka("testRebalanceCompletesBeforeMemberJoins")
def test_member_that_rejoins_after_the_rebalance_is_unknown_and_starts_another():
    machine = stable("a", "b", session_timeout_ms=60_000)
    machine.join("a")
    machine.wait(500)
    machine.sync("a", {"a": assignment("t", 0, 1)})
    assert (machine.state, machine.group.generation) == ("Stable", 2)
    assert machine.join("b", protocols=RANGE).answer.error is Error.UNKNOWN_MEMBER_ID
    machine.join("b", new=True)
    machine.join("b")
    assert machine.heartbeat("a").answer.error is Error.REBALANCE_IN_PROGRESS
    assert machine.join("a").answer.generation == 3


@pytest.mark.kafka("testCompleteJoinPhaseInEmptyStateSkipsRebalance")
def test_join_timer_outside_a_rebalance_changes_nothing():
    machine = empty()
    generation = machine.group.generation
    assert machine.subject.timer_fired(TimerKey(TimerKind.JOIN, "g"), machine.now) == Effects()
    assert (machine.state, machine.group.generation) == ("Empty", generation)
