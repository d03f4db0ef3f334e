"""The time that members of the classic protocol have in a group of the `consumer` design."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.effects import CONSUMER_TIMERS
from coordinator.groups.errors import Error
from tests.support.groups.consumer import SETTINGS
from tests.support.groups.mixed import MixedPartition

LONG = replace(SETTINGS, session_timeout_ms=100_000)


@pytest.fixture
def at() -> MixedPartition:
    """With a member of the consumer protocol, which has everything, and a classic one with short timeouts."""
    mixed = MixedPartition(LONG)
    mixed.consumer("m", rebalance_timeout_ms=100_000)
    mixed.join("a", session_timeout_ms=1_000, rebalance_timeout_ms=3_000)
    mixed.sync("a")
    return mixed


@pytest.mark.kafka("testConsumerGroupMemberUsingClassicProtocolFencedWhenSessionTimeout")
def test_silent_member_is_removed_after_its_own_session(at: MixedPartition) -> None:
    at.advance(999)
    assert "a" in at.group.members
    at.advance(1)
    assert set(at.group.members) == {"m"}
    assert at.kind == "consumer Assigning"


@pytest.mark.kafka("testClassicGroupHeartbeatToConsumerGroupMaintainsSession")
def test_heartbeats_keep_the_session(at: MixedPartition) -> None:
    for _ in range(20):
        at.advance(999)
        assert at.beat("a") is Error.NONE


def test_commits_do_not_keep_the_session(at: MixedPartition) -> None:
    at.advance(999)
    assert at.commit("a", 2) is Error.NONE
    at.advance(1)
    assert "a" not in at.group.members


@pytest.mark.kafka("testConsumerGroupMemberUsingClassicProtocolFencedWhenJoinTimeout")
def test_member_that_is_called_and_does_not_rejoin_is_removed(at: MixedPartition) -> None:
    at.consumer("n")
    at.advance(900)  # nobody has told it yet
    for _ in range(3):
        assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
        at.advance(999)
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    at.advance(3)
    assert set(at.group.members) == {"m", "n"}


def test_member_that_rejoins_in_time_stays(at: MixedPartition) -> None:
    at.consumer("n")
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    at.advance(900)
    at.join("a", session_timeout_ms=1_000, rebalance_timeout_ms=3_000)
    at.sync("a")
    for _ in range(5):
        at.advance(900)
        assert at.beat("a") is Error.NONE


def test_member_that_does_not_sync_is_removed(at: MixedPartition) -> None:
    at.join("a", session_timeout_ms=1_000, rebalance_timeout_ms=3_000)
    at.advance(900)
    at.join("a", session_timeout_ms=1_000, rebalance_timeout_ms=3_000)  # its time begins again
    for _ in range(3):
        at.advance(900)
        assert at.beat("a") is Error.NONE
    at.advance(300)
    assert "a" not in at.group.members


def test_sync_that_cannot_be_answered_yet_does_not_end_the_time_for_it(at: MixedPartition) -> None:
    at.join("a", session_timeout_ms=9_000, rebalance_timeout_ms=3_000)
    at.hold()
    at.consumer("m", 1)  # something is on its way to the log
    assert at.sync("a") is None
    at.settle(Error.NOT_COORDINATOR)
    at.advance(3_000)
    assert "a" not in at.group.members


def test_session_of_a_replaced_member_ends_without_consequences(at: MixedPartition) -> None:
    at.join(instance_id="i", session_timeout_ms=1_000)
    second = at.join(instance_id="i", session_timeout_ms=9_000).member_id
    at.sync(second)
    at.advance(1_500)
    assert set(at.group.members) == {"m", second}


def test_conversion_restarts_sessions_both_ways() -> None:
    at = MixedPartition(LONG)
    (a,) = at.form("a", session_timeout_ms=1_000)
    at.advance(900)
    at.consumer("m")
    at.advance(999)
    assert a in at.group.members
    at.consumer("m", -1)
    at.advance(999)
    assert a in at.classic.members
    at.advance(1)
    assert at.kind == "classic Empty"


def test_time_for_rejoining_ends_with_the_group(at: MixedPartition) -> None:
    at.consumer("n")
    assert at.beat("a") is Error.REBALANCE_IN_PROGRESS
    at.consumer("n", -1)
    at.consumer("m", -1)
    assert at.kind == "classic PreparingRebalance"
    assert not any(key.kind in CONSUMER_TIMERS for key in at.timers)
    at.join("a", session_timeout_ms=60_000)
    at.sync("a", assignments=(("a", b""),))
    at.advance(10_000)
    assert at.kind == "classic Stable"


def test_successor_gives_everybody_a_session_of_the_consumer_protocol(at: MixedPartition) -> None:
    """As Kafka does, whatever a classic member has asked for, until it sends its first request."""
    after = at.successor()
    after.advance(99_999)
    assert "a" in after.group.members
    assert after.beat("a") is Error.NONE
    after.consumer("m", 1)
    after.advance(1_000)
    assert "a" not in after.group.members
