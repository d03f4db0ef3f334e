"""What outlives a member and a coordinator: records, loading and unloading, and the offsets of a group."""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.groups.errors import Error
from coordinator.groups.requests import Protocol
from coordinator.service.limits import limits_of
from kernel.broker.settings.configuration import BrokerConfig
from tests.support.groups.classic import LIMITS, Machine, assignment, completing, empty, stable, subscription

CHANGED = (Protocol("range", subscription("t", "u")),)


def errors(asked) -> list[Error]:
    return [part.error for part in asked.answer.partitions]


# -- loading and unloading ----------------------------------------------------------------------------------------


@pytest.mark.kafka("testReplayGroupMetadataRecords")
def test_loaded_group_is_the_one_that_was_stored():
    machine = stable("a", "b")
    machine.join("c", instance_id="i")
    for name in "ab":
        machine.join(name)
    machine.sync("a", {name: assignment("t", number) for number, name in enumerate("abc")})
    loaded = machine.successor().group
    assert (loaded.state.value, loaded.generation, loaded.protocol_type, loaded.protocol_name, loaded.leader) == (
        "Stable",
        2,
        "consumer",
        "range",
        machine.ids["a"],
    )
    assert loaded.instances == {"i": machine.ids["c"]}
    before = machine.group.members
    assert list(loaded.members) == list(before)
    for member_id, member in loaded.members.items():
        assert member.assignment == before[member_id].assignment
        assert member.protocols == before[member_id].protocols
        assert member.session_timeout_ms == before[member_id].session_timeout_ms


@pytest.mark.kafka("testOnLoadedSchedulesClassicGroupMemberHeartbeats")
def test_sessions_restart_after_loading():
    machine = stable("a", "b", session_timeout_ms=200)
    machine.wait(150)
    machine = machine.successor()
    machine.wait(199)
    assert machine.heartbeat("a").answer.error is Error.NONE
    machine.wait(1)
    assert (machine.state, list(machine.group.members)) == ("PreparingRebalance", [machine.ids["a"]])


@pytest.mark.kafka("testClassicGroupOnUnloadedEmptyAndPreparingRebalance")
def test_unloading_answers_parked_joins_and_leaves_no_timer():
    machine = empty()
    machine.unload()
    assert (machine.state, machine.timers()) == ("Dead", {})
    machine = stable("a", "b", "c")
    joining = machine.join("b", protocols=CHANGED)
    machine.unload()
    assert joining.answer.error is Error.NOT_COORDINATOR
    assert (machine.state, machine.timers()) == ("Dead", {})


@pytest.mark.kafka("testClassicGroupOnUnloadedCompletingRebalance")
def test_unloading_answers_parked_syncs():
    machine = completing("a", "b")
    syncing = machine.sync("b")
    machine.unload()
    assert (syncing.answer.error, syncing.answer.assignment) == (Error.NOT_COORDINATOR, b"")
    assert (machine.state, machine.timers()) == ("Dead", {})


# -- a record that cannot be stored -------------------------------------------------------------------------------


@pytest.mark.kafka("testSyncGroupAsLeaderAppendFailureTransformsError", "testJoinGroupAppendErrorConversion")
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
def test_assignment_that_cannot_be_stored_is_not_sent_and_members_rejoin(error):
    machine = completing("a", "b")
    follower = machine.sync("b")
    machine.hold()
    leader = machine.sync("a", {"a": assignment("t", 0), "b": assignment("t", 1)})
    assert (leader.answer, follower.answer) == (None, None)
    machine.fail(error)
    assert [(each.answer.error, each.answer.assignment) for each in (leader, follower)] == [(error, b"")] * 2
    assert machine.state == "PreparingRebalance"


# -- the end of a group -------------------------------------------------------------------------------------------

QUICK = dataclasses.replace(LIMITS, retention_ms=1_000, retention_check_ms=100)


def loaded(machine: Machine) -> Machine:
    """With a coordinator that looks for expired offsets, as it does from its load on."""
    machine.limits = QUICK
    return machine.successor()


@pytest.mark.kafka("testClassicGroupMaybeDelete")
def test_empty_group_without_offsets_expires_and_one_with_members_does_not():
    machine = loaded(empty())
    machine.wait(100)
    assert (machine.group, machine.log) == (None, {})
    machine = loaded(stable("a"))
    machine.wait(1_000)
    assert machine.state == "Stable"


@pytest.mark.kafka("testOffsetsRetentionMsIntegerOverflow")
def test_longest_retention_in_milliseconds_exceeds_an_int():
    config, _ = BrokerConfig.from_settings({"offsets.retention.minutes": str(2**31 - 1)})
    assert limits_of(config, traced=False).retention_ms == (2**31 - 1) * 60_000


# -- offsets ------------------------------------------------------------------------------------------------------


@pytest.mark.kafka("testCommitAndFetchOffsetsWithEmptyGroup", "testCommitOffsetWithDefaultGeneration")
def test_offsets_without_members_make_a_group_and_are_fetched():
    machine = Machine()
    assert errors(machine.commit("", {"t-0": 5, "u-1": 6}, member_id="", generation=-1)) == [Error.NONE] * 2
    assert machine.committed("t-0", "u-1", "t-1") == [5, 6, None]
    assert (machine.state, [group.protocol_type for group in machine.subject.list()]) == ("Empty", [""])
    assert machine.successor().committed("t-0", "u-1") == [5, 6]


@pytest.mark.kafka("testCommitOffsetsAfterGroupIsEmpty")
def test_offsets_of_a_group_that_was_left_may_be_set_without_a_generation():
    machine = stable("a")
    machine.commit("a", {"t-0": 5})
    machine.leave("a")
    assert errors(machine.commit("", {"t-0": 3}, member_id="", generation=-1)) == [Error.NONE]
    assert errors(machine.commit("a", {"t-0": 9}, generation=1)) == [Error.UNKNOWN_MEMBER_ID]
    assert (machine.state, machine.committed("t-0")) == ("Empty", [3])


@pytest.mark.kafka("testDeleteEmptyGroupWithStoredOffsets")
def test_deleting_a_group_deletes_its_offsets():
    machine = empty()
    machine.commit("", {"t-0": 5, "u-0": 6}, member_id="", generation=-1)
    assert machine.delete_group().answer.error is Error.NONE
    assert (machine.log, machine.subject.classic.groups, machine.committed("t-0", "u-0")) == ({}, {}, [None, None])


@pytest.mark.kafka("testDeleteOffsetOfStableConsumerGroup")
def test_only_offsets_of_topics_without_subscribers_are_deleted():
    machine = stable("a")
    machine.commit("a", {"t-0": 5, "v-0": 6})
    assert errors(machine.delete_offsets(("t", 0), ("v", 0))) == [Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.NONE]
    assert machine.committed("t-0", "v-0") == [5, None]
