"""The watcher with fake brokers and members, in timings that a live test cannot arrange."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.client.classic.stream import ABOUT_TO_JOIN, SETTLED
from coordinator.client.settings import CoordinatorConsumerConfig
from coordinator.client.topic_watcher import TopicWatcher
from coordinator.membership.classic.member import MemberState
from coordinator.membership.subscription import by_name, by_pattern
from kernel.client.client import ClusterMetadata, PartitionLeader
from kernel.clock import Clock, SystemClock
from kernel.errors import Unavailable
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.time.manual_clock import ManualClock

BY_NAME = by_name({"t": 1})
BY_PATTERN = by_pattern("t.*", 1, exclude_internal=True)


def config(**settings: str) -> CoordinatorConsumerConfig:
    given = {"bootstrap.servers": "nowhere:1", "group.id": "g", "retry.backoff.ms": "5", "metadata.max.age.ms": "20"}
    made, _ = CoordinatorConsumerConfig.from_settings(
        {**given, **{name.replace("_", "."): value for name, value in settings.items()}}
    )
    return made


class Brokers:
    """What a `ClusterClient` is to the watcher. `down` makes them silent, and they answer only while `gate` is set."""

    def __init__(self, **sizes: int) -> None:
        self.metadata = ClusterMetadata()
        self.sizes = sizes
        self.asked: list[frozenset[str] | None] = []
        self.down = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def refresh(self, topics: Collection[str] | None, *, create: bool, timeout_ms: int) -> ClusterMetadata:
        self.asked.append(None if topics is None else frozenset(topics))
        await self.gate.wait()
        if self.down:
            raise Unavailable("down")
        leaders = {
            TopicPartition(topic, n): PartitionLeader(1)
            for topic, size in self.sizes.items()
            for n in range(size)
            if topics is None or topic in topics
        }
        self.metadata = replace(self.metadata, leaders=leaders)
        return self.metadata


class Stream:
    """What a `GroupStream` is to the watcher."""

    def __init__(
        self, *topics: str, assigned_sizes: dict[str, int] | None = None, state: MemberState = MemberState.STABLE
    ) -> None:
        self.number = 0
        self.member = SimpleNamespace(state=state, topics=frozenset(topics))
        self.assigned_sizes = assigned_sizes
        self.calls: list[object] = []

    @property
    def about_to_join(self) -> bool:
        return self.member.state in ABOUT_TO_JOIN

    @property
    def settled(self) -> bool:
        return self.member.state in SETTLED

    def resubscribe(self, topics: frozenset[str]) -> None:
        self.member.topics = topics
        self.calls.append(topics)

    def want_rejoin(self, trigger: str) -> None:
        self.calls.append(trigger)


@asynccontextmanager
async def watching(
    brokers: Brokers, stream: Stream, subscription: Any, clock: Clock | None = None, **settings: str
) -> AsyncIterator[TopicWatcher]:
    streams: Any = [stream]
    client: Any = brokers
    watcher = TopicWatcher(client, config(**settings), clock or SystemClock(), streams, lambda: None)
    await watcher.ask(subscription)
    watcher.begin(subscription)
    try:
        yield watcher
    finally:
        await watcher.end()


async def test_leader_requests_one_rejoin_per_change_of_topics() -> None:
    brokers, leader = Brokers(t=4), Stream("t", assigned_sizes={"t": 4})
    async with watching(brokers, leader, BY_NAME) as watcher:
        watcher.check_topics()
        assert leader.calls == []
        brokers.sizes["t"] = 6
        await until(lambda: watcher.seen().sizes == {"t": 6}, 60, "the new partitions to be seen")
        assert leader.calls == []  # it takes effect in polls only
        watcher.check_topics()
        watcher.check_topics()
        assert leader.calls == ["metadata-changed"]
        leader.assigned_sizes = {"t": 6}
        watcher.check_topics()
        assert leader.calls == ["metadata-changed"]


@pytest.mark.parametrize(
    "on_the_way", [MemberState.SEEKING, MemberState.JOINING, MemberState.DECIDING, MemberState.SYNCING]
)
async def test_change_seen_by_the_leader_while_it_joins_waits_for_its_assignment(on_the_way: MemberState) -> None:
    brokers, leader = Brokers(t=6), Stream("t", assigned_sizes={"t": 4}, state=on_the_way)
    async with watching(brokers, leader, BY_NAME) as watcher:
        watcher.check_topics()
        assert leader.calls == []
        leader.member.state = MemberState.ASSIGNED
        watcher.check_topics()
        assert leader.calls == ["metadata-changed"]


async def test_leader_looks_up_the_groups_topics_and_soon_retries_a_missing_one() -> None:
    brokers, stream = Brokers(t=4), Stream("t")
    async with watching(brokers, stream, BY_NAME, metadata_max_age_ms="600000") as watcher:
        watcher.check_topics()
        stream.assigned_sizes = {"t": 4, "other": 0}
        watcher.check_topics()
        await until(lambda: len(brokers.asked) >= 4, 60, "three more lookups")
        assert brokers.asked[0] == {"t"}
        assert brokers.asked[1] == {"t", "other"}
        brokers.sizes["other"] = 1
        await until(lambda: watcher.seen().sizes == {"t": 4, "other": 1}, 60, "the other topic to be seen")
        watcher.check_topics()
        assert stream.calls == ["metadata-changed"]


async def test_silent_brokers_are_retried_after_the_backoff() -> None:
    brokers, stream = Brokers(t=4), Stream("t")
    async with watching(brokers, stream, BY_NAME, metadata_max_age_ms="40") as watcher:
        brokers.down = True
        asked = len(brokers.asked)
        await until(lambda: len(brokers.asked) >= asked + 3, 60, "further requests")
        assert watcher.seen().sizes == {"t": 4}  # it keeps what it knew
        brokers.sizes, brokers.down = {"t": 5}, False
        await until(lambda: watcher.seen().sizes == {"t": 5}, 60, "the answer")
        brokers.down = True
        with pytest.raises(Unavailable):  # a new subscription gets the error
            await watcher.ask(BY_PATTERN)


async def test_join_with_a_pattern_waits_for_metadata_within_the_polls_timeout() -> None:
    brokers, stream = Brokers(t=4), Stream("t", state=MemberState.REJOIN_NEEDED)
    async with watching(brokers, stream, BY_PATTERN, metadata_max_age_ms="600000", retry_backoff_ms="0") as watcher:
        brokers.gate.clear()
        await watcher.refresh_before_join(0.0)
        held: Any = stream
        assert watcher.holds_back(held)
        waits = asyncio.create_task(watcher.refresh_before_join(60))
        await until(lambda: len(brokers.asked) == 2, 60, "the request that both polls share")
        brokers.sizes["t2"] = 1
        brokers.gate.set()
        await waits
        assert not watcher.holds_back(held)
        watcher.check_topics()
        assert stream.calls == [frozenset({"t", "t2"})]
        stream.member.state = MemberState.STABLE
        await watcher.refresh_before_join(60)
        assert len(brokers.asked) == 2  # no metadata is requested while no member joins


async def test_rare_short_polls_join_with_metadata_that_arrived_in_between() -> None:
    brokers, stream = Brokers(t=4), Stream("t", state=MemberState.REJOIN_NEEDED)
    async with watching(brokers, stream, BY_PATTERN, metadata_max_age_ms="600000", retry_backoff_ms="0") as watcher:
        brokers.sizes["t2"] = 1
        brokers.gate.clear()
        held: Any = stream
        await watcher.refresh_before_join(0.0)
        assert watcher.holds_back(held)
        brokers.gate.set()
        await until(lambda: "t2" in watcher.seen().sizes, 60, "the answer")
        await watcher.refresh_before_join(0.0)
        assert not watcher.holds_back(held)
        assert len(brokers.asked) == 2


async def test_silent_brokers_do_not_delay_a_join_beyond_the_poll_interval() -> None:
    brokers, stream = Brokers(t=4), Stream("t", state=MemberState.REJOIN_NEEDED)
    clock = ManualClock(monotonic_ns=1_000_000_000)
    patience = {"metadata_max_age_ms": "600000", "retry_backoff_ms": "0", "max_poll_interval_ms": "100"}
    async with watching(brokers, stream, BY_PATTERN, clock, **patience) as watcher:
        brokers.gate.clear()
        held: Any = stream

        await watcher.refresh_before_join(0.0)
        assert watcher.holds_back(held)
        clock.advance_ms(49)
        await watcher.refresh_before_join(0.0)
        assert watcher.holds_back(held)
        clock.advance_ms(1)
        await watcher.refresh_before_join(0.0)
        assert not watcher.holds_back(held)


async def test_end_stops_the_lookups_and_is_idempotent() -> None:
    brokers, stream = Brokers(t=4), Stream("t")
    async with watching(brokers, stream, BY_NAME) as watcher:
        brokers.gate.clear()
        await until(lambda: len(brokers.asked) == 2, 60, "a request that is not answered")
        await watcher.end()
        await watcher.end()
        watcher.check_topics()
        brokers.gate.set()
        assert stream.calls == []
        watcher.begin(BY_NAME)
        await until(lambda: len(brokers.asked) > 2, 60, "the watch to go on")
