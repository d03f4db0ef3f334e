"""Heartbeats, sessions, timeouts and topics: what the recorded conversations leave out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from coordinator.groups.consumer.fencing import commit_refusal, fetch_refusal, transactional_commit_refusal
from coordinator.groups.consumer.states import ConsumerGroupState, ConsumerMemberState
from coordinator.groups.consumer_records import RegexKey, RegexRecord
from coordinator.groups.effects import TimerKind
from coordinator.groups.errors import Error
from tests.support.groups.consumer import GROUP, SETTINGS, World, by_name, topic_id

HALVES = [0, 1, 2]


@pytest.fixture
def world() -> World:
    return World({"foo": 6, "bar": 3})


def shared(world: World) -> None:
    """Members a and b with three partitions of foo each, at epoch 2."""
    world.join("a", "foo")
    world.join("b", "foo")
    world.beat("a")
    world.beat("a", {"foo": HALVES})
    world.beat("b")
    assert world.group.state is ConsumerGroupState.STABLE


def test_empty_texts_and_odd_epochs_are_invalid(world: World) -> None:
    assert world.join("", "foo").error is Error.INVALID_REQUEST
    assert world.join(" ", "foo").error is Error.INVALID_REQUEST
    assert world.join("a", "foo", group=" ").error is Error.INVALID_REQUEST
    assert world.ask("a", -3).error is Error.INVALID_REQUEST
    assert world.ask("", 1).error is Error.INVALID_REQUEST
    assert world.ask("", -1).error is Error.INVALID_REQUEST
    assert not world.groups.groups
    assert not world.log


def test_coordinator_makes_the_id_of_a_member_of_version_0(world: World) -> None:
    answer = world.join("", "foo", may_lack_id=True)
    assert (answer.member_id, answer.epoch) == ("fresh", 1)
    assert world.ask("", 1, may_lack_id=True).error is Error.INVALID_REQUEST


def test_second_member_without_topics_does_not_bump_the_epoch(world: World) -> None:
    world.join("a", "foo")
    assert world.join("b").epoch == 1
    assert world.beat("b", topics=("bar",)).epoch == 2


@pytest.mark.kafka("testSessionTimeoutExpiration")
def test_silent_member_is_removed_and_the_next_heartbeat_shares_its_partitions_out(world: World) -> None:
    shared(world)
    world.advance(SETTINGS.session_timeout_ms - 1)
    world.beat("a")
    world.advance(1)
    assert list(world.group.members) == ["a"]
    assert world.group.state is ConsumerGroupState.ASSIGNING
    assert by_name(world.beat("a").assignment) == {"foo": [0, 1, 2, 3, 4, 5]}
    assert world.ask("b", 2).error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.kafka("testSessionTimeoutLifecycle")
def test_heartbeats_keep_a_session_alive_with_one_timer(world: World) -> None:
    world.join("a", "foo")
    for _ in range(20):
        world.advance(500)
        assert world.beat("a").error is Error.NONE
    assert [key.kind for key in world.timers] == [TimerKind.CONSUMER_SESSION]


@pytest.mark.kafka("testConsumerGroupDynamicConfigs")
def test_group_may_have_timeouts_of_its_own(world: World) -> None:
    world.join("a", "foo")
    world.join("z", "foo", group="other")
    world.own[GROUP] = replace(SETTINGS, session_timeout_ms=1_000, heartbeat_interval_ms=200)
    assert world.beat("a").heartbeat_interval_ms == 200
    world.advance(1_000)
    assert not world.group.members
    assert world.groups.groups["other"].members


@pytest.mark.kafka("testRebalanceTimeoutExpiration")
def test_slow_member_is_removed_after_its_rebalance_timeout_though_it_heartbeats(world: World) -> None:
    world.join("a", "foo")
    world.join("b", "foo")
    world.beat("a")
    for _ in range(9):
        world.advance(500)
        world.beat("b")
        assert world.beat("a", {"foo": range(6)}).error is Error.NONE
    world.advance(500)
    assert world.ask("a", 1).error is Error.UNKNOWN_MEMBER_ID
    assert by_name(world.beat("b").assignment) == {"foo": [0, 1, 2, 3, 4, 5]}


@pytest.mark.kafka("testRebalanceTimeoutLifecycle")
def test_member_that_revokes_in_time_keeps_its_place(world: World) -> None:
    shared(world)
    assert not [key for key in world.timers if key.kind is TimerKind.REVOCATION]
    for _ in range(20):
        world.advance(500)
        world.beat("a")
        world.beat("b")
    assert world.group.state is ConsumerGroupState.STABLE


@pytest.mark.kafka("testGroupIdsByTopics", "testOnNewMetadataImage")
def test_growing_topic_is_shared_out_when_the_coordinator_learns_of_it(world: World) -> None:
    shared(world)
    world.sizes["foo"] = 8
    assert world.beat("a").epoch == 2
    world.view = object()
    assert (world.beat("a").epoch, world.beat("b").epoch) == (3, 3)
    assert sorted(n for member in world.group.members.values() for n in member.assigned[topic_id("foo")]) == [*range(8)]


@pytest.mark.kafka("testMetadataRefreshDeadline")
def test_topics_are_looked_at_again_after_a_while(world: World) -> None:
    world = World({"foo": 6}, replace(SETTINGS, topics_refresh_ms=1_000))
    world.join("a", "foo", "new")
    world.sizes["new"] = 2
    world.advance(999)
    assert world.beat("a").assignment is None
    world.advance(1)
    assert by_name(world.beat("a").assignment) == {"foo": [*range(6)], "new": [0, 1]}


def test_deleted_topic_leaves_targets_and_descriptions(world: World) -> None:
    world.join("a", "foo", "bar")
    del world.sizes["bar"]
    world.view = object()
    (shown,) = world.groups.describe(GROUP).members
    assert [row.topic for row in shown.assigned] == ["foo"]
    assert by_name(world.beat("a").assignment) == {"foo": [*range(6)]}
    assert world.beat("a", {"foo": range(6)}).epoch == 2


@pytest.mark.kafka("testSubscriptionMetadataRefreshedAfterGroupIsLoaded")
def test_successor_looks_at_the_topics_at_once(world: World) -> None:
    world.join("a", "foo")
    world.sizes["foo"] = 8  # while nobody led the partition
    other = world.successor()
    assert by_name(other.beat("a").assignment) == {"foo": [*range(8)]}
    assert other.group.epoch == 2


@pytest.mark.kafka("testSubscriptionMetadataRefreshedAgainAfterWriteFailure")
def test_topics_are_looked_at_again_after_a_write_that_failed(world: World) -> None:
    world.join("a", "foo")
    world.sizes["foo"] = 8
    world.view = object()
    world.hold()
    lost = world.send("a", 1)
    world.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert world.answers[lost].error is Error.COORDINATOR_NOT_AVAILABLE
    assert world.group.epoch == 1
    assert by_name(world.beat("a").assignment) == {"foo": [*range(8)]}
    assert world.group.epoch == 2


def test_static_member_returns_within_its_session_and_nobody_notices(world: World) -> None:
    world.join("a", "foo", instance_id="i")
    world.join("b", "foo")
    world.beat("a", instance_id="i")
    world.beat("a", {"foo": HALVES}, instance_id="i")
    world.beat("b")
    assert world.leave("a", -2, instance_id="i").epoch == -2
    world.advance(2_000)
    world.beat("b")
    answer = world.join("a2", "foo", instance_id="i")
    assert (answer.epoch, by_name(answer.assignment)) == (2, {"foo": HALVES})
    world.advance(2_000)  # the former member's timer
    assert world.group.state is ConsumerGroupState.STABLE
    assert world.beat("b").epoch == 2


def test_static_member_that_does_not_return_is_removed(world: World) -> None:
    world.join("a", "foo", instance_id="i")
    world.leave("a", -2, instance_id="i")
    world.advance(SETTINGS.session_timeout_ms)
    assert not world.group.members
    assert not world.group.instances
    assert world.join("a2", "foo", instance_id="i").epoch == 3


def test_static_member_cannot_return_to_a_full_group(world: World) -> None:
    """As in 4.1.1: a new id is a new member where members are counted."""
    world.join("a", "foo", instance_id="i")
    world.leave("a", -2, instance_id="i")
    for member in ("b", "c", "d"):
        world.join(member, "foo")
    assert world.join("a2", "foo", instance_id="i").error is Error.GROUP_MAX_SIZE_REACHED
    assert "a" in world.group.members


def test_answer_waits_until_its_records_and_all_before_are_durable(world: World) -> None:
    world.join("a", "foo")
    world.hold()
    joining = world.send("b", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    beating = world.send("b", 2)
    assert not world.answers.keys() & {joining, beating}
    world.settle()
    assert [world.answers[token].epoch for token in (joining, beating)] == [2, 2]


def test_what_could_not_be_stored_has_not_happened(world: World) -> None:
    world.join("a", "foo")
    before = dict(world.log)
    world.hold()
    joining = world.send("b", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    leaving = world.send("a", -1)
    world.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert {world.answers[token].error for token in (joining, leaving)} == {Error.COORDINATOR_NOT_AVAILABLE}
    assert world.log == before
    assert (world.group.epoch, list(world.group.members)) == (1, ["a"])
    assert world.beat("a").epoch == 1
    world.advance(SETTINGS.session_timeout_ms)
    assert not world.group.members  # its session goes on


def test_first_join_that_could_not_be_stored_leaves_no_group(world: World) -> None:
    world.hold()
    world.send("a", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    world.settle(Error.NOT_COORDINATOR)
    assert world.groups.describe(GROUP).state is ConsumerGroupState.DEAD
    assert world.ask("a", 1).error is Error.GROUP_ID_NOT_FOUND
    assert world.join("a", "foo").epoch == 1


@pytest.mark.kafka("testOnLoaded")
def test_successor_continues_with_epochs_targets_and_timeouts(world: World) -> None:
    world.join("a", "foo")
    world.join("b", "foo")
    world.beat("a")
    other = world.successor()
    assert other.group.members == world.group.members
    assert other.group.members["a"].state is ConsumerMemberState.UNREVOKED_PARTITIONS
    assert other.beat("b").epoch == 2
    assert other.beat("a", {"foo": HALVES}).epoch == 2
    assert by_name(other.beat("b").assignment) == {"foo": [3, 4, 5]}
    slow = world.successor()
    slow.advance(2_900)
    slow.beat("a")
    slow.beat("b")
    slow.advance(2_100)
    assert list(slow.group.members) == ["b"]


def test_regular_expression_gets_its_topics_when_they_have_been_found(world: World) -> None:
    answer = world.join("a", topic_regex="ba.*", topics=None)
    assert (answer.epoch, answer.assignment) == (1, {})
    world.step(partial(world.groups.matched, GROUP, {"ba.*": RegexRecord(("bar",), 1, 2)}))
    assert world.group.state is ConsumerGroupState.ASSIGNING
    answer = world.beat("a")
    assert (answer.epoch, by_name(answer.assignment)) == (2, {"bar": [0, 1, 2]})
    world.step(partial(world.groups.matched, GROUP, {"ba.*": RegexRecord(("bar",), 9, 9), "x": RegexRecord((), 1, 1)}))
    assert world.beat("a").epoch == 2
    assert set(world.group.regexes) == {"ba.*"}
    world.join("b", topic_regex="ba.*", topics=None)
    world.beat("b", topic_regex="fo.*")
    assert set(world.group.regexes) == {"ba.*"}  # as long as a member uses it
    world.leave("b")
    world.leave("a")
    assert not [key for key in world.log if isinstance(key, RegexKey)]


def test_bad_regular_expression_is_refused_and_changes_nothing(world: World) -> None:
    refused = world.join("a", topic_regex="fo[")
    assert refused.error is Error.INVALID_REGULAR_EXPRESSION
    assert refused.message == ("SubscribedTopicRegex `fo[` is not a valid regular expression: missing closing ].")
    assert not world.log
    world.join("a", "foo")
    before = dict(world.log)
    for member, epoch, error in (
        ("a", 1, Error.INVALID_REGULAR_EXPRESSION),
        ("a", 2, Error.FENCED_MEMBER_EPOCH),
        ("b", 1, Error.UNKNOWN_MEMBER_ID),
    ):
        assert world.ask(member, epoch, topic_regex="fo[").error is error  # who asks comes first, as in 4.1.1
    assert world.log == before


@pytest.mark.kafka("testValidateOffsetCommit", "testValidateTransactionalOffsetCommit", "testValidateOffsetFetch")
def test_commits_and_fetches_need_the_members_epoch(world: World) -> None:
    world.join("a", "foo")
    group = world.group
    assert commit_refusal(group, "a", 1, 9) is None
    assert commit_refusal(group, "a", 1, 8) is Error.UNSUPPORTED_VERSION
    assert commit_refusal(group, "a", 2, 9) is Error.STALE_MEMBER_EPOCH
    assert commit_refusal(group, "", -1, 9) is Error.UNKNOWN_MEMBER_ID
    assert transactional_commit_refusal(group, "a", 0) is Error.ILLEGAL_GENERATION
    assert transactional_commit_refusal(group, "x", 1) is Error.UNKNOWN_MEMBER_ID
    assert transactional_commit_refusal(group, "", -1) is None
    assert transactional_commit_refusal(group, "a", 1) is None
    assert fetch_refusal(group, None, -1) is None
    assert fetch_refusal(group, "a", 0) is Error.STALE_MEMBER_EPOCH
    assert fetch_refusal(group, "x", 1) is Error.UNKNOWN_MEMBER_ID
    world.leave("a")
    assert commit_refusal(world.group, "", -1, 2) is None


@pytest.mark.kafka("testConsumerGroupDelete")
def test_group_without_members_can_be_deleted_and_begins_anew(world: World) -> None:
    world.join("a", "foo")
    world.leave("a")
    world.step(partial(world.groups.delete, GROUP, None))
    assert not world.log
    assert world.groups.describe(GROUP).state is ConsumerGroupState.DEAD
    assert world.join("a", "foo").epoch == 1


def test_unloaded_groups_have_no_timers(world: World) -> None:
    world.join("a", "foo")
    world.join("b", "foo")
    world.beat("a")
    world.step(world.groups.unload)
    assert not world.timers


def test_write_that_is_stored_after_a_failed_one_is_taken_back_with_it(world: World) -> None:
    """It was decided from what has failed: it may have shared out partitions that nobody has given up."""
    world.join("a", "foo")
    log = dict(world.log)
    world.hold()
    world.send("b", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    token = world.send("c", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    first, second = world.held or ()
    world.hold()
    world.step(partial(first.not_stored, Error.UNKNOWN_SERVER_ERROR))
    world.store(second)
    world.settle()
    assert world.answers[token].error is Error.COORDINATOR_NOT_AVAILABLE
    assert world.log == log
    assert world.successor().group.members == world.group.members
    assert world.group.epoch == 1
