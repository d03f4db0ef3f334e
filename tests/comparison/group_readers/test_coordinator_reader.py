"""A group as its coordinator describes it, in the requests of 0.9 too, and while there is no coordinator."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from comparison.consumers import CONSUMERS, ConsumerRequest
from comparison.group_readers.cluster import BEFORE_API_VERSIONS, CLIENT_ID
from comparison.group_readers.columns import GroupSeen
from comparison.group_readers.coordinator import CoordinatorReader
from coordinator.service.mount import mount
from kernel.client.client import ClusterClient
from kernel.errors import Unavailable
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker

T = [TopicPartition("t", number) for number in range(2)]


@pytest.mark.parametrize("offered", [None, BEFORE_API_VERSIONS])
async def test_members_owners_and_committed_offsets_are_the_coordinators(
    chroot: str, tmp_path: Path, offered: dict[int, tuple[int, int]] | None
) -> None:
    """Of 0.9 a group cannot be asked for all its offsets: those of its members' topics are asked for by name."""
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 2})
        address = (broker.address.host, broker.address.port)
        client = ClusterClient([address], CLIENT_ID, offered=offered)
        request = ConsumerRequest(process="m1", group="g", client_id="client", bootstrap=f"{address[0]}:{address[1]}")
        consumer = CONSUMERS["eager"].consumer(request, SilentTracer())
        reader = CoordinatorReader(client, "g")
        try:
            await consumer.start()
            await consumer.subscribe({"t": 1})
            seen: GroupSeen | None = None

            async def whole() -> bool:
                nonlocal seen
                await consumer.getmany(timeout_ms=50)
                with contextlib.suppress(Unavailable):  # the offsets topic is being created
                    seen = await reader.read()
                return seen is not None and seen.state == "Stable" and len(seen.partitions) == 2

            await until(whole, 30, lambda: f"an assignment: {seen}")
            assert await consumer.commit({T[0]: 0})
            seen = await reader.read()
            (member,) = seen.members
            assert (member.client, member.owned) == ("client", tuple(T))
            assert [(row.partition, row.current, row.end) for row in seen.partitions] == [(T[0], 0, 0), (T[1], None, 0)]
            assert seen.coordinator == f"{address[0]}:{address[1]} ({broker.address.node_id})"
            assert seen.strategy == "range"
        finally:
            await consumer.close()
            await client.close()


async def test_unknown_group_is_dead_and_has_nothing(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        client = ClusterClient([(broker.address.host, broker.address.port)], CLIENT_ID)
        reader = CoordinatorReader(client, "nobody")
        seen: GroupSeen | None = None

        async def read() -> bool:
            nonlocal seen
            try:
                seen = await reader.read()
            except Unavailable:  # its partition of the offsets topic is being created
                return False
            return True

        try:
            await until(read, 30, "a coordinator")
        finally:
            await client.close()
        assert seen is not None
        assert (seen.state, seen.members, seen.partitions) == ("Dead", (), ())


class _MovingCluster:
    """A client whose lookups name a dead broker first, and then its successor. Nothing else answers."""

    def __init__(self) -> None:
        self.lookups = 0
        self.asked: list[int] = []

    async def any_connection(self) -> _MovingCluster:
        return self

    def version_of(self, _api: Api) -> int:
        return 3

    async def call(self, _api: Api, _body: object, **_: object) -> SimpleNamespace:
        self.lookups += 1
        return SimpleNamespace(error_code=ErrorCode.none, node_id=self.lookups, host="127.0.0.1", port=9092)

    async def refresh(self, _topics: list[str]) -> None:
        return None

    async def connection(self, node_id: int) -> None:
        self.asked.append(node_id)
        raise Unavailable(f"broker {node_id} is dead")


async def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    cluster = _MovingCluster()
    reader = CoordinatorReader(cast("ClusterClient", cluster), "g")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await reader.read()
    assert cluster.asked == [1, 2]
