"""Offsets in Kafka, on our coordinator: members that start from them, dual commit, a coordinator that moves."""

from __future__ import annotations

import pytest

from coordinator.service import mount as service
from kernel.broker.broker import Broker
from kernel.values import NO_OFFSET, TopicPartition
from kernel.waiting import until
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.brokers.live import client_of, create_topics, running_broker, running_cluster
from tests.support.consumers.zookeeper import member, produce
from tests.support.zookeeper.sessions import opened
from tests.zkconsumer.offsets.offset_keepers import Keeper, keeper, stored, t

KAFKA = {"offsets_storage": "kafka", "offsets_channel_backoff_ms": "50"}
ONLY_KAFKA = {**KAFKA, "dual_commit_enabled": "false"}


async def in_kafka(broker: Broker, *partitions: int) -> list[int]:
    """The coordinator's offsets of the group for t-0, t-1, ..."""
    async with client_of(broker) as client:
        await client.refresh()
        connection = await client.any_connection()
        found = await connection.call(Api.FindCoordinator, {"key": "g"}, version=0)
        connection = await client.connection(found.node_id)
        topics = [{"name": "t", "partition_indexes": partitions}]
        answer = await connection.call(Api.OffsetFetch, {"group_id": "g", "topics": topics}, version=2)
        return [partition.committed_offset for partition in answer.topics[0].partitions]


async def committed(one: Keeper, expected: dict[TopicPartition, int]) -> None:
    """Commit, with retries: a new coordinator may still be loading, or not know of its role yet."""

    async def accepted() -> bool:
        return (await one.commit()).accepted == expected

    await until(accepted, 60, f"{expected} to be committed")


async def keep_in_kafka(chroot: str, offset: int) -> None:
    async with keeper(chroot, **ONLY_KAFKA) as one:
        one.own(offset)
        await committed(one, {t(0): offset})


@pytest.mark.parametrize(
    ("before", "kafka", "dual", "start"),
    [(30, 20, True, 30), (5, 20, True, 20), (30, 20, False, 20), (30, None, True, 30), (None, None, True, 0)],
)
async def test_member_starts_from_the_offsets_of_its_stores(chroot, tmp_path, before, kafka, dual, start):
    """With dual commit from the larger of both, like 0.8.2.2 on a 1.1.1 broker (30/20: 30, 5/20: 20)."""
    async with running_broker(chroot, tmp_path, mount=(service.mount,)) as broker, opened(chroot) as other:
        await create_topics(broker, {"t": 1})
        await produce(broker, "t", 1, range(40))
        if before is not None:
            await other.create(paths.offset("g", "t", 0), b"%d" % before, makepath=True)
        if kafka is not None:
            await keep_in_kafka(chroot, kafka)
        settings = KAFKA if dual else ONLY_KAFKA
        async with member(chroot, "c1", {"t": 1}, **settings) as c1:
            await until(lambda: c1.tracer.of("position_started"), 60, "the start")
            assert [event["offset"] for event in c1.tracer.of("position_started")] == [start]
            reads = [op for op in c1.operations() if op[2] == paths.offset("g", "t", 0)]
            assert reads == ([("R8", "getData", paths.offset("g", "t", 0))] if dual else [])
            await c1.read_until(40 - start)
        # The last commit was made by the shutdown, to the right store.
        assert await in_kafka(broker, 0) == [40]
        if dual:
            assert await stored(other) == 40
        elif before is not None:
            assert await stored(other) == before


async def test_next_owner_continues_at_kafkas_offset(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, mount=(service.mount,)) as broker:
        await create_topics(broker, {"t": 1})
        await produce(broker, "t", 1, range(10))
        async with member(chroot, "c1", {"t": 1}, **ONLY_KAFKA) as c1:
            await c1.read_until(10)
        await produce(broker, "t", 1, range(10, 20))
        async with member(chroot, "c2", {"t": 1}, **ONLY_KAFKA) as c2:
            await c2.read_until(10)
            assert c2.records == {t(0): list(range(10, 20))}
        async with opened(chroot) as other:
            assert await other.exists(paths.offsets("g")) is None


async def test_next_coordinator_is_found_after_one_ends(chroot, tmp_path):
    async with running_cluster(2, chroot, tmp_path, mount=(service.mount,)) as brokers:
        await create_topics(brokers[0], {"t": 2}, replication_factor=2)
        async with keeper(chroot, **ONLY_KAFKA) as one:
            one.own(-1, -1)
            one.move(5, NO_OFFSET)
            await committed(one, {t(0): 5})
            asked = next(e["broker"] for e in reversed(one.tracer.of("request_answered")))
            (lost,) = (broker for broker in brokers if broker.address.node_id == asked)
            (left,) = (broker for broker in brokers if broker is not lost)
            await lost.stop()
            one.move(7, 1)
            first = await one.commit()
            assert set(first.refused.values()) <= {"UNANSWERED", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"}
            await committed(one, {t(0): 7, t(1): 1})
            found = await one.offsets.fetch_stored((t(0), t(1)), lambda: False)
            assert found == {t(0): 7, t(1): 1}
            assert await in_kafka(left, 0, 1) == [7, 1]
