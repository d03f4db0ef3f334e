"""A member's fetching from live brokers, and Kafka's tests of it under their names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kernel.broker.broker import Broker
from kernel.errors import ConsumerTimeout, MessageSizeTooLarge, UserError
from kernel.records.records import NewRecord, build_batch
from kernel.serials import numbered_value, serial_of
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.kernel.broker.apis.test_data_plane import produce as produce_batch
from tests.support.brokers import live as cluster
from tests.support.brokers.live import client_of
from tests.support.consumers.zookeeper import SETTINGS, member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.records.iterators import StreamIterator
from zkconsumer.records.leaders import fetcher_id
from zkconsumer.settings import ZkConsumerConfig
from zkconsumer.znodes.filters import TopicFilter

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


async def fill(broker: Broker, tp: TopicPartition, serials: range, *, codec: str = "none", padding: int = 0) -> None:
    """Numbered records in one batch."""
    async with client_of(broker) as client:
        await client.refresh([tp.topic])
        leader = client.leader_of(tp)
        assert leader is not None
        records = [NewRecord(numbered_value(serial, b"x" * padding), None, 0) for serial in serials]
        error, _ = await produce_batch(await client.connection(leader), build_batch(records, codec=codec), tp)
        assert error == ""


async def serials_of(iterator: StreamIterator, number: int) -> list[tuple[int, int]]:
    """[(partition, serial)] of the next `number` records; it fetches in the background, so timeouts are retried."""
    got = []
    async with asyncio.timeout(60):
        while len(got) < number:
            try:
                record = await anext(iterator)
            except ConsumerTimeout:
                continue
            got.append((record.partition, serial_of(record.value)))
    return got


def numbered(partition: int, serials: range) -> list[tuple[int, int]]:
    return [(partition, serial) for serial in serials]


# -- AutoOffsetResetTest: a committed offset that is not in the log, which has ten records --------------------------


@pytest.mark.parametrize(
    ("committed", "reset", "expected"),
    [
        pytest.param(10_000, "smallest", 10, id="testResetToEarliestWhenOffsetTooHigh"),
        pytest.param(-1, "smallest", 10, id="testResetToEarliestWhenOffsetTooLow"),
        pytest.param(10_000, "largest", 0, id="testResetToLatestWhenOffsetTooHigh"),
        pytest.param(-1, "largest", 0, id="testResetToLatestWhenOffsetTooLow"),
    ],
)
async def test_auto_offset_reset(chroot, tmp_path, committed, reset, expected):
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as session:
        await produce(broker, "t", 1, range(10))
        await session.create(paths.offset("g", "t", 0), b"%d" % committed, makepath=True)
        given = {"auto_offset_reset": reset, "consumer_timeout_ms": "100"}
        async with member(chroot, "c1", {"t": 1}, **given) as c1:
            (iterator,) = c1.consumer.streams()
            await until(lambda: c1.tracer.of("position_reset"), 60, "the reset")
            assert await serials_of(iterator, expected) == numbered(0, range(expected))
            with pytest.raises(ConsumerTimeout):
                await anext(iterator)
            assert c1.consumer.position(ONE) == 10
            await produce(broker, "t", 1, range(10, 12))
            assert await serials_of(iterator, 2) == numbered(0, range(10, 12))


# -- FetcherTest and ZookeeperConsumerConnectorTest ------------------------------------------------------------------


async def test_fetcher(chroot, tmp_path):
    """FetcherTest.testFetcher: all records of two brokers arrive, then the queue is empty, and the same again."""
    async with cluster.running_cluster(2, chroot, tmp_path) as brokers:
        await cluster.create_topics(brokers[0], {"t": 2})
        async with member(chroot, "c1", {"t": 1}, consumer_timeout_ms="100") as c1:
            (iterator,) = c1.consumer.streams()
            for first in (0, 10):
                await produce(brokers[0], "t", 2, range(first, first + 10))
                got = await serials_of(iterator, 20)
                assert sorted(got) == numbered(0, range(first, first + 10)) + numbered(1, range(first, first + 10))
                with pytest.raises(ConsumerTimeout):
                    await anext(iterator)
            assert len(c1.consumer._fetchers._fetchers) == 2


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compression(chroot, tmp_path, codec):
    """testCompression, testCompressionSetConsumption: whole sets, and from the middle of one after a restart."""
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker:
        await fill(broker, ONE, range(200), codec=codec)
        async with member(chroot, "c1", {"t": 1}) as c1:
            (iterator,) = c1.consumer.streams()
            assert await serials_of(iterator, 150) == numbered(0, range(150))
        async with member(chroot, "c2", {"t": 1}) as c2:
            (iterator,) = c2.consumer.streams()
            await fill(broker, ONE, range(200, 220), codec=codec)
            assert await serials_of(iterator, 70) == numbered(0, range(150, 220))


# -- iterators of a consumer -----------------------------------------------------------------------------------------


async def test_streams_take_the_place_of_getmany_and_end_with_the_consumer(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker:
        async with member(chroot, "c1", {"t": 2}) as c1:
            await produce(broker, "t", 2, range(5))
            streams = c1.consumer.streams()
            assert [iterator.thread for iterator in streams] == ["g_c1-0", "g_c1-1"]
            assert c1.consumer.streams() is streams
            with pytest.raises(UserError, match="iterators"):
                await c1.consumer.getmany(timeout_ms=0)
            for partition, iterator in enumerate(streams):
                assert await serials_of(iterator, 5) == numbered(partition, range(5))
            waiting = [asyncio.create_task(anext(iterator, None)) for iterator in streams]
            await asyncio.sleep(0)
        assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [None, None]
        delivered = c1.tracer.of("records_delivered")
        assert [(e["stream"], e["first"], e["last"]) for e in delivered if e["stream"] == 1] == [
            (1, offset, offset) for offset in range(5)
        ]


async def test_prefetched_record_is_delivered_again_after_a_rebalance(chroot, tmp_path):
    """The original's one possible duplicate for each stream."""
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as session:
        await produce(broker, "t", 1, range(4))
        async with member(chroot, "c1", {"t": 1}) as c1:
            (iterator,) = c1.consumer.streams()
            assert await serials_of(iterator, 2) == numbered(0, range(2))
            assert await iterator.has_next()
            rebalances = c1.rebalances()
            async with member(chroot, "c2", {"t": 1}):
                await until(lambda: c1.rebalances() > rebalances, 60, "a rebalance")
            await until(lambda: c1.rebalances() > rebalances + 1, 10, "another partition after the other member left")
            await settled(session, shared("t", ("g_c1-0", range(1))))
            assert await serials_of(iterator, 3) == numbered(0, range(2, 3)) + numbered(0, range(2, 4))


