"""Static members (KIP-345, KIP-814): which keep their places, which are fenced, and when there is a rebalance.

The group has members l, the leader, and f, both static; `new=True` is a restarted process, which has lost its id.
"""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.groups.classic.states import GroupState
from coordinator.groups.errors import Error
from coordinator.groups.requests import Protocol
from tests.support.groups.classic import LIMITS, Machine, assignment, subscription

INSTANCES = {"l": "L", "f": "F"}
BOTH = (Protocol("range", subscription("t")), Protocol("roundrobin", subscription("t")))
ROUNDROBIN_ONLY = BOTH[1:]
OTHER_TOPICS = (Protocol("range", subscription("t", "u")), Protocol("roundrobin", subscription("t", "u")))


def join(machine, who, **fields):
    return machine.join(who, **{"instance_id": INSTANCES[who], "protocols": BOTH, **fields})


def sync(machine, who, given=None, **fields):
    return machine.sync(who, given, instance_id=INSTANCES[who], **fields)


def completing(**fields) -> Machine:
    machine = Machine()
    for who in INSTANCES:
        join(machine, who, **fields)
    machine.wait(100)
    assert (machine.state, machine.group.leader) == ("CompletingRebalance", machine.ids["l"])
    return machine


def stable(**fields) -> Machine:
    machine = completing(**fields)
    sync(machine, "l", {"l": assignment("t", 0), "f": assignment("t", 1)})
    sync(machine, "f")
    assert (machine.state, machine.group.generation) == ("Stable", 1)
    return machine


def members(answer) -> set[str]:
    return {member.member_id for member in answer.members}


# -- joining ------------------------------------------------------------------------------------------------------


@pytest.mark.kafka("staticMemberJoinAsFirstMember", "testStaticMemberJoinAsFirstMember")
def test_static_member_is_admitted_at_once_and_named_by_its_instance():
    machine = Machine()
    joining = join(machine, "l")
    assert joining.waits
    machine.wait(50)
    answer = joining.answer
    assert (answer.error, answer.generation, answer.leader) == (Error.NONE, 1, answer.member_id)
    assert answer.member_id.startswith("L-")
    assert [member.instance_id for member in answer.members] == ["L"]


@pytest.mark.kafka("testStaticMembersJoinGroupWithMaxSize")
def test_static_members_beyond_the_group_size_are_refused_and_others_may_rejoin():
    machine = Machine()
    names = [f"s{number}" for number in range(LIMITS.members_max + 1)]
    asked = [machine.join(name, instance_id=name) for name in names]
    assert asked[-1].answer.error is Error.GROUP_MAX_SIZE_REACHED
    machine.wait(100)
    assert {each.answer.error for each in asked[:-1]} == {Error.NONE}
    assert machine.join(names[-1], instance_id=names[-1]).answer.error is Error.GROUP_MAX_SIZE_REACHED
    assert machine.join(names[1], instance_id=names[1]).answer.error is Error.NONE


def test_restart_in_a_full_group_is_refused_and_the_old_process_goes_on():
    """Kafka counts places before it looks at the instance (recorded: table/static-restart-in-full-group)."""
    machine = stable()
    for name in ("c", "d"):
        machine.join(name, returns=False, protocols=BOTH)
    for who in INSTANCES:
        join(machine, who)
    assert (len(machine.group.members), machine.group.generation) == (LIMITS.members_max, 2)
    assert join(machine, "f", new=True).answer.error is Error.GROUP_MAX_SIZE_REACHED
    assert machine.heartbeat("f", instance_id="F").answer.error is Error.NONE


@pytest.mark.kafka("shouldGetDifferentStaticMemberIdAfterEachRejoin", "testGetDifferentStaticMemberIdAfterEachRejoin")
def test_static_member_has_another_id_after_each_restart():
    machine = stable()
    ids = [join(machine, "f", new=True).answer.member_id for _ in range(5)]
    assert len({*ids, machine.ids["l"]}) == 6
    assert (machine.state, machine.group.generation) == ("Stable", 1)


# -- a restart in Stable ------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "staticMemberRejoinAsFollowerWithUnknownMemberId",
    "testStaticMemberRejoinAsFollowerWithUnknownMemberId",
    "testReplaceStaticMemberInStableStateNoError",
)
def test_restarted_follower_resumes_its_assignment_without_a_rebalance():
    machine = stable()
    former = machine.ids["f"]
    answer = join(machine, "f", new=True).answer
    assert (answer.error, answer.generation, answer.leader) == (Error.NONE, 1, machine.ids["l"])
    assert not answer.members
    assert answer.member_id not in {former, ""}
    assert sync(machine, "f", member_id=former).answer.error is Error.FENCED_INSTANCE_ID
    assert sync(machine, "f").answer.assignment == assignment("t", 1)
    assert (machine.state, machine.group.generation) == ("Stable", 1)


