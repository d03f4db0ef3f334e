"""A classic group becomes one of the `consumer` design when a member of that protocol joins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.consumer_records import ClientKey, CurrentKey, EpochKey, TargetEpochKey, TargetKey
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey, OffsetKey
from coordinator.groups.requests import Protocol
from coordinator.protocol.consumer_protocol import encode_assignment
from kernel.values import TopicPartition
from tests.support.groups.consumer import SETTINGS
from tests.support.groups.mixed import GROUP, MixedPartition, subscription


def with_policy(policy: str) -> MixedPartition:
    return MixedPartition(replace(SETTINGS, migration_policy=policy))


@pytest.mark.kafka("testConsumerGroupHeartbeatWithStableClassicGroup", "testFromClassicGroup")
def test_records_of_a_conversion_are_one_write_in_kafkas_order() -> None:
    at = MixedPartition()
    a, b = at.form("a", "b")
    at.batches.clear()
    at.hold()
    at.consumer("m")
    assert at.held is not None
    (write,) = at.held
    at.settle()
    assert [type(key) for key, _ in write.changes] == [
        GroupKey,
        *[ClientKey] * 2,
        EpochKey,
        *[TargetKey] * 2,
        TargetEpochKey,
        *[CurrentKey] * 2,
        ClientKey,  # of the member that joins, with everything that follows from it
        EpochKey,
        *[TargetKey] * 3,
        TargetEpochKey,
        CurrentKey,
    ]
    assert write.changes[0] == (GroupKey(GROUP), None)
    assert [key.member_id for key, _ in write.changes if isinstance(key, ClientKey)] == [a, b, "m"]


@pytest.mark.kafka("testConsumerGroupHeartbeatWithNonEmptyClassicGroup")
@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_group_stays_classic_where_the_policy_says_so(policy: str) -> None:
    at = with_policy(policy)
    (a,) = at.form("a")
    log = dict(at.log)
    assert at.consumer("m").error is Error.GROUP_ID_NOT_FOUND
    assert at.log == log
    assert at.beat(a) is Error.NONE
    assert at.kind == "classic Stable"


@pytest.mark.parametrize("policy", ["upgrade", "bidirectional"])
def test_group_is_converted_where_the_policy_says_so(policy: str) -> None:
    at = with_policy(policy)
    at.form("a")
    assert at.consumer("m").epoch == 2
    assert at.kind == "consumer Reconciling"


@pytest.mark.kafka("testConsumerGroupHeartbeatWithEmptyClassicGroup")
@pytest.mark.parametrize("policy", ["disabled", "bidirectional"])
def test_empty_classic_group_gives_way_under_any_policy(policy: str) -> None:
    at = with_policy(policy)
    (a,) = at.form("a")
    assert at.commit(a, 1) is Error.NONE
    at.leave(a)
    assert at.kind == "classic Empty"
    assert at.consumer("m").epoch == 1
    assert at.kind == "consumer Stable"
    assert GroupKey(GROUP) not in at.log
    ((_, _, found),) = at.machine.offsets.fetch(GROUP, (("foo", 0),))
    assert found.offset == 7  # type: ignore[union-attr]
    assert at.successor().kind == "consumer Stable"


def test_classic_group_larger_than_a_consumer_group_may_be_stays_classic() -> None:
    at = MixedPartition(replace(SETTINGS, members_max=1))
    a, b = at.form("a", "b")
    assert at.consumer("m").error is Error.GROUP_ID_NOT_FOUND
    at.send_join(a)
    at.leave(b)
    assert at.consumer("m").error is Error.GROUP_MAX_SIZE_REACHED  # one fits, two do not
    assert at.kind.startswith("classic")


@pytest.mark.parametrize(("user_data", "refused"), [(b"custom", True), (b"", False), (None, False)])
def test_group_whose_leader_writes_user_data_into_assignments_stays_classic(
    user_data: bytes | None, refused: bool
) -> None:
    """As a 4.1.1 answers where librdkafka's cooperative-sticky leads, from the second generation on."""
    at = MixedPartition()
    (a,) = at.form("a", sync=False)
    given = encode_assignment([TopicPartition("foo", number) for number in range(6)], user_data=user_data)
    at.sync(a, assignments=((a, given),))
    answer = at.consumer("m")
    assert (answer.error is Error.GROUP_ID_NOT_FOUND) is refused
    assert at.kind == ("classic Stable" if refused else "consumer Reconciling")


def parked(at: MixedPartition) -> tuple[str, str, int]:
    """A rebalance that waits for the second member."""
    a, b = at.form("a", "b")
    return a, b, at.send_join(a, owned={"foo": [0, 1, 2]})


