"""The sync phase and the sessions: which requests are due by when, and which of them keep a member alive."""

from __future__ import annotations

import pytest

from coordinator.groups.effects import Effects, TimerKey, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.requests import Protocol
from tests.support.groups.classic import Machine, assignment, completing, stable, subscription

CHANGED = (Protocol("range", subscription("t", "u")),)
LONG = {"session_timeout_ms": 60_000}


def session_timer(machine: Machine, who: str) -> TimerKey:
    return TimerKey(TimerKind.SESSION, "g", machine.ids[who])


# -- SyncGroup ----------------------------------------------------------------------------------------------------


@pytest.mark.kafka("testSyncGroupEmptyAssignment")
def test_leader_that_assigns_nothing_makes_the_group_stable_with_empty_assignments():
    machine = completing("a", "b")
    follower, leader = machine.sync("b"), machine.sync("a")
    assert [(each.answer.error, each.answer.assignment) for each in (leader, follower)] == [(Error.NONE, b"")] * 2
    assert machine.state == "Stable"


@pytest.mark.kafka("testSyncGroupFollowerAfterLeader")
def test_follower_that_syncs_after_the_leader_is_answered_at_once():
    machine = completing("a", "b")
    machine.sync("a", {"a": assignment("t", 0), "b": assignment("t", 1)})
    assert machine.sync("b").answer.assignment == assignment("t", 1)


@pytest.mark.kafka("testSyncGroupLeaderAfterFollower")
def test_follower_that_syncs_before_the_leader_waits_for_it():
    machine = completing("a", "b")
    follower = machine.sync("b")
    assert follower.waits
    machine.sync("a", {"a": assignment("t", 0), "b": assignment("t", 1)})
    assert follower.answer.assignment == assignment("t", 1)


@pytest.mark.kafka("testLeaderFailureInSyncGroup")
def test_crash_of_the_leader_before_its_sync_causes_a_rebalance():
    machine = Machine()
    machine.admit("a", session_timeout_ms=200)
    machine.admit("b")
    machine.wait(100)
    follower = machine.sync("b")
    machine.wait(200)
    assert (follower.answer.error, machine.state) == (Error.REBALANCE_IN_PROGRESS, "PreparingRebalance")
    answer = machine.join("b").answer
    assert (answer.generation, answer.leader, len(answer.members)) == (2, machine.ids["b"], 1)


@pytest.mark.kafka(
    "testRebalanceTimesOutWhenSyncRequestIsNotReceived",
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers",
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders",
)
@pytest.mark.parametrize("syncing", ["", "a", "bc"])
def test_members_that_do_not_sync_in_time_are_removed(syncing):
    machine = completing("a", "b", "c", **LONG)
    asked = {name: machine.sync(name, {"a": assignment("t", 0)} if name == "a" else None) for name in syncing}
    machine.wait(499)
    assert len(machine.group.members) == 3
    machine.wait(1)
    assert {who for who, id_ in machine.ids.items() if id_ in machine.group.members} == set(syncing)
    assert machine.state == ("PreparingRebalance" if syncing else "Empty")
    # Members that wait for the leader must join again; those with an assignment learn it from the next heartbeat.
    expected = Error.NONE if "a" in syncing else Error.REBALANCE_IN_PROGRESS
    assert {each.answer.error for each in asked.values()} <= {expected}
    assert {machine.heartbeat(name).answer.error for name in syncing} <= {Error.REBALANCE_IN_PROGRESS}


@pytest.mark.kafka("testRebalanceDoesNotTimeOutWhenAllSyncAreReceived")
def test_sync_timer_does_not_affect_a_synced_group():
    machine = stable("a", "b", **LONG)
    machine.wait(5_000)
    assert (machine.state, machine.group.generation, len(machine.group.members)) == ("Stable", 1, 2)
    assert {machine.heartbeat(name).answer.error for name in "ab"} == {Error.NONE}


# -- sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "testSessionTimeout", "testHeartbeatExpirationShouldRemoveMember", "testClassicGroupMemberSessionTimeout"
)
def test_silent_member_is_removed_at_the_end_of_its_session():
    machine = stable("a", session_timeout_ms=200)
    machine.wait(199)
    assert machine.state == "Stable"
    machine.wait(1)
    assert machine.state == "Empty"
    assert machine.heartbeat("a").answer.error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.kafka("testHeartbeatMaintainsSession", "testClassicGroupMemberHeartbeatMaintainsSession")
def test_heartbeats_keep_a_session():
    machine = stable("a", session_timeout_ms=200)
    for _ in range(5):
        machine.wait(150)
        assert machine.heartbeat("a").answer.error is Error.NONE
    machine.wait(200)
    assert machine.state == "Empty"


@pytest.mark.kafka("testCommitMaintainsSession")
def test_commits_keep_a_session():
    machine = stable("a", session_timeout_ms=200)
    for offset in range(5):
        machine.wait(150)
        assert [part.error for part in machine.commit("a", {"t-0": offset}).answer.partitions] == [Error.NONE]
    machine.wait(200)
    assert machine.state == "Empty"


@pytest.mark.kafka("testSessionTimeoutDuringRebalance", "testClassicGroupMemberSessionTimeoutDuringRebalance")
def test_session_that_ends_during_a_rebalance_ends_the_wait():
    machine = stable("a", "b", session_timeout_ms=200, rebalance_timeout_ms=5_000)
    machine.wait(100)
    follower = machine.join("b", protocols=CHANGED)
    assert machine.heartbeat("a").answer.error is Error.REBALANCE_IN_PROGRESS
    machine.wait(199)
    assert follower.waits
    machine.wait(1)
    assert (follower.answer.generation, follower.answer.leader) == (2, machine.ids["b"])


@pytest.mark.kafka("testHeartbeatDuringRebalanceCausesRebalanceInProgress")
def test_heartbeat_during_a_rebalance_says_so_and_keeps_the_session():
    machine = stable("a", "b", session_timeout_ms=200, rebalance_timeout_ms=5_000)
    machine.join("b", protocols=CHANGED)
    for _ in range(5):
        machine.wait(150)
        assert machine.heartbeat("a").answer.error is Error.REBALANCE_IN_PROGRESS
    assert len(machine.group.members) == 2


@pytest.mark.kafka("testCompleteHeartbeatWithGroupDead")
def test_session_that_ends_in_a_dead_group_changes_nothing():
    machine = stable("a")
    machine.unload()
    assert machine.subject.timer_fired(session_timer(machine, "a"), machine.now) == Effects()
    assert machine.state == "Dead"


@pytest.mark.kafka("testCompleteHeartbeatWithMemberAlreadyRemoved")
def test_session_of_a_removed_member_changes_nothing():
    machine = stable("a", "b")
    machine.leave("b")
    assert machine.subject.timer_fired(session_timer(machine, "b"), machine.now) == Effects()
    assert list(machine.group.members) == [machine.ids["a"]]
