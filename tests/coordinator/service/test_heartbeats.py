"""The fast path of heartbeats answers like the usual one, or not at all, whatever has happened to the group."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

from coordinator.groups.placement import partition_of
from kernel.broker.server.handlers import Encoded, RequestContext
from kernel.topic_names import OFFSETS_TOPIC
from kernel.wire.codec import decode_request, encode_request
from kernel.wire.heartbeats import TAILS
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import HandlerConnection, LoneCoordinator
from tests.support.time.manual_clock import ManualClock

GROUP = "g"
SETTINGS = {"offsets.topic.num.partitions": "4", "group.initial.rebalance.delay.ms": "50"}
SESSION_MS = 10_000
JOIN = {
    "group_id": GROUP,
    "session_timeout": SESSION_MS,
    "rebalance_timeout": 60_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}


@dataclass
class Scene:
    """A coordinator that leads everything, and members that join on request."""

    coordinator: LoneCoordinator
    clock: ManualClock

    def __post_init__(self) -> None:
        self.handler: Any = self.coordinator.handlers[Api.Heartbeat]
        self.connections: list[HandlerConnection] = []

    async def connect(self) -> HandlerConnection:
        self.connections.append(await self.coordinator.connect("c"))
        return self.connections[-1]

    async def joined(self, instance_id: str | None = None, member_id: str = "", *, syncs: bool = True) -> str:
        """A member that leads its generation; static ones need not join twice."""
        connection = await self.connect()
        answer = await connection.call(Api.JoinGroup, 5, **JOIN, member_id=member_id, group_instance_id=instance_id)
        if answer.error_code.value == 79:
            return await self.joined(instance_id, answer.member_id, syncs=syncs)
        assert answer.error_code.value == 0
        if syncs:
            await self.sync(connection, answer.member_id, answer.generation_id, instance_id)
        return str(answer.member_id)

    async def sync(
        self, connection: HandlerConnection, member_id: str, generation: int, instance_id: str | None
    ) -> None:
        body = {"group_id": GROUP, "generation_id": generation, "member_id": member_id}
        assignments = [{"member_id": member_id, "assignment": b"a"}]
        answer = await connection.call(Api.SyncGroup, 3, **body, group_instance_id=instance_id, assignments=assignments)
        assert answer.error_code.value == 0

    async def left(self, member_id: str) -> None:
        await (await self.connect()).call(Api.LeaveGroup, 1, group_id=GROUP, member_id=member_id)

    async def joins_later(self) -> None:
        """A new member, whose JoinGroup stays parked."""
        connection = await self.connect()
        answer = await connection.call(Api.JoinGroup, 5, **JOIN)
        connection.send(Api.JoinGroup, 5, {**JOIN, "member_id": answer.member_id})
        await asyncio.sleep(0.01)

    def heartbeat(self, version: int, member_id: str, generation: int = 1, instance_id: str | None = None) -> Heartbeat:
        body = {"group_id": GROUP, "generation_id": generation, "member_id": member_id}
        frame = encode_request(Api.Heartbeat, version, 1, "c", {**body, "group_instance_id": instance_id})
        context = RequestContext(0, "c", "127.0.0.1", Api.Heartbeat, version, 1)
        return Heartbeat(self.handler, context, decode_request(frame[4:]).body)


@dataclass
class Heartbeat:
    """A heartbeat that is answered on both paths."""

    handler: Any
    context: RequestContext
    body: Any

    def usual(self) -> int:
        answer = self.handler(self.context, self.body)
        assert isinstance(answer, Encoded)
        return next(code for code, tail in TAILS[self.context.version].items() if tail == answer.tail)

    def remembered(self) -> Callable[[], int | None]:
        again = self.handler.repeat(self.context, self.body)
        assert again is not None

        def code() -> int | None:
            tail = again()
            found = (code for code, known in TAILS[self.context.version].items() if known == tail)
            return None if tail is None else next(found)

        return code


@asynccontextmanager
async def playing(clock: ManualClock) -> AsyncIterator[Scene]:
    coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1})
    await coordinator.lead_all()
    stage = Scene(coordinator, clock)
    try:
        yield stage
    finally:
        for connection in stage.connections:
            connection.close()
        await coordinator.stop()


@pytest.mark.parametrize("version", range(5))
async def test_fast_path_gives_the_same_answers_while_the_generation_lasts(
    version: int, virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock) as stage:
        member = await stage.joined(syncs=False)
        heartbeat = stage.heartbeat(version, member)
        again = heartbeat.remembered()
        assert (again(), heartbeat.usual()) == (0, 0), "completing"
        await stage.sync(await stage.connect(), member, 1, None)
        assert (again(), heartbeat.usual()) == (0, 0), "stable"
        await stage.joins_later()
        assert (again(), heartbeat.usual()) == (27, 27), "preparing"
        assert heartbeat.handler.repeat(heartbeat.context, heartbeat.body) is None, "the next request is a JoinGroup"


async def _next_generation(stage: Scene, member: str) -> None:
    await stage.joined("i", member)


async def _leaves(stage: Scene, member: str) -> None:
    await stage.left(member)


async def _is_replaced(stage: Scene, member: str) -> None:
    assert await stage.joined("i", syncs=False) != member


async def _times_out(stage: Scene, member: str) -> None:
    await asyncio.sleep(SESSION_MS / 1000 + 1)


async def _resigns(stage: Scene, member: str) -> None:
    await stage.coordinator.resign_all()


async def _leads_again(stage: Scene, member: str) -> None:
    await stage.coordinator.lead_all(epoch=1)


async def _loads(stage: Scene, member: str) -> None:
    number = partition_of(GROUP, 4)
    log = await stage.coordinator.storage.take_over_pairs(stage.coordinator.tp(number), None, 0)
    log.gate.clear()
    loading = asyncio.create_task(stage.coordinator.lead(number, 1))
    asyncio.get_running_loop().call_later(1, log.gate.set)
    stage.coordinator.stops.append(lambda: loading)
    await asyncio.sleep(0.01)


async def _stops(stage: Scene, member: str) -> None:
    await stage.coordinator.stop()


async def _grows(stage: Scene, member: str) -> None:
    """`__consumer_offsets` gets so many partitions that the group belongs to another one."""
    cluster = stage.coordinator.cluster
    topic = cluster.snapshot.topics[OFFSETS_TOPIC]
    count = next(n for n in range(5, 100) if partition_of(GROUP, n) >= 4)
    grown = dataclasses.replace(topic, partitions=topic.partitions[:1] * count)
    cluster.snapshot = dataclasses.replace(
        cluster.snapshot, topics=MappingProxyType({**cluster.snapshot.topics, OFFSETS_TOPIC: grown})
    )


#: What happens to a static member, and the error of its heartbeats from then on.
CHANGES = {
    "its next generation": (_next_generation, 22),
    "left": (_leaves, 25),
    "replaced by its next process": (_is_replaced, 82),
    "timed out": (_times_out, 25),
    "coordinator resigned": (_resigns, 16),
    "coordinator loading": (_loads, 0),
    "coordinator led again": (_leads_again, 0),
    "coordinator stopped": (_stops, 15),
    "group is another coordinator's": (_grows, 16),
}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("change", CHANGES)
async def test_fast_path_ends_when_its_conditions_change(change: str, version: int, virtual_clock: ManualClock) -> None:
    happens, expected = CHANGES[change]
    async with playing(virtual_clock) as stage:
        member = await stage.joined("i")
        heartbeat = stage.heartbeat(version, member, instance_id="i")
        again = heartbeat.remembered()
        assert again() == 0
        await happens(stage, member)
        assert again() is None
        assert heartbeat.usual() == expected


async def test_heartbeat_that_is_refused_is_not_remembered(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock) as stage:
        member = await stage.joined("i")
        for refused, code in (
            (stage.heartbeat(4, "nobody"), 25),
            (stage.heartbeat(4, member, generation=7), 22),
            (stage.heartbeat(4, "nobody", instance_id="i"), 82),
            (stage.heartbeat(4, member, instance_id="another"), 25),
        ):
            assert refused.usual() == code
            assert refused.handler.repeat(refused.context, refused.body) is None
        await stage.coordinator.resign_all()
        assert stage.heartbeat(4, member).handler.repeat(refused.context, refused.body) is None


async def test_session_restarts_with_each_heartbeat_on_the_fast_path(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock) as stage:
        member = await stage.joined()
        heartbeat = stage.heartbeat(3, member)
        again = heartbeat.remembered()
        for _ in range(20):
            await asyncio.sleep(0.7 * SESSION_MS / 1000)
            assert again() in (0, None)
            if again() is None:  # the timer had to be set again
                assert heartbeat.usual() == 0
        assert heartbeat.usual() == again() == 0
        connection = await stage.connect()

        async def members() -> int:
            (group,) = (await connection.call(Api.DescribeGroups, 4, groups=[GROUP])).groups
            return len(group.members)

        await asyncio.sleep(SESSION_MS / 1000 - 0.05)
        assert await members() == 1
        await asyncio.sleep(0.1)
        assert await members() == 0
