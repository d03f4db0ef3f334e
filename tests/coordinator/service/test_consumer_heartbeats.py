"""The fast path of ConsumerGroupHeartbeat answers like the usual one byte for byte, or not at all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.groups.consumer.requests import ConsumerSettings
from kernel.broker.server.handlers import Encoded, RequestContext, readers_of
from kernel.clock import NS_PER_MS
from kernel.wire.codec import decode_request, decode_response, encode_request
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.properties import examples
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

GROUP, SESSION_MS, REFRESH_MS = "g", 10_000, 60_000
SETTINGS = ConsumerSettings(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=1_000, topics_refresh_ms=REFRESH_MS)
ERROR = slice(5, 7)  #: of an answer's tail


@dataclass
class Scene:
    """A coordinator that leads everything, and what its members know."""

    coordinator: LoneCoordinator
    clock: ManualClock
    epochs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.handler: Any = self.coordinator.handlers[Api.ConsumerGroupHeartbeat]
        self.cached: dict[bytes, Callable[[], bytes | None]] = {}
        self.readers = readers_of(self.coordinator.handlers)
        self.hits = 0

    @property
    def topic_id(self) -> Any:
        return self.coordinator.cluster.snapshot.topics["t"].topic_id

    async def beat(self, member: str, epoch: int | None = None, version: int = 1, **told: Any) -> bytes:
        """One heartbeat on both paths, as a connection takes them."""
        known = self.epochs.get(member, 0) if epoch is None else epoch
        body = {"group_id": GROUP, "member_id": member, "member_epoch": known, **told}
        frame = encode_request(Api.ConsumerGroupHeartbeat, version, 1, "c", body)[4:]
        cached = self.cached.pop(frame, None)
        fast = None if cached is None else cached()
        context = RequestContext(0, "c", "127.0.0.1", Api.ConsumerGroupHeartbeat, version, 1)
        decoded = decode_request(frame, self.readers).body
        answer = self.handler(context, decoded)
        is_immediate = isinstance(answer, Encoded)
        tail = (answer if isinstance(answer, Encoded) else await answer).tail
        if fast is not None:
            assert (is_immediate, fast) == (True, tail)
            self.hits += 1
        if is_immediate and (again := self.handler.repeat(context, decoded)) is not None:
            assert again() == tail
            self.cached[frame] = again
        if tail[ERROR] == b"\0\0":
            self.epochs[member] = int.from_bytes(tail[9 + len(member) :][:4], "big", signed=True)
        return tail

    async def join(self, member: str, **told: Any) -> bytes:
        topics = {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout": 5_000}
        return await self.beat(member, 0, **{**topics, **told})

    async def settled(self, *members: str) -> None:
        """Each owns one partition and has said so."""
        for member in members:
            assert (await self.join(member))[ERROR] == b"\0\0"
        for number, member in itertools.product(range(3), members):
            place = [{"topic_id": self.topic_id, "partitions": [members.index(member)] if number < 2 else []}]
            await self.beat(member, topic_partitions=place)
        for member in members:
            await self.beat(member)


@asynccontextmanager
async def playing(clock: ManualClock, partitions: int = 2) -> AsyncIterator[Scene]:
    settings_ = {"offsets.topic.num.partitions": "4"}
    coordinator = LoneCoordinator(clock, settings_, {"t": partitions}, consumer=SETTINGS)
    await coordinator.lead_all()
    try:
        yield Scene(coordinator, clock)
    finally:
        await coordinator.stop()


FULL = {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout": 5_000}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("told", [{}, {"topic_partitions": []}, FULL, {"server_assignor": None}])
async def test_settled_member_is_answered_on_the_fast_path(
    version: int, told: dict[str, Any], virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock) as stage:
        await stage.settled("a")
        stage.cached.clear()
        stage.hits = 0
        for _ in range(5):
            assert (await stage.beat("a", version=version, **told))[ERROR] == b"\0\0"
        assert stage.hits == 4


async def test_members_of_both_versions_share_a_group(virtual_clock: ManualClock) -> None:
    """Version 0 has no regular expression in the request, and lets the coordinator make the member's id."""
    async with playing(virtual_clock, partitions=5) as stage:
        versions = {"a": 0, "b": 1, "c": 0}
        owned: dict[str, tuple[int, ...]] = dict.fromkeys(versions, ())

        async def beat(member: str, **told: Any) -> None:
            place = [{"topic_id": stage.topic_id, "partitions": owned[member]}] if owned[member] else []
            tail = await stage.beat(member, version=versions[member], **{"topic_partitions": place, **told})
            answer = decode_response(Api.ConsumerGroupHeartbeat, versions[member], bytes(4) + tail)[1]
            assert answer.error_code.name == "none", answer
            if answer.assignment is not None:
                owned[member] = tuple(n for row in answer.assignment.topic_partitions for n in row.partitions)
            held = [number for numbers in owned.values() for number in numbers]
            assert len(held) == len(set(held))

        for member in versions:
            await beat(member, **FULL)
            for _ in range(3):
                for each in stage.epochs:
                    await beat(each)
        assert sorted(map(len, owned.values())) == [1, 2, 2]
        assert len(set(stage.epochs.values())) == 1
        await stage.beat("b", -1)
        del versions["b"], owned["b"]
        for _ in range(3):
            for each in versions:
                await beat(each)
        assert sorted(map(len, owned.values())) == [2, 3]