async def test_stream_of_a_pattern_is_one_iterator_over_all_its_topics(chroot, tmp_path):
    """Also a topic that is created later; a consumer without a subscription has no streams yet."""
    async with running_broker(chroot, tmp_path, {"t1": 1, "t2": 1}) as broker:
        given = {"zookeeper.connect": chroot, "group.id": "g", "consumer.id": "c", "consumer.timeout.ms": "200"}
        config, _ = ZkConsumerConfig.from_settings({**SETTINGS, **given})
        consumer = ZooKeeperConsumer(config, tracer=SilentTracer(), process="c")
        try:
            await consumer.start()
            with pytest.raises(UserError, match="subscribe"):
                consumer.streams()
            await consumer.subscribe_pattern(TopicFilter.white("t.*"), 1)
            (iterator,) = consumer.streams()
            await broker.cluster.create_topic("t3", partitions=1, replication_factor=1)
            topics = [TopicPartition(f"t{number}", 0) for number in (1, 2, 3)]
            await until(lambda: consumer.assignment() == {0: frozenset(topics)}, 60, "the new topic")
            await until(lambda: all(broker.cluster.leads(tp) for tp in topics), 60, "the topics to be led")
            for number, tp in enumerate(topics):
                await fill(broker, tp, range(number, number + 1))
            assert sorted(await serials_of(iterator, 3)) == [(0, 0), (0, 1), (0, 2)]
            assert consumer.streams() == (iterator,)
        finally:
            await consumer.close()


# -- slow, large, without a leader -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("fetchers", "stalls"), [("1", True), ("2", False)])
async def test_slow_stream_stalls_what_its_fetcher_fetches_for_others(chroot, tmp_path, fetchers, stalls):
    """With one fetcher per broker; with two, each partition has its own here."""
    assert {fetcher_id(tp, 2) for tp in (ONE, TWO)} == {0, 1}
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker:
        for serial in range(8):  # a batch each: the queue holds two, the fetcher waits with the third
            for tp in (ONE, TWO):
                await fill(broker, tp, range(serial, serial + 1))
        given = {"fetch_message_max_bytes": "100", "num_consumer_fetchers": fetchers, "consumer_timeout_ms": "300"}
        async with member(chroot, "c1", {"t": 2}, **given) as c1:
            slow, quick = c1.consumer.streams()
            if stalls:
                assert await serials_of(quick, 2) == numbered(1, range(2))
                with pytest.raises(ConsumerTimeout):
                    assert [await anext(quick) for _ in range(6)]
                assert c1.consumer.position(TWO) in range(2, 5)
            else:
                assert await serials_of(quick, 8) == numbered(1, range(8))
            assert c1.consumer.position(ONE) == 0
            rest = c1.consumer.position(TWO)
            await asyncio.gather(serials_of(slow, 8), serials_of(quick, 8 - rest))
            assert (c1.consumer.position(ONE), c1.consumer.position(TWO)) == (8, 8)