@pytest.mark.kafka("testConsumerGroupHeartbeatWithPreparingRebalanceClassicGroup")
def test_conversion_that_cannot_be_stored_leaves_the_rebalance_going() -> None:
    at = MixedPartition()
    a, b, token = parked(at)
    log = dict(at.log)
    asked = at.fails(Error.COORDINATOR_NOT_AVAILABLE, lambda: at.consumer("m"))
    assert at.answers[asked].error is Error.COORDINATOR_NOT_AVAILABLE  # type: ignore[union-attr]
    assert at.answers[token] == JoinAnswer(member_id=a, error=Error.REBALANCE_IN_PROGRESS)
    assert at.log == log
    assert at.kind == "classic PreparingRebalance"
    assert at.beat(b) is Error.REBALANCE_IN_PROGRESS
    first, second = at.send_join(a), at.send_join(b)
    assert {at.answers[t].generation for t in (first, second)} == {2}  # type: ignore[union-attr]


def test_rebalance_that_goes_on_after_a_failed_conversion_still_ends_in_time() -> None:
    at = MixedPartition()
    a, b, _ = parked(at)
    at.fails(Error.NOT_COORDINATOR, lambda: at.consumer("m"))
    token = at.send_join(a)
    at.advance(4_000)
    assert at.answers[token].generation == 2  # type: ignore[union-attr]
    assert b not in at.classic.members


@pytest.mark.kafka("testConsumerGroupHeartbeatWithCompletingRebalanceClassicGroup")
def test_sync_phase_that_goes_on_after_a_failed_conversion_still_ends_in_time() -> None:
    at = MixedPartition()
    _, b = at.form("a", "b", sync=False)
    assert at.sync(b) is None
    at.fails(Error.NOT_COORDINATOR, lambda: at.consumer("m"))
    assert at.kind == "classic CompletingRebalance"
    at.advance(4_000)
    assert set(at.classic.members) == {b}


def test_sessions_run_on_after_a_failed_conversion() -> None:
    at = MixedPartition()
    (a,) = at.form("a")
    at.fails(Error.NOT_COORDINATOR, lambda: at.consumer("m"))
    at.advance(9_999)
    assert at.beat(a) is Error.NONE
    at.advance(10_000)
    assert at.kind == "classic Empty"


def test_what_was_decided_on_top_of_a_failed_conversion_does_not_stay_in_the_log() -> None:
    at = MixedPartition()
    (a,) = at.form("a")
    log = dict(at.log)
    at.hold()
    at.consumer("m")
    at.consumer("n")
    at.settle(Error.COORDINATOR_NOT_AVAILABLE, None)
    assert at.log == log
    assert at.kind == at.successor().kind == "classic Stable"
    assert at.beat(a) is Error.NONE


def test_refused_newcomer_converts_nothing() -> None:
    at = MixedPartition()
    (a,) = at.form("a")
    log = dict(at.log)
    assert at.consumer("m", assignor="unknown").error is Error.UNSUPPORTED_ASSIGNOR
    assert at.consumer(a).error is Error.FENCED_MEMBER_EPOCH  # a known id at another epoch
    assert at.log == log
    assert at.kind == "classic Stable"


def test_rejoining_member_whose_group_was_converted_keeps_all_its_protocols() -> None:
    at = MixedPartition()
    protocols = (Protocol("cooperative-sticky", subscription("foo")), Protocol("range", subscription("foo")))
    (a,) = at.form("a", protocols=protocols)
    at.consumer("m")
    assert at.group.members[a].classic.protocols == protocols
    assert at.join(a, protocols=protocols).protocol_name == "cooperative-sticky"


def test_offsets_of_a_converted_group_are_there_for_a_successor() -> None:
    at = MixedPartition()
    (a,) = at.form("a")
    assert at.commit(a, 1) is Error.NONE
    at.consumer("m")
    assert OffsetKey(GROUP, "foo", 0) in at.log
    next_one = at.successor()
    assert next_one.kind == "consumer Reconciling"
    assert next_one.commit(a, 1) is Error.NONE
    assert next_one.commit(a, 2) is Error.ILLEGAL_GENERATION
    assert next_one.beat(a) is Error.REBALANCE_IN_PROGRESS


def test_owners_are_named_once_by_each_kind_of_group() -> None:
    at = MixedPartition()
    (a,) = at.form("a")
    at.events.clear()
    at.consumer("m")
    owners = [
        (kind.removeprefix("authority_"), fields["owner"], fields["epoch"])
        for kind, fields in at.events
        if kind.startswith("authority_") and fields["partition"] == 0
    ]
    assert owners == [("cleared", a, 1), ("named", a, 1)]
    joined = [fields["id"] for kind, fields in at.events if kind == "group_member_joined"]
    assert joined == ["m"]
