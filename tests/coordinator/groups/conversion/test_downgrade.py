"""A group of the `consumer` design becomes a classic one when its last member of that protocol is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.answers import ConsumerHeartbeatAnswer, JoinAnswer
from coordinator.groups.consumer_records import ClientKey, CurrentKey, EpochKey, TargetEpochKey, TargetKey
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey
from coordinator.groups.requests import Leaving, Protocol
from tests.support.groups.classic import LIMITS
from tests.support.groups.consumer import SETTINGS
from tests.support.groups.mixed import GROUP, MixedPartition, assigned, subscription


def mixed(at: MixedPartition, *members: str) -> None:
    """One member of the consumer protocol, and some of the classic one."""
    at.consumer("m", instance_id="i")
    for member in members:
        at.join(member)
        at.sync(member)


@pytest.mark.kafka("testLastConsumerProtocolMemberLeavingConsumerGroup")
def test_records_of_a_conversion_back_are_one_write_in_kafkas_order() -> None:
    at = MixedPartition()
    mixed(at, "a")
    at.hold()
    at.consumer("m", -1, instance_id="i")
    assert at.held is not None
    (write,) = at.held
    at.settle()
    assert [type(key) for key, _ in write.changes] == [
        *[CurrentKey] * 2,
        *[TargetKey] * 2,
        TargetEpochKey,
        *[ClientKey] * 2,
        EpochKey,
        GroupKey,
    ]
    assert all(value is None for _, value in write.changes[:-1])
    _, record = write.changes[-1]
    assert (record.generation, record.protocol_name, record.leader) == (2, "range", "a")  # type: ignore[union-attr]
    assert assigned(record.members[0].assignment) == {"foo": [3, 4, 5]}  # type: ignore[union-attr]
    assert at.kind == "classic PreparingRebalance"
    assert at.successor().kind == "classic Stable"


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_group_of_classic_members_stays_a_consumer_group_where_the_policy_says_so(policy: str) -> None:
    at = MixedPartition(replace(SETTINGS, migration_policy=policy))
    mixed(at, "a")
    at.consumer("m", -1, instance_id="i")
    assert at.kind == "consumer Assigning"
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    assert at.join("a").generation == 3
    assert assigned(at.sync("a").assignment) == {"foo": [0, 1, 2, 3, 4, 5]}
    assert at.kind == "consumer Stable"


@pytest.mark.kafka("testNoConversionWhenSizeExceedsClassicMaxGroupSize", "testNumClassicProtocolMembers")
def test_group_larger_than_a_classic_one_may_be_stays_a_consumer_group() -> None:
    at = MixedPartition(limits=replace(LIMITS, members_max=1))
    mixed(at, "a", "b")
    at.consumer("m", -1, instance_id="i")
    assert at.kind == "consumer Assigning"
    assert at.leave("b") == [Error.NONE]
    assert at.kind == "classic PreparingRebalance"  # now it is small enough


def test_group_whose_record_would_be_too_large_stays_a_consumer_group() -> None:
    at = MixedPartition(limits=replace(LIMITS, group_bytes_max=150))
    mixed(at, "a", "b", "c")
    at.consumer("m", -1, instance_id="i")
    assert at.kind == "consumer Assigning"
    at.leave("c")
    assert at.kind == "classic PreparingRebalance"
    assert at.classic.size <= 150


@pytest.mark.kafka("testLastConsumerProtocolMemberSessionTimeoutInConsumerGroup")
def test_silent_last_member_converts_the_group() -> None:
    at = MixedPartition()
    mixed(at, "a")
    at.advance(3_000)
    assert at.kind == "classic PreparingRebalance"
    assert at.consumer("m", 1).error is Error.GROUP_ID_NOT_FOUND


@pytest.mark.kafka("testLastConsumerProtocolMemberRebalanceTimeoutInConsumerGroup")
def test_slow_last_member_converts_the_group() -> None:
    at = MixedPartition(replace(SETTINGS, session_timeout_ms=60_000))
    mixed(at, "a")
    assert at.consumer("m", 1).assignment is not None
    at.advance(4_999)
    assert at.kind == "consumer Reconciling"
    assert at.beat("a") is Error.NONE
    at.advance(1)
    assert at.kind == "classic PreparingRebalance"


@pytest.mark.kafka(
    "testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMember",
    "testCreateGroupTombstoneRecordsWithReplacedMember",
)
def test_last_member_that_returns_with_the_classic_protocol_costs_no_rebalance() -> None:
    at = MixedPartition()
    mixed(at, "a")
    at.consumer("m", 1, instance_id="i")
    at.consumer("m", 1, owned={"foo": [0, 1, 2]}, instance_id="i")
    at.join("a")
    at.sync("a")
    newcomer = at.join(instance_id="i")
    assert newcomer.generation == 2
    assert at.kind == "classic Stable"
    assert not any(isinstance(key, ClientKey | TargetKey | CurrentKey) for key in at.log)
    assert at.beat("a") is at.beat(newcomer.member_id) is Error.NONE
    assert assigned(at.sync(newcomer.member_id).assignment) == {"foo": [0, 1, 2]}
    assert assigned(at.sync("a").assignment) == {"foo": [3, 4, 5]}


def test_conversion_back_that_cannot_be_stored_changes_nothing() -> None:
    at = MixedPartition()
    mixed(at, "a")
    before, log = at.group, dict(at.log)
    asked = at.fails(Error.NOT_COORDINATOR, lambda: at.consumer("m", -1, instance_id="i"))
    assert at.answers[asked] == ConsumerHeartbeatAnswer(Error.NOT_COORDINATOR)
    assert at.log == log
    assert at.group is before
    assert set(at.group.members) == {"a", "m"}
    assert at.kind == "consumer Reconciling"
    assert at.beat("a") is Error.NONE
    assert at.consumer("m", 1, instance_id="i").error is Error.NONE
    at.advance(3_000)
    assert at.kind == "classic PreparingRebalance"  # its session has run on


def test_join_that_waits_in_a_group_whose_conversion_back_fails_is_refused() -> None:
    at = MixedPartition()
    mixed(at, "a", "b")
    at.hold()
    at.consumer("m", -1, instance_id="i")
    token = at.send_join("a")
    assert token not in at.answers
    at.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.answers[token] == JoinAnswer(error=Error.COORDINATOR_NOT_AVAILABLE, member_id="")
    assert at.kind == "consumer Reconciling"
    at.advance(60_000)
    assert GroupKey(GROUP) in at.log or not at.group.members


def test_assignment_of_a_group_whose_conversion_back_failed_does_not_stay_in_the_log() -> None:
    at = MixedPartition()
    mixed(at, "a")
    log = dict(at.log)
    at.hold()
    at.consumer("m", -1, instance_id="i")
    assert at.join("a").generation == 3
    at.sync("a", assignments=(("a", b""),))
    at.settle(Error.COORDINATOR_NOT_AVAILABLE, None)
    assert at.log == log
    assert at.kind == at.successor().kind == "consumer Reconciling"


def test_conversion_back_fails_with_what_it_was_decided_from() -> None:
    at = MixedPartition()
    mixed(at, "a")
    log = dict(at.log)
    at.hold()
    at.consumer("m", 1, instance_id="i")
    at.consumer("m", -1, instance_id="i")
    at.settle(Error.COORDINATOR_NOT_AVAILABLE, None)
    assert at.answers[max(at.answers)] == ConsumerHeartbeatAnswer(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.log == log
    assert at.kind == at.successor().kind == "consumer Reconciling"
    assert at.consumer("m", 1, instance_id="i").error is Error.NONE


def test_group_is_not_converted_again_before_its_conversion_back_is_stored() -> None:
    at = MixedPartition()
    mixed(at, "a")
    at.hold()
    at.consumer("m", -1, instance_id="i")
    assert at.consumer("n").error is Error.COORDINATOR_NOT_AVAILABLE
    at.settle()
    assert at.consumer("n").error is Error.NONE
    assert at.kind == "consumer Reconciling"


@pytest.mark.kafka("testClassicGroupJoinWithEmptyConsumerGroup")
def test_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    at = MixedPartition()
    at.consumer("m")
    assert at.commit("m", 1, absent_group_is_named=True) is Error.NONE
    at.consumer("m", -1)
    assert at.kind == "consumer Empty"
    assert at.join("unknown").error is Error.UNKNOWN_MEMBER_ID
    assert at.kind == "consumer Empty"
    at.send_join()
    assert at.kind == "classic PreparingRebalance"
    assert not any(isinstance(key, EpochKey | TargetEpochKey) for key in at.log)
    assert at.successor().kind == "classic Empty"
    ((_, _, found),) = at.machine.offsets.fetch(GROUP, (("foo", 0),))
    assert found.offset == 7  # type: ignore[union-attr]


def test_classic_member_has_to_wait_until_it_is_stored_that_the_last_one_has_left() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.hold()
    at.consumer("m", -1)
    assert at.join("a").error is Error.COORDINATOR_NOT_AVAILABLE
    at.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.kind == "consumer Stable"
    assert set(at.group.members) == {"m"}


def test_group_that_gave_way_but_is_still_in_the_log_does_not_hide_the_classic_one() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.consumer("m", -1)
    log = dict(at.log)
    token = at.send_join()
    at.advance(LIMITS.initial_rebalance_delay_ms * 3)
    a = at.answers[token].member_id  # type: ignore[union-attr]
    at.epochs[a] = 1
    at.sync(a, assignments=((a, b""),))
    after = replace(at, log=log | at.log).successor()
    assert after.kind == "classic Stable"
    assert after.beat(a) is Error.NONE
    assert after.log == at.log


def test_administrator_who_removes_the_last_member_of_the_protocol_converts_the_group() -> None:
    at = MixedPartition()
    mixed(at, "a", "b")
    assert at.leave(Leaving("", "i"), "b", "nobody") == [Error.NONE, Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert at.kind == "classic PreparingRebalance"
    assert set(at.classic.members) == {"a"}


def test_group_is_converted_there_and_back_many_times() -> None:
    at = MixedPartition()
    ids = at.form("a", "b")
    for round_ in range(3):
        before = max(at.epochs[one] for one in ids)
        name = f"m{round_}"
        assert at.consumer(name).epoch == before + 1
        for one in ids:
            assert at.beat(one) is Error.REBALANCE_IN_PROGRESS
            assert at.join(one).generation == before + 1
            at.sync(one)
        assert at.consumer(name, before + 1).error is Error.NONE
        at.consumer(name, -1)
        tokens = [at.send_join(one) for one in ids]
        for one, token in zip(ids, tokens, strict=True):
            at.epochs[one] = at.answers[token].generation  # type: ignore[union-attr]
            assert at.epochs[one] == before + 2
        at.sync(at.classic.leader, assignments=tuple((one, b"\0\0\0\0\0\0\xff\xff\xff\xff") for one in ids))
        for one in ids:
            at.sync(one)
        assert at.kind == at.successor().kind == "classic Stable"


def test_owners_are_named_by_the_classic_group_once_it_is_stored() -> None:
    at = MixedPartition()
    mixed(at, "a")
    at.events.clear()
    at.consumer("m", -1, instance_id="i")
    owners = [
        (kind.removeprefix("authority_"), fields["owner"])
        for kind, fields in at.events
        if kind.startswith("authority_") and fields["partition"] == 5
    ]
    assert owners == [("cleared", "m"), ("named", "a")]
    left = [(fields["id"], fields["reason"]) for kind, fields in at.events if kind == "group_member_left"]
    assert left == [("m", "leave")]
    states = [(fields["state"], fields["reason"]) for kind, fields in at.events if kind == "group_changed"]
    assert states == [("PreparingRebalance", "was a consumer group")]


def test_protocol_of_the_classic_group_is_one_that_all_members_support() -> None:
    at = MixedPartition()
    at.consumer("m")
    both = (Protocol("sticky", subscription("foo")), Protocol("range", subscription("foo")))
    at.join("a", protocols=both)
    at.join("b", protocols=(both[1],))
    at.consumer("m", -1)
    assert at.classic.protocol_name == "range"