@pytest.mark.kafka(
    "staticMemberRejoinWithLeaderIdAndUnknownMemberId",
    "testStaticMemberRejoinWithLeaderIdAndUnknownMemberId",
    "testReplaceStaticMemberInStableStateSucceeds",
)
def test_restarted_leader_of_v9_stays_leader_and_skips_the_assignment():
    machine = stable()
    answer = join(machine, "l", new=True, may_skip_assignment=True).answer
    assert (answer.error, answer.generation, answer.leader) == (Error.NONE, 1, answer.member_id)
    assert answer.skip_assignment
    assert members(answer) == {machine.ids["l"], machine.ids["f"]}
    assert sync(machine, "l").answer.assignment == assignment("t", 0)
    assert (machine.state, machine.group.leader) == ("Stable", machine.ids["l"])


@pytest.mark.kafka(
    "staticMemberRejoinWithLeaderIdAndUnknownMemberId", "testStaticMemberRejoinWithLeaderIdAndUnknownMemberId"
)
def test_restarted_leader_up_to_v8_gets_the_old_leaders_id():
    machine = stable()
    former = machine.ids["l"]
    answer = join(machine, "l", new=True).answer
    assert (answer.leader, answer.members, answer.skip_assignment) == (former, (), False)
    assert machine.group.leader == machine.ids["l"] != former


@pytest.mark.kafka(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged",
    "testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged",
    "staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange",
)
def test_restart_with_other_topics_and_timeouts_is_stored_but_costs_no_rebalance():
    machine = stable()
    answer = join(
        machine, "f", new=True, protocols=OTHER_TOPICS, session_timeout_ms=20_000, rebalance_timeout_ms=700
    ).answer
    assert (answer.error, answer.generation, machine.state) == (Error.NONE, 1, "Stable")
    (record,) = machine.log.values()
    profile, given = next(member for member in record.members if member.member_id == answer.member_id)
    assert profile.subscription == subscription("t", "u")
    assert (profile.session_timeout_ms, profile.rebalance_timeout_ms) == (20_000, 700)
    assert given == assignment("t", 1)


@pytest.mark.kafka(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure",
    "testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure",
    "staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange",
    "testReplaceStaticMemberInStableStateErrors",
)
@pytest.mark.parametrize("who", INSTANCES)
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
def test_restart_that_cannot_be_stored_is_undone(who, error):
    machine = stable()
    former = dataclasses.replace(machine.group.members[machine.ids[who]])
    leader = machine.group.leader
    machine.hold()
    joining = join(machine, who, new=True, protocols=OTHER_TOPICS, session_timeout_ms=20_000, rebalance_timeout_ms=700)
    assert joining.waits
    machine.fail(error)
    assert (joining.answer.error, joining.answer.member_id) == (error, "")
    after = machine.group.members[machine.ids[who]]
    assert after.protocols == former.protocols
    assert (after.session_timeout_ms, after.rebalance_timeout_ms) == (10_000, 500)
    assert after.assignment == former.assignment
    assert (machine.state, machine.group.leader) == ("Stable", leader)
    assert machine.heartbeat(who, instance_id=INSTANCES[who]).answer.error is Error.NONE


@pytest.mark.kafka(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged",
    "testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged",
    "testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance",
)
def test_restart_that_changes_the_elected_protocol_costs_a_rebalance():
    machine = stable()
    restarted = join(machine, "f", new=True, protocols=ROUNDROBIN_ONLY)
    assert (restarted.answer, machine.state) == (None, "PreparingRebalance")
    leader = join(machine, "l")
    assert (leader.answer.generation, leader.answer.protocol_name) == (2, "roundrobin")
    assert members(leader.answer) == {machine.ids["l"], restarted.answer.member_id}


def test_restarted_member_has_a_session_timer_although_its_session_ended_during_the_write():
    """The expiry is ignored while its JoinGroup waits; with the answer a new session begins."""
    machine = stable()
    machine.hold()
    restarted = join(machine, "f", new=True)

    def pass_session():
        for _ in range(2):
            machine.wait(5_001)
            assert machine.heartbeat("l", instance_id="L").answer.error is Error.NONE

    pass_session()
    machine.land()
    member_id = restarted.answer.member_id
    assert (restarted.answer.error, machine.state) == (Error.NONE, "Stable")
    machine.wait(5_001)
    machine.heartbeat("l", instance_id="L")
    assert member_id in machine.group.members
    machine.wait(5_001)
    assert member_id not in machine.group.members


