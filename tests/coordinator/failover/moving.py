"""Coordinators over one log that is fenced by epochs, as for brokers of one data folder, under a virtual clock.

    shared = SharedLogs()
    a, b = MovedCoordinator(clock, shared), MovedCoordinator(clock, shared)
    await a.leads(0)                # notified through a cluster's view, like a broker, and taken over
    await a.commit(5)               # "none"
    await b.leads(1)                # fences a, which does not know it yet
    await a.commit(6)               # "not_coordinator"

A process that dies loses only its coordinator: create another one over the same `shared`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from coordinator.groups.placement import partition_of
from kernel.broker.cluster.cluster_view import ClusterSnapshot, Leadership
from kernel.broker.cluster.leading import Leading
from kernel.broker.storage.errors import Fenced, StorageError
from kernel.clock import Clock
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import NODE, LoneCoordinator, MemoryLog
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer

GROUP = "g"
PARTITIONS = 4
NUMBER = partition_of(GROUP, PARTITIONS)
TP = TopicPartition(OFFSETS_TOPIC, NUMBER)
TOPIC_ID = uuid.UUID(int=1)
TOPIC_ID_OF_T = uuid.UUID(int=2)
SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "group.initial.rebalance.delay.ms": "50",
    "group.min.session.timeout.ms": "100",
}
SESSION_MS = 10_000
TOPIC_PARTITIONS = 50
JOIN = {
    "group_id": GROUP,
    "session_timeout": SESSION_MS,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}


class SharedLogs:
    """The durable pairs, and the highest epoch that took over, which may write."""

    def __init__(self) -> None:
        self.pairs: dict[bytes, bytes] = {}
        self.epoch = -1


class FencedLog(MemoryLog):
    """A log taken over at one epoch. The fence is checked when a write completes."""

    def __init__(self, shared: SharedLogs, epoch: int, gate: asyncio.Event) -> None:
        super().__init__(TP)
        self.pairs, self.gate = shared.pairs, gate
        self._shared, self._epoch = shared, epoch

    async def upsert(self, pairs: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int = -1) -> None:
        await self.gate.wait()
        if self._shared.epoch > self._epoch:
            raise Fenced(f"led at epoch {self._shared.epoch}")
        await super().upsert(pairs, timestamp_ms)


class FencedStorage:
    """A fake storage. While `gate` is cleared, loads and writes wait; the next loads raise `broken`."""

    def __init__(self, shared: SharedLogs) -> None:
        self._shared = shared
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken: list[StorageError] = []

    async def take_over_pairs(self, tp: TopicPartition, topic_id: uuid.UUID, leader_epoch: int) -> FencedLog:
        assert tp == TP
        if self._shared.epoch > leader_epoch:
            raise Fenced(f"led at epoch {self._shared.epoch}")
        self._shared.epoch = leader_epoch
        await self.gate.wait()
        if self.broken:
            raise self.broken.pop(0)
        return FencedLog(self._shared, leader_epoch, self.gate)

    def stop_log(self, tp: TopicPartition, failure: StorageError) -> None:
        raise AssertionError(f"{tp} has stopped: {failure}")

    def resign(self, tp: TopicPartition) -> None: ...


class MovedCoordinator:
    """One broker: a coordinator that learns of leadership from the broker's view."""

    def __init__(self, clock: Clock, shared: SharedLogs) -> None:
        self.storage = FencedStorage(shared)
        self.coordinator = LoneCoordinator(
            clock,
            SETTINGS,
            {"t": TOPIC_PARTITIONS},
            self.storage,  # type: ignore[arg-type]  # its face
            topic_ids={"t": TOPIC_ID_OF_T},
        )
        self.leading = Leading(NODE, ListTracer(clock=clock))
        self.leading.subscribe(self.coordinator.listener, lambda _: True)

    def sees(self, epoch: int | None) -> None:
        """Update the view: this broker leads at this epoch, or (None) does not lead."""
        wanted = {} if epoch is None else {TP: Leadership(TP, TOPIC_ID, epoch)}
        self.leading.want(wanted, ClusterSnapshot())

    async def leads(self, epoch: int | None) -> None:
        """As `sees`, and wait until all listeners have been notified."""
        self.sees(epoch)
        await self.leading.settled()

    async def stop(self) -> None:
        self.storage.gate.set()
        self.sees(None)
        await self.leading.settled()
        await self.coordinator.stop()

    # -- requests ---------------------------------------------------------------------------------------------------

    async def ask(self, api: Api, version: int, **body: Any) -> Any:
        """Send a request on a new connection, so that it never waits behind a parked one."""
        connection = await self.coordinator.connect("c")
        return await connection.call(api, version, **body)

    async def commit(self, offset: int, member_id: str = "", generation: int = -1, *, partition: int = 0) -> str:
        partitions = [{"partition_index": partition, "committed_offset": offset}]
        answer = await self.ask(
            Api.OffsetCommit,
            8,
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[{"name": "t", "partitions": partitions}],
        )
        return str(answer.topics[0].partitions[0].error_code.name)

    async def committed(self) -> int | str:
        """The committed offset, or the error."""
        topics = [{"name": "t", "partition_indexes": [0]}]
        answer = await self.ask(Api.OffsetFetch, 7, group_id=GROUP, topics=topics)
        name = str(answer.error_code.name)
        return int(answer.topics[0].partitions[0].committed_offset) if name == "none" else name

    async def all_committed(self) -> dict[int, int]:
        """All committed offsets, by partition."""
        answer = await self.ask(Api.OffsetFetch, 7, group_id=GROUP, topics=None)
        assert answer.error_code.name == "none", answer
        return {p.partition_index: p.committed_offset for topic in answer.topics for p in topic.partitions}

    async def heartbeat(self, member_id: str, generation: int) -> str:
        body = {"group_id": GROUP, "member_id": member_id, "generation_id": generation}
        return str((await self.ask(Api.Heartbeat, 3, **body)).error_code.name)

    async def sync(self, member_id: str, generation: int, **assignments: bytes) -> Any:
        given = [{"member_id": member, "assignment": data} for member, data in assignments.items()]
        return await self.ask(
            Api.SyncGroup, 3, group_id=GROUP, member_id=member_id, generation_id=generation, assignments=given
        )

    async def join(self, member_id: str = "", instance_id: str | None = None) -> Any:
        """Join; repeated with the id if the first answer only contains one."""
        body = JOIN | {"group_instance_id": instance_id}
        answer = await self.ask(Api.JoinGroup, 5, **body, member_id=member_id)
        if answer.error_code.name == "member_id_required":
            answer = await self.ask(Api.JoinGroup, 5, **body, member_id=answer.member_id)
        return answer

    async def describe(self) -> tuple[str, list[str]]:
        """The group's state and its members' ids, or the error and no ids."""
        (group,) = (await self.ask(Api.DescribeGroups, 1, groups=[GROUP])).groups
        error = str(group.error_code.name)
        return (group.group_state if error == "none" else error), [member.member_id for member in group.members]

    async def stable(self) -> str:
        """Form a Stable group of one member at generation 1. Returns its id."""
        joined = await self.join()
        assert joined.generation_id == 1
        synced = await self.sync(joined.member_id, 1, **{joined.member_id: b"everything"})
        assert synced.assignment == b"everything"
        return str(joined.member_id)


@asynccontextmanager
async def two_coordinators(
    clock: ManualClock, shared: SharedLogs | None = None
) -> AsyncIterator[tuple[MovedCoordinator, MovedCoordinator]]:
    """Two brokers over one log, which is empty unless given."""
    logs = SharedLogs() if shared is None else shared
    a, b = MovedCoordinator(clock, logs), MovedCoordinator(clock, logs)
    try:
        yield a, b
    finally:
        await a.stop()
        await b.stop()
