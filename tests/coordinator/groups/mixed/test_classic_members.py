"""Members of the classic protocol in a group of the `consumer` design: what their requests do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.consumer_records import ClientKey, CurrentKey, EpochKey, TargetEpochKey, TargetKey
from coordinator.groups.errors import Error
from coordinator.groups.requests import Leaving, Protocol
from tests.support.groups.classic import LIMITS
from tests.support.groups.consumer import SETTINGS, by_name
from tests.support.groups.mixed import GROUP, MixedPartition, assigned, subscription


@pytest.fixture
def at() -> MixedPartition:
    """With one member of the consumer protocol, which has everything."""
    mixed = MixedPartition()
    mixed.consumer("m")
    return mixed


def give_way(at: MixedPartition, epoch: int = 1, **keeps: list[int]) -> None:
    """The member of the consumer protocol gives up what it must."""
    at.consumer("m", epoch)
    at.consumer("m", epoch, owned=keeps)


@pytest.mark.kafka("testJoiningConsumerGroupWithNewDynamicMember")
def test_records_of_a_joining_classic_member_are_those_of_any_member(at: MixedPartition) -> None:
    at.batches.clear()
    answer = at.join("a")
    assert answer == JoinAnswer(member_id="a", generation=2, protocol_type="consumer", protocol_name="range")
    assert [type(key) for key, _ in at.batches[0]] == [
        ClientKey,
        EpochKey,
        *[TargetKey] * 2,
        TargetEpochKey,
        CurrentKey,
    ]
    record = at.log[ClientKey(GROUP, "a")]
    assert record.classic.session_timeout_ms == 10_000
    assert record.classic.protocols == (Protocol("range", subscription("foo")),)


def test_new_member_gets_an_id_first_and_joins_with_it(at: MixedPartition) -> None:
    log = dict(at.log)
    first = at.join(must_return_with_id=True)
    assert first.error is Error.MEMBER_ID_REQUIRED
    assert at.log == log
    assert at.join(first.member_id, must_return_with_id=True).generation == 2


@pytest.mark.kafka("testJoiningConsumerGroupFailingToPersistRecords")
def test_join_that_cannot_be_stored_admits_nobody(at: MixedPartition) -> None:
    log = dict(at.log)
    asked = at.fails(Error.NOT_COORDINATOR, lambda: at.send_join("a"))
    assert at.answers[asked] == JoinAnswer(error=Error.NOT_COORDINATOR, member_id="")
    assert at.log == log
    assert set(at.group.members) == {"m"}
    assert at.beat("a") is Error.UNKNOWN_MEMBER_ID
    at.advance(2_000)
    assert at.kind == "consumer Stable"


def test_rejoin_that_cannot_be_stored_leaves_the_member_as_it_was() -> None:
    at = MixedPartition(replace(SETTINGS, session_timeout_ms=60_000))
    at.consumer("m")
    at.join("a")
    at.sync("a")
    before = at.group.members["a"]
    at.fails(Error.NOT_COORDINATOR, lambda: at.send_join("a", "bar"))
    assert at.group.members["a"] == before
    for _ in range(4):  # no deadline for a SyncGroup has been set
        at.advance(2_900)
        assert at.beat("a") is Error.NONE
    assert "a" in at.group.members


@pytest.mark.kafka("testJoiningConsumerGroupThrowsExceptionIfGroupOverMaxSize")
def test_full_group_refuses_classic_members() -> None:
    at = MixedPartition(replace(SETTINGS, members_max=1))
    at.consumer("m")
    log = dict(at.log)
    assert at.join("a") == JoinAnswer(error=Error.GROUP_MAX_SIZE_REACHED, member_id="")
    assert at.log == log


def test_member_with_too_much_metadata_is_refused() -> None:
    at = MixedPartition(limits=replace(LIMITS, member_bytes_max=200))
    at.consumer("m")
    log = dict(at.log)
    assert at.join("a", "x" * 200) == JoinAnswer(error=Error.MESSAGE_TOO_LARGE, member_id="")
    assert at.log == log


@pytest.mark.kafka(
    "testJoiningConsumerGroupThrowsExceptionIfProtocolIsNotSupported", "testClassicMembersSupportedProtocols"
)
def test_protocols_have_to_fit_those_of_the_classic_members_only(at: MixedPartition) -> None:
    at.join("a", protocols=(Protocol("range", subscription("foo")),))
    log = dict(at.log)
    other = (Protocol("sticky", subscription("foo")),)
    assert at.join("b", protocols=other).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert at.join("b", protocol_type="connect").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert at.log == log
    at.leave("a")
    assert at.join("b", protocols=other).protocol_name == "sticky"


@pytest.mark.parametrize("metadata", [b"", b"junk"])
def test_unreadable_subscription_is_refused_and_changes_nothing(at: MixedPartition, metadata: bytes) -> None:
    at.join(instance_id="i")
    log, members = dict(at.log), dict(at.group.members)
    junk = (Protocol("range", metadata),)
    assert at.join("a", protocols=junk).error is Error.UNKNOWN_SERVER_ERROR
    assert at.join(instance_id="i", protocols=junk).error is Error.UNKNOWN_SERVER_ERROR
    assert at.log == log
    assert at.group.members == members


@pytest.mark.kafka(
    "testJoiningConsumerGroupWithNewStaticMember", "testJoiningConsumerGroupReplacingExistingStaticMember"
)
def test_static_member_that_returns_takes_its_place_without_a_new_epoch(at: MixedPartition) -> None:
    first = at.join(instance_id="i").member_id
    give_way(at, foo=[0, 1, 2])
    at.join(first)
    at.sync(first)
    second = at.join(instance_id="i").member_id
    assert second != first
    assert at.epochs[second] == 2
    assert assigned(at.sync(second).assignment) == {"foo": [3, 4, 5]}
    assert at.beat(first) is Error.FENCED_INSTANCE_ID
    assert at.kind == "consumer Stable"


@pytest.mark.kafka("testJoiningConsumerGroupWithExistingStaticMemberAndNewSubscription")
def test_static_member_that_returns_with_other_topics_costs_a_new_epoch(at: MixedPartition) -> None:
    at.join(instance_id="i")
    second = at.join("", "foo", "bar", instance_id="i")
    assert second.generation == 3
    assert assigned(at.sync(second.member_id).assignment) == {"bar": [0, 1, 2]}


@pytest.mark.kafka(
    "testStaticMemberJoiningConsumerGroupWithUnknownInstanceId",
    "testStaticMemberJoiningConsumerGroupWithUnmatchedMemberId",
)
def test_known_ids_need_their_own_instance(at: MixedPartition) -> None:
    at.join(instance_id="i")
    log = dict(at.log)
    assert at.join("x", instance_id="other").error is Error.UNKNOWN_MEMBER_ID
    assert at.join("x", instance_id="i").error is Error.FENCED_INSTANCE_ID
    assert at.log == log


@pytest.mark.kafka(
    "testConsumerGroupHeartbeatFromExistingClassicStaticMember",
    "testConsumerGroupHeartbeatToClassicGroupFromExistingStaticMember",
)
def test_static_member_returns_with_the_consumer_protocol_to_either_kind_of_group(at: MixedPartition) -> None:
    classic = at.join(instance_id="i").member_id
    assert at.consumer("n", instance_id="i").epoch == 2
    assert at.beat(classic) is Error.FENCED_INSTANCE_ID
    assert at.group.members["n"].classic is None
    other = MixedPartition()
    (a,) = other.form("a", instance_id="i")
    other.instances[a] = "i"
    assert by_name(other.consumer("n", instance_id="i").assignment) == {"foo": [0, 1, 2, 3, 4, 5]}
    assert other.beat(a) is Error.FENCED_INSTANCE_ID


@pytest.mark.kafka("testReconciliationInJoiningConsumerGroupWithEagerProtocol")
def test_eager_member_gives_everything_up_when_it_rejoins(at: MixedPartition) -> None:
    at.join("a")
    at.sync("a")
    give_way(at, foo=[0, 1, 2])
    at.join("a")
    assert assigned(at.sync("a").assignment) == {"foo": [3, 4, 5]}
    at.consumer("n")
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    assert at.join("a").generation == 3  # it has said that it owns nothing
    assert assigned(at.sync("a").assignment) == {"foo": [3, 4]}
    assert at.beat("a") is Error.NONE


@pytest.mark.kafka("testReconciliationInJoiningConsumerGroupWithCooperativeProtocol")
def test_cooperative_member_gives_up_what_it_must_and_rejoins(at: MixedPartition) -> None:
    at.join("a")
    at.sync("a")
    give_way(at, foo=[0, 1, 2])
    at.join("a")
    at.sync("a")
    at.consumer("n")
    assert at.join("a", owned={"foo": [3, 4, 5]}).generation == 2
    assert assigned(at.sync("a").assignment) == {"foo": [3, 4]}
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    assert at.commit("a", 2) is Error.NONE
    assert at.join("a", owned={"foo": [3, 4]}).generation == 3
    assert assigned(at.sync("a").assignment) == {"foo": [3, 4]}
    assert at.beat("a") is Error.NONE


@pytest.mark.kafka("testClassicGroupHeartbeatToConsumerGroupRebalanceInProgress")
def test_member_that_waits_is_called_when_all_its_partitions_are_free(at: MixedPartition) -> None:
    at.consumer("n")
    give_way(at, foo=[0, 1, 2])
    at.consumer("n", 2)
    at.join("a")
    at.sync("a")
    assert at.beat("a") is Error.NONE
    give_way(at, 2, foo=[0, 1])
    assert at.beat("a") is Error.NONE  # another one is missing
    at.consumer("n", 2)
    at.consumer("n", 2, owned={"foo": [3, 4]})
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    at.join("a")
    assert assigned(at.sync("a").assignment) == {"foo": [2, 5]}


@pytest.mark.kafka("testClassicGroupSyncToConsumerGroupWithAllConsumerProtocolVersions")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_assignment_has_the_version_of_the_subscription(at: MixedPartition, version: int) -> None:
    at.join("a", protocols=(Protocol("range", subscription("bar", version=version)),))
    data = at.sync("a").assignment
    assert data[:2] == bytes([0, version])
    assert assigned(data) == {"bar": [0, 1, 2]}


@pytest.mark.kafka(
    "testClassicGroupSyncToConsumerGroupWithUnknownMemberId",
    "testClassicGroupSyncToConsumerGroupWithFencedInstanceId",
    "testClassicGroupSyncToConsumerGroupWithInconsistentGroupProtocol",
    "testClassicGroupSyncToConsumerGroupWithIllegalGeneration",
    "testClassicGroupSyncToConsumerGroupRebalanceInProgress",
)
def test_sync_that_does_not_fit_is_refused(at: MixedPartition) -> None:
    a = at.join(instance_id="i").member_id
    assert at.sync("nobody").error is Error.UNKNOWN_MEMBER_ID
    assert at.sync("m", generation=1).error is Error.UNKNOWN_MEMBER_ID
    assert at.sync("nobody", instance_id="i").error is Error.FENCED_INSTANCE_ID
    assert at.sync(a, protocol_type="connect").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert at.sync(a, protocol_name="sticky").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert at.sync(a, generation=1).error is Error.ILLEGAL_GENERATION
    assert at.sync(a, protocol_type="consumer", protocol_name="range").error is Error.NONE
    at.consumer("n")
    assert at.sync(a).error is Error.REBALANCE_IN_PROGRESS


@pytest.mark.kafka(
    "testClassicGroupHeartbeatToConsumerWithUnknownMember",
    "testClassicGroupHeartbeatToConsumerWithFencedInstanceId",
    "testClassicGroupHeartbeatToConsumerWithIllegalGenerationId",
    "testClassicGroupHeartbeatToConsumerWithMemberNotUsingClassicProtocol",
)
def test_heartbeat_that_does_not_fit_is_refused(at: MixedPartition) -> None:
    a = at.join(instance_id="i").member_id
    assert at.beat("nobody") is Error.UNKNOWN_MEMBER_ID
    assert at.beat(a, instance_id="other") is Error.UNKNOWN_MEMBER_ID
    assert at.beat("nobody", instance_id="i") is Error.FENCED_INSTANCE_ID
    assert at.beat("m", generation=1) is Error.UNKNOWN_MEMBER_ID
    assert at.beat(a, generation=1) is at.beat(a, generation=3) is Error.ILLEGAL_GENERATION


@pytest.mark.kafka("testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroup")
def test_members_of_both_protocols_leave_at_once_for_one_new_epoch(at: MixedPartition) -> None:
    at.consumer("n", instance_id="j")
    at.join("a")
    b = at.join(instance_id="i").member_id
    leaving = ("a", Leaving("", "i"), Leaving(b, "i"), "nobody", Leaving("x", "j"), Leaving("", "other"))
    none, unknown, fenced = Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID
    assert at.leave(*leaving) == [none, none, none, unknown, fenced, unknown]
    assert set(at.group.members) == {"m", "n"}
    assert at.group.epoch == 5


@pytest.mark.kafka("testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroupUpdatingSubscriptionMetadata")
def test_members_that_leave_take_their_topics_with_them(at: MixedPartition) -> None:
    hash_without = at.group.metadata_hash
    at.join("a", "bar")
    assert at.group.metadata_hash != hash_without
    at.leave("a")
    assert at.group.metadata_hash == hash_without


@pytest.mark.kafka("testClassicGroupLeaveToConsumerGroupWithoutValidLeaveGroupMember")
def test_leave_of_nobody_changes_nothing(at: MixedPartition) -> None:
    at.join(instance_id="i")
    log = dict(at.log)
    assert set(at.leave("nobody", Leaving("", "other"))) == {Error.UNKNOWN_MEMBER_ID}
    assert at.leave(Leaving("x", "i")) == [Error.FENCED_INSTANCE_ID]
    assert at.log == log


def test_commits_of_a_classic_member_are_fenced_by_its_generation(at: MixedPartition) -> None:
    at.join("a")
    assert at.commit("a", 2) is Error.NONE  # in every version
    assert at.commit("a", 2, absent_group_is_named=True) is Error.NONE
    assert at.commit("a", 1) is at.commit("a", 3) is Error.ILLEGAL_GENERATION
    assert at.commit("m", 1) is Error.UNSUPPORTED_VERSION
    assert at.commit("m", 2, absent_group_is_named=True) is Error.STALE_MEMBER_EPOCH


@pytest.mark.parametrize("client_id", ["a", "c"], ids=["another client", "the same client"])
def test_member_that_switches_its_protocol_under_its_id_keeps_its_place(at: MixedPartition, client_id: str) -> None:
    at.join("a")
    at.sync("a")
    assert at.consumer("a", 2, client_id=client_id).epoch == 2
    assert at.beat("a") is Error.UNKNOWN_MEMBER_ID
    assert at.group.epoch == 2
    assert at.join("a").generation == 2
    assert at.beat("a") is Error.NONE