# -- a member that knows its id -----------------------------------------------------------------------------------


@pytest.mark.kafka("staticMemberRejoinWithKnownMemberId", "testStaticMemberRejoinWithKnownMemberId")
def test_static_member_that_joins_twice_gets_the_same_answer():
    machine = completing()
    answer = join(machine, "l").answer
    assert (answer.error, answer.generation, answer.member_id) == (Error.NONE, 1, machine.ids["l"])
    assert sync(machine, "l", {"l": assignment("t", 0)}).answer.assignment == assignment("t", 0)
    assert (machine.state, machine.group.generation) == ("Stable", 1)


@pytest.mark.kafka(
    "staticMemberRejoinWithLeaderIdAndKnownMemberId", "testStaticMemberRejoinWithLeaderIdAndKnownMemberId"
)
def test_running_leader_that_rejoins_starts_a_rebalance():
    machine = stable()
    leader = join(machine, "l")
    assert (leader.answer, machine.state) == (None, "PreparingRebalance")
    machine.wait(500)
    assert (leader.answer.generation, leader.answer.leader) == (2, machine.ids["l"])
    assert members(leader.answer) == {machine.ids["l"], machine.ids["f"]}


@pytest.mark.kafka(
    "staticMemberRejoinWithFollowerIdAndChangeOfProtocol", "testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol"
)
def test_running_follower_with_other_protocols_starts_a_rebalance_and_leads_if_the_leader_stays_away():
    machine = stable()
    follower = join(machine, "f", protocols=ROUNDROBIN_ONLY)
    assert (follower.answer, machine.state) == (None, "PreparingRebalance")
    machine.wait(500)
    assert (follower.answer.generation, follower.answer.leader) == (2, machine.ids["f"])
    assert members(follower.answer) == {machine.ids["l"], machine.ids["f"]}


@pytest.mark.kafka(
    "staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeOfProtocol",
    "testStaticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol",
)
def test_follower_restarts_with_other_protocols_while_the_leader_rejoins():
    machine = stable()
    former = machine.ids["f"]
    leader = join(machine, "l")
    follower = join(machine, "f", new=True, protocols=ROUNDROBIN_ONLY)
    assert [each.answer.generation for each in (leader, follower)] == [2, 2]
    assert {each.answer.protocol_name for each in (leader, follower)} == {"roundrobin"}
    assert members(leader.answer) == {machine.ids["l"], machine.ids["f"]}
    assert machine.heartbeat("f", member_id=former, instance_id="F").answer.error is Error.FENCED_INSTANCE_ID


@pytest.mark.kafka(
    "staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup", "testStaticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup"
)
def test_leader_that_rejoins_an_emptied_group_under_its_id_is_unknown():
    machine = stable()
    machine.leave("l", "f")
    assert machine.state == "Empty"
    answer = join(machine, "l").answer
    assert (answer.error, answer.member_id, answer.generation) == (Error.UNKNOWN_MEMBER_ID, machine.ids["l"], -1)


@pytest.mark.kafka(
    "staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup", "testStaticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup"
)
def test_leader_that_rejoins_a_dead_group_gets_coordinator_not_available():
    machine = stable()
    machine.unload()
    assert join(machine, "l").answer.error is Error.COORDINATOR_NOT_AVAILABLE


@pytest.mark.kafka(
    "staticMemberReJoinWithIllegalStateAsUnknownMember", "testStaticMemberReJoinWithIllegalStateAsUnknownMember"
)
def test_empty_group_with_an_instance_is_an_internal_error():
    machine = stable()
    machine.group.state = GroupState.EMPTY
    with pytest.raises(AssertionError, match="cannot be moved from Empty by MEMBER_REPLACED"):
        join(machine, "f", new=True)


# -- two processes with one instance id ---------------------------------------------------------------------------


@pytest.mark.kafka("staticMemberFenceDuplicateRejoinedFollower", "testStaticMemberFenceDuplicateRejoinedFollower")
def test_old_process_is_fenced_when_it_rejoins_after_the_new_one():
    machine = stable()
    former = machine.ids["f"]
    leader = join(machine, "l")
    follower = join(machine, "f", new=True)
    assert [each.answer.error for each in (leader, follower)] == [Error.NONE, Error.NONE]
    refused = join(machine, "f", member_id=former).answer
    assert (refused.error, refused.member_id, refused.generation) == (Error.FENCED_INSTANCE_ID, former, -1)
    assert machine.state == "CompletingRebalance"