async def test_message_above_the_limit_raises_at_its_stream_and_the_others_go_on(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 1, "u": 1}) as broker:
        await fill(broker, ONE, range(1), padding=500)
        given = {"fetch_message_max_bytes": "200", "num_consumer_fetchers": "2"}
        async with (
            member(chroot, "c1", {"t": 1, "u": 1}, group="g1", **given) as polling,
            member(chroot, "c2", {"t": 1, "u": 1}, group="g2", **given) as iterating,
        ):
            with pytest.raises(MessageSizeTooLarge, match="t-0"):
                await polling.read_until(1)
            stuck, free = iterating.consumer.streams()
            for _ in range(2):
                with pytest.raises(MessageSizeTooLarge):
                    await anext(stuck)
            other = TopicPartition("u", 0)
            assert {fetcher_id(tp, 2) for tp in (ONE, other)} == {0, 1}
            await fill(broker, other, range(2))
            await polling.read_until(2)
            assert polling.records == {other: [0, 1]}
            assert await serials_of(free, 2) == numbered(0, range(2))
            assert polling.consumer.position(ONE) == 0


async def fill_all(brokers: Sequence[Broker], partitions: int, serials: range) -> None:
    """By what the first broker says; any of them may lead, and may hear so from another one before it has read it."""
    wanted = [TopicPartition("t", partition) for partition in range(partitions)]
    await until(
        lambda: all(any(each.cluster.leads(tp) for each in brokers) for tp in wanted), 60, "brokers to lead all"
    )
    for tp in wanted:
        await fill(brokers[0], tp, serials)


async def test_leader_that_is_killed_is_replaced_without_a_rebalance(chroot, tmp_path):
    async with cluster.running_cluster(2, chroot, tmp_path) as (gone, stays), opened(chroot) as session:
        await cluster.create_topics(gone, {"t": 4}, replication_factor=2)
        await fill_all([stays, gone], 4, range(5))
        async with member(chroot, "c1", {"t": 1}, num_consumer_fetchers="2") as c1:
            await c1.read_until(20)
            rebalances, before = c1.rebalances(), await owners(session)
            assert {broker.node_id for broker, _ in c1.consumer._fetchers._fetchers} == {1, 2}
            await gone.stop()
            led = [TopicPartition("t", partition) for partition in range(4)]
            await until(lambda: all(stays.cluster.leads(tp) for tp in led), 60, "the other broker to lead all")
            await fill_all([stays], 4, range(5, 10))
            await c1.read_until(40)
            assert c1.records == {tp: list(range(10)) for tp in led}
            assert (c1.rebalances(), await owners(session)) == (rebalances, before)
            fetchers = c1.consumer._fetchers._fetchers
            await until(lambda: {broker.node_id for broker, _ in fetchers} == {2}, 60, "the idle fetcher to end")


async def test_partition_without_a_leader_is_claimed_and_read_when_it_has_one(chroot, tmp_path):
    """KAFKA-693: its broker is down while the member joins; the rebalance succeeds all the same."""
    async with cluster.running_broker(chroot, tmp_path, node_id=1) as stays, opened(chroot) as session:
        async with cluster.running_broker(chroot, tmp_path, node_id=2) as goes:
            assert await stays.cluster.until(lambda snapshot: len(snapshot.brokers) == 2, 5000)
            await cluster.create_topics(stays, {"t": 2})
            leaders = {p: stays.cluster.snapshot.topics["t"].partitions[p].leader for p in (0, 1)}
            assert sorted(leaders.values()) == [1, 2]
            await fill_all([stays, goes], 2, range(3))
        async with member(chroot, "c1", {"t": 1}) as c1:
            assert await owners(session) == shared("t", ("g_c1-0", range(2)))
            await c1.read_until(3)
            here, there = (TopicPartition("t", _led_by(leaders, node)) for node in (1, 2))
            assert c1.records == {here: [0, 1, 2]}
            rebalances = c1.rebalances()
            async with cluster.running_broker(chroot, tmp_path, node_id=2):
                await c1.read_until(6)
                assert c1.records[there] == [0, 1, 2]
                assert c1.rebalances() == rebalances


def _led_by(leaders: dict[int, int], node_id: int) -> int:
    return next(partition for partition, leader in leaders.items() if leader == node_id)