@pytest.mark.parametrize(
    "too_much",
    [{"subscribed_topic_names": ["x" * 249] * 4_300}, {"rack_id": "r" * 1_100_000}, {"instance_id": "i" * 1_100_000}],
    ids=["topics", "rack", "instance"],
)
async def test_member_that_says_more_than_a_record_may_hold_is_refused_as_by_4_1_1(
    too_much: dict[str, Any], virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock) as stage:
        await stage.settled("a")
        admin = await stage.coordinator.connect("admin")
        before = await admin.call(Api.ConsumerGroupDescribe, 1, group_ids=[GROUP])
        assert len(before.groups[0].members) == 1
        for member, epoch in (("b", 0), ("a", None)):
            tail = await stage.beat(member, epoch, **{**FULL, **too_much})
            assert int.from_bytes(tail[ERROR], "big", signed=True) == ErrorCode.unknown_server_error
            assert await admin.call(Api.ConsumerGroupDescribe, 1, group_ids=[GROUP]) == before
        assert (await stage.beat("a"))[ERROR] == b"\0\0"


async def _another_joins(stage: Scene) -> None:
    await stage.join("b")


async def _leaves(stage: Scene) -> None:
    await stage.beat("a", -1)


async def _times_out(stage: Scene) -> None:
    await asyncio.sleep(SESSION_MS / 1000 + 1)


async def _resigns(stage: Scene) -> None:
    await stage.coordinator.resign_all()


async def _leads_again(stage: Scene) -> None:
    await stage.coordinator.resign_all()
    await stage.coordinator.lead_all(epoch=1)


async def _grows(stage: Scene) -> None:
    stage.coordinator.cluster.change_topic("t", 3)


async def _subscribes(stage: Scene) -> None:
    await stage.beat("a", subscribed_topic_names=["t", "u"])


async def _another_searches(stage: Scene) -> None:
    await stage.join("b", subscribed_topic_names=[], subscribed_topic_regex="t.*")


async def _prefers(stage: Scene) -> None:
    await stage.beat("a", server_assignor="range")


@pytest.mark.parametrize(
    "happens",
    [_another_joins, _leaves, _times_out, _resigns, _leads_again, _grows, _subscribes, _another_searches, _prefers],
)
async def test_fast_path_ends_when_its_conditions_change(
    happens: Callable[[Scene], Awaitable[None]], virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock) as stage:
        await stage.settled("a")
        again = stage.cached.popitem()[1]
        assert again() is not None
        await happens(stage)
        assert again() is None


async def test_topics_are_looked_at_again_when_it_is_time(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock) as stage:
        await stage.settled("a")
        started, hits = stage.clock.monotonic_ns(), []
        while stage.clock.monotonic_ns() < started + REFRESH_MS * NS_PER_MS:
            await asyncio.sleep(SESSION_MS / 2000)
            before = stage.hits
            await stage.beat("a")
            hits.append(stage.hits > before)
        assert not hits[-1]
        assert sum(hits) > len(hits) / 2


async def test_session_restarts_with_each_heartbeat_on_the_fast_path(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock) as stage:
        await stage.settled("a")
        for _ in range(4):
            await asyncio.sleep(0.4 * SESSION_MS / 1000)
            assert (await stage.beat("a"))[ERROR] == b"\0\0"
        await asyncio.sleep(SESSION_MS / 1000 + 0.1)
        assert (await stage.beat("a"))[ERROR] == (25).to_bytes(2, "big")


TOLD = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from((0, 1)),
        "epoch": st.integers(-1, 4),
        "subscribed_topic_names": st.sampled_from((["t"], ["t", "u"], [])),
        "rebalance_timeout": st.sampled_from((5_000, 9_000)),
        "server_assignor": st.sampled_from(("range", "uniform", "none")),
        "instance_id": st.sampled_from(("i", "j", " ")),
        "rack_id": st.sampled_from(("r", " ")),
        "owned": st.lists(st.integers(0, 2), unique=True),
        "subscribed_topic_regex": st.sampled_from(("", "t.*", "(")),
    },
)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_random_requests_are_answered_alike_on_both_paths(data: st.DataObject) -> None:
    clock = ManualClock()

    async def scene() -> None:
        async with playing(clock, partitions=3) as stage:
            await stage.settled("a", "b")
            for _ in range(data.draw(st.integers(1, 40))):
                what = data.draw(st.sampled_from(("same", "same", "same", "told", "join", "grow", "wait", "lead")))
                member = data.draw(st.sampled_from(("a", "b", "c")))
                if what == "same":
                    await stage.beat(member)
                elif what == "told":
                    told = data.draw(TOLD)
                    if told.get("version") == 0:
                        told.pop("subscribed_topic_regex", None)
                    if (owned := told.pop("owned", None)) is not None:
                        told["topic_partitions"] = [{"topic_id": stage.topic_id, "partitions": owned}]
                    await stage.beat(member, **told)
                elif what == "join":
                    await stage.join(member, instance_id=data.draw(st.sampled_from((None, "i"))))
                elif what == "grow":
                    stage.coordinator.cluster.change_topic(
                        data.draw(st.sampled_from("tu")), data.draw(st.integers(1, 4))
                    )
                elif what == "wait":
                    await asyncio.sleep(data.draw(st.sampled_from((0.1, 4.0, SESSION_MS / 1000))))
                else:
                    await _leads_again(stage)

    run_virtually(scene(), clock)