@pytest.mark.kafka(
    "staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged",
    "testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged",
    "testJoinGroupReplaceStaticMember",
)
def test_old_process_with_a_parked_join_is_fenced_by_the_new_one():
    machine = stable()
    old = join(machine, "f", protocols=OTHER_TOPICS)
    new = join(machine, "f", new=True)
    assert old.answer.error is Error.FENCED_INSTANCE_ID
    leader = join(machine, "l")
    assert (new.answer.generation, leader.answer.generation) == (2, 2)
    assert len(leader.answer.members) == 2


@pytest.mark.kafka(
    "staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged",
    "testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged",
)
def test_old_process_with_a_parked_sync_is_fenced_and_the_group_rebalances():
    machine = completing()
    old = sync(machine, "f")
    new = join(machine, "f", new=True)
    assert old.answer.error is Error.FENCED_INSTANCE_ID
    assert (new.answer, machine.state) == (None, "PreparingRebalance")
    leader = join(machine, "l")
    assert members(leader.answer) == {machine.ids["l"], machine.ids["f"]}
    assert new.answer.generation == 2


# -- members that do not return -----------------------------------------------------------------------------------


@pytest.mark.kafka(
    "testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout",
    "testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout",
)
@pytest.mark.parametrize(("comes", "stays_away"), [("l", "f"), ("f", "l")])
def test_static_member_that_misses_a_rebalance_stays_and_is_assigned_to(comes, stays_away):
    machine = stable()
    joining = join(machine, comes, protocols=OTHER_TOPICS)
    machine.wait(499)
    assert joining.waits
    machine.wait(1)
    assert (joining.answer.generation, joining.answer.leader) == (2, machine.ids[comes])
    assert machine.ids[stays_away] in members(joining.answer)


@pytest.mark.kafka(
    "testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember",
    "testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase",
)
def test_rebalance_that_no_static_member_joins_waits_until_their_sessions_end():
    machine = stable(session_timeout_ms=1_300)
    machine.join("d", returns=False, protocols=BOTH, rebalance_timeout_ms=500)
    machine.leave(next(id_ for id_ in machine.group.members if id_.startswith("d-")))
    for _ in range(2):
        machine.wait(500)
        assert (machine.state, machine.group.generation, len(machine.group.members)) == ("PreparingRebalance", 1, 2)
    machine.wait(500)
    assert (machine.state, machine.group.generation, machine.timers()) == ("Empty", 2, {})


# -- leaving by instance id ---------------------------------------------------------------------------------------


def left(asked) -> list[Error]:
    return [member.error for member in asked.answer.members]


@pytest.mark.kafka("testStaticMembersValidBatchLeaveGroup")
def test_administrator_removes_all_instances_with_one_rebalance():
    machine = stable()
    assert left(machine.remove_instance("L", "F")) == [Error.NONE, Error.NONE]
    assert (machine.state, machine.group.generation, machine.group.instances) == ("Empty", 2, {})


@pytest.mark.kafka("testStaticMembersUnknownGroupBatchLeaveGroup", "testStaticMembersLeaveUnknownGroup")
def test_instances_of_a_nonexistent_group_are_unknown():
    machine = Machine()
    assert left(machine.remove_instance("L", "F")) == [Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_MEMBER_ID]


@pytest.mark.kafka("testStaticMembersFencedInstanceBatchLeaveGroup")
def test_leave_with_another_members_instance_is_fenced_and_the_rest_leave():
    machine = stable()
    asked = machine.leave("l", "f", instance_ids={"l": "F", "f": "F"})
    assert left(asked) == [Error.FENCED_INSTANCE_ID, Error.NONE]
    assert list(machine.group.instances) == ["L"]


@pytest.mark.kafka("testStaticMembersUnknownInstanceBatchLeaveGroup")
def test_unknown_instance_in_a_leave_request_does_not_affect_the_others():
    machine = stable()
    assert left(machine.remove_instance("nobody", "F")) == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert (machine.state, list(machine.group.instances)) == ("PreparingRebalance", ["L"])


@pytest.mark.kafka("testDescribeGroupStableForStaticMember")
def test_description_shows_the_instances():
    seen = stable().subject.describe("g")
    assert [(member.instance_id, bool(member.assignment)) for member in seen.members] == [("L", True), ("F", True)]
    assert (seen.state.value, seen.protocol_name) == ("Stable", "range")
