"""One fetcher, and the leader finder, against a scripted broker.

Kafka's tests, under their names, are in `test_fetching_live.py` on a live broker.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from kernel.errors import MessageSizeTooLarge, Retriable, Unavailable
from kernel.platform.ports import free_ports
from kernel.tasks import cancel_and_wait
from kernel.values import NO_OFFSET, BrokerAddress, TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.zookeeper.errors import NoNode
from tests.support.brokers.scripted import ScriptedBroker, scripted_broker
from tests.support.trace.tracers import ListTracer
from zkconsumer.rebalance.effects import Claim
from zkconsumer.records.fetchers import Fetcher
from zkconsumer.records.leaders import FetcherManager, fetcher_id
from zkconsumer.records.streams import PartitionInfo, Stream
from zkconsumer.settings import ZkConsumerConfig

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def config(**settings: str) -> ZkConsumerConfig:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    base = {"zookeeper.connect": "unused", "group.id": "g", "auto.offset.reset": "smallest", "fetch.wait.max.ms": "10"}
    return ZkConsumerConfig.from_settings({**base, "refresh.leader.backoff.ms": "5", **given})[0]


def stream(*, chunks_max: int = 2, number: int = 0) -> Stream:
    return Stream(f"g_c-{number}", chunks_max, asyncio.Event())


def info(tp: TopicPartition, into: Stream, offset: int = 0) -> PartitionInfo:
    return PartitionInfo.of(Claim(tp.topic, tp.partition, into.thread, offset), into)


async def records_of(into: Stream, number: int) -> list[tuple[int, int]]:
    """[(partition, offset)] of the next `number` records."""
    got: list[tuple[int, int]] = []

    def enough() -> bool:
        while (batch := into.take(number - len(got))) is not None:
            got.extend((record.partition, record.offset) for record in batch.records)
            if len(got) == number:
                return True
        return False

    await until(enough, 60, lambda: f"{number} records, got {got}")
    return got


class Fetching:
    """A running fetcher and the partitions that it gave back."""

    def __init__(self, broker: ScriptedBroker, **settings: str) -> None:
        self.tracer = ListTracer()
        self.given_back: list[TopicPartition] = []
        self.fetcher = Fetcher(broker.address, config(**settings), self.tracer, "g_c", self.take_back)

    def take_back(self, infos: Iterable[PartitionInfo]) -> None:
        self.given_back += [one.topic_partition for one in infos]

    def traced(self, kind: str) -> list[tuple[int, int]]:
        return [(event["partition"], event["offset"]) for event in self.tracer.of(kind)]


@asynccontextmanager
async def fetching(broker: ScriptedBroker, **settings: str) -> AsyncIterator[Fetching]:
    made = Fetching(broker, **settings)
    task = asyncio.create_task(made.fetcher.run())
    try:
        yield made
    finally:
        await cancel_and_wait(task)


async def test_partitions_are_fetched_together_and_each_continues_after_its_records():
    async with scripted_broker() as broker, fetching(broker) as f:
        broker.log("t", 0).append(b"a", b"b")
        broker.log("t", 1).append(b"c", codec="gzip")
        queue = stream(chunks_max=10)
        one, two = info(A, queue), info(B, queue)
        await f.fetcher.add([one, two])
        assert sorted(await records_of(queue, 3)) == [(0, 0), (0, 1), (1, 0)]
        await until(lambda: broker.fetches[-1] == {A: 2, B: 1}, 60, "a fetch after the received records")
        assert broker.fetches[0] == {A: 0, B: 0}
        assert (one.fetched, one.consumed, two.fetched) == (2, 2, 1)
        assert f.traced("position_started") == [(0, 0), (1, 0)]
        assert await f.fetcher.count() == 2


async def test_receive_buffer_setting_is_applied():
    async with scripted_broker() as broker, fetching(broker, socket_receive_buffer_bytes="50000") as f:
        broker.log("t", 0)
        await f.fetcher.add([info(A, stream(), NO_OFFSET)])
        connection = f.fetcher._connection
        assert connection is not None
        asked_for = connection._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert asked_for in (50_000, 100_000)  # Linux doubles it for its own use


async def test_partition_added_twice_keeps_its_offset():
    async with scripted_broker() as broker, fetching(broker) as f:
        broker.log("t", 0).append(b"a", b"b")
        queue = stream()
        await f.fetcher.add([info(A, queue)])
        await records_of(queue, 2)
        await f.fetcher.add([info(A, queue, 0)])
        await until(lambda: len(broker.fetches) > 3, 60, "more fetches")
        assert broker.fetches[-1] == {A: 2}
        assert queue.take(10) is None


@pytest.mark.parametrize(("reset", "timestamp", "begin"), [("smallest", -2, 3), ("largest", -1, 5)])
async def test_offset_out_of_range_resets_both_offsets_by_the_setting(reset, timestamp, begin):
    """Both when the partition is added (nothing was committed) and in a response."""
    async with scripted_broker() as broker, fetching(broker, auto_offset_reset=reset) as f:
        for partition in (0, 1):
            log = broker.log("t", partition)
            log.append(b"gone", b"gone", b"gone")
            log.append(b"a", b"b")
            log.start = 3
        queue = stream()
        unknown, too_high = info(A, queue, NO_OFFSET), info(B, queue, 100)
        await f.fetcher.add([unknown, too_high])
        await until(lambda: len(broker.resets) == 2, 60, "both to be reset")
        assert broker.resets == [{A: timestamp}, {B: timestamp}]
        await until(lambda: broker.fetches[-1] == {A: 5, B: 5}, 60, "fetches from there")
        assert (unknown.consumed, too_high.consumed) == (begin, begin)
        assert sorted(f.traced("position_reset")) == [(0, begin), (1, begin)]
        assert sorted(f.traced("position_started")) == [(0, begin), (1, 100)]


async def test_reset_that_fails_adds_nothing_or_gives_the_partition_back():
    async with scripted_broker() as broker, fetching(broker) as f:
        broker.log("t", 0).offsets_error = ErrorCode.not_leader_or_follower
        broker.log("t", 1).append(b"a")
        queue = stream()
        with pytest.raises(Retriable, match=r"does not know the offsets of t-0: NOT_LEADER_OR_FOLLOWER"):
            await f.fetcher.add([info(A, queue, NO_OFFSET), info(B, queue)])
        assert await f.fetcher.count() == 0
        await f.fetcher.add([info(A, queue, 100), info(B, queue)])
        await until(lambda: f.given_back == [A], 60, "the partition to be given back")
        assert await records_of(queue, 1) == [(1, 0)]
        assert await f.fetcher.count() == 1


async def test_error_gives_back_that_partition_only():
    async with scripted_broker() as broker, fetching(broker) as f:
        broker.log("t", 0).error = ErrorCode.not_leader_or_follower
        broker.log("t", 1).append(b"a")
        queue = stream()
        await f.fetcher.add([info(A, queue), info(B, queue)])
        assert await records_of(queue, 1) == [(1, 0)]
        assert f.given_back == [A]
        refused = [(event["partition"], event["error"]) for event in f.tracer.of("fetch_refused")]
        assert refused == [(0, "NOT_LEADER_OR_FOLLOWER")]
        await until(lambda: broker.fetches[-1] == {B: 1}, 60, "a fetch without it")


async def test_request_that_fails_is_repeated_once_on_a_new_connection():
    """SimpleConsumer.sendRequest: one failure gives nothing back, two give everything back."""
    async with scripted_broker() as broker, fetching(broker) as f:
        broker.log("t", 0).append(b"a")
        queue = stream()
        broker.breaks = 1
        await f.fetcher.add([info(A, queue), info(B, queue)])
        assert await records_of(queue, 1) == [(0, 0)]
        assert len(broker.connections) == 2
        assert f.given_back == [B], "B has no log here"
        broker.breaks = 2
        await until(lambda: f.given_back == [B, A], 60, "all partitions to be given back")
        assert await f.fetcher.count() == 0


def blocked(queue):
    """Whether a fetcher waits for room in the queue."""
    return bool(queue._chunks._putters)


async def test_slow_stream_stalls_the_other_partitions_and_callers_of_its_fetcher():
    async with scripted_broker() as broker, fetching(broker, fetch_message_max_bytes="100") as f:
        slow, quick = stream(chunks_max=1, number=0), stream(chunks_max=1, number=1)
        for _ in range(3):
            broker.log("t", 0).append(b"a")
        await f.fetcher.add([info(A, slow)])
        await until(lambda: blocked(slow), 60, "the fetcher to be stuck")
        assert len(broker.fetches) == 2
        broker.log("t", 1).append(b"b")
        adding = asyncio.create_task(f.fetcher.add([info(B, quick)]))
        counting = asyncio.create_task(f.fetcher.count())
        done, _ = await asyncio.wait({adding, counting}, timeout=0.1)
        assert not done
        assert len(broker.fetches) == 2, "it sends no request while it waits"
        assert await records_of(slow, 1) == [(0, 0)]
        await asyncio.wait_for(asyncio.gather(adding, counting), 60)
        await until(lambda: broker.fetches[-1] == {A: 2, B: 0}, 60, "a fetch of both")
        assert quick.take(1) is None, "it arrived, but behind a chunk for the slow stream"
        assert await records_of(slow, 1) == [(0, 1)]
        assert await records_of(quick, 1) == [(1, 0)]


async def test_fetcher_that_waits_for_room_is_interrupted_there():
    async with scripted_broker() as broker:
        queue = stream(chunks_max=1)
        partition = info(A, queue)
        async with fetching(broker, fetch_message_max_bytes="100") as f:
            for _ in range(3):
                broker.log("t", 0).append(b"a")
            await f.fetcher.add([partition])
            await until(lambda: blocked(queue), 60, "the fetcher to be stuck")
            assert len(broker.fetches) == 2
        assert partition.fetched == 1, "what was not queued was not fetched"
        assert await records_of(queue, 1) == [(0, 0)]
        assert queue.take(1) is None


async def test_message_above_the_limit_is_queued_without_records_until_its_stream_is_full():
    """Also if its partition is the first of the request, the only one that gets a batch above the limit."""
    async with scripted_broker() as broker, fetching(broker, fetch_message_max_bytes="300") as f:
        quick, stuck = stream(chunks_max=50, number=0), stream(chunks_max=2, number=1)
        broker.log("t", 1).append(b"large", padding=500)
        for _ in range(20):
            broker.log("t", 0).append(b"a", padding=100)
        await f.fetcher.add([info(A, quick), info(B, stuck)])
        await until(stuck._chunks.full, 60, "the stream to fill")
        assert stuck.take(10) is None
        with pytest.raises(MessageSizeTooLarge, match=r"t-1 .*fetch\.message\.max\.bytes=300"):
            stuck.raise_failure()
        stuck.raise_failure()  # raised once
        assert stuck.take(10) is None


# -- the leader finder ---------------------------------------------------------------------------------------------


class Registered:
    """A fake `Watcher` with the two reads that the leader finder uses."""

    def __init__(self, *brokers: BrokerAddress) -> None:
        self.brokers = {str(broker.node_id): broker for broker in brokers}
        self.reads = 0

    async def children(self, _path: str, *, step: str) -> list[str]:
        assert step == "leader-finder"
        self.reads += 1
        return list(self.brokers)

    async def get(self, path: str, *, step: str) -> bytes:
        assert step == "leader-finder"
        self.reads += 1
        broker = self.brokers.get(path.rsplit("/", 1)[1])
        if broker is None:
            raise NoNode(path)
        return json.dumps({"version": 1, "host": broker.host, "port": broker.port, "jmx_port": -1}).encode()


class Managed:
    """A manager of fetchers and the tasks that it started."""

    def __init__(self, *brokers: BrokerAddress, **settings: str) -> None:
        self.registered = Registered(*brokers)
        self.tasks: list[asyncio.Task[None]] = []
        self.tracer = ListTracer()
        self.manager = FetcherManager(self.registered, config(**settings), self.tracer, "g_c", self.spawn)

    def spawn(self, work):
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.manager.close()
        assert all(task.done() for task in self.tasks)

    def fetchers(self) -> list[int]:
        """The node ids of the fetchers' brokers, one for each fetcher."""
        return sorted(broker.node_id for broker, _ in self.manager._fetchers)


async def test_partition_without_a_leader_waits_and_the_others_are_fetched():
    """KAFKA-693. Each lookup costs a read for the names of the brokers and one for each broker."""
    async with scripted_broker() as broker, Managed(broker.address) as managed:
        broker.log("t", 0).append(b"a")
        broker.log("t", 1).append(b"b")
        broker.leaders = {A: broker.address, B: None}
        queue = stream()
        managed.manager.start([info(A, queue), info(B, queue)])
        assert await records_of(queue, 1) == [(0, 0)]
        await until(lambda: len(broker.lookups) >= 3, 60, "lookups of the other leader")
        assert managed.fetchers() == [1]
        assert abs(managed.registered.reads - 2 * len(broker.lookups)) <= 2
        broker.leaders[B] = broker.address
        assert await records_of(queue, 1) == [(1, 0)]
        looks = len(broker.lookups)
        fetches = len(broker.fetches)
        await until(lambda: len(broker.fetches) > fetches + 5, 60, "fetches to go on")
        assert len(broker.lookups) == looks, "no lookups while every partition has a leader"


async def test_leader_that_moves_is_followed_and_the_idle_fetcher_ended():
    async with scripted_broker(1) as old, scripted_broker(2) as new, Managed(old.address, new.address) as managed:
        queue = stream()
        old.log("t", 0).append(b"a")
        old.leaders = new.leaders = {A: old.address}
        managed.manager.start([info(A, queue)])
        assert await records_of(queue, 1) == [(0, 0)]
        assert managed.fetchers() == [1]
        new.logs[A] = old.logs.pop(A)
        new.log("t", 0).append(b"b")
        new.leaders[A] = new.address
        old.log("t", 0).error = ErrorCode.not_leader_or_follower
        assert await records_of(queue, 1) == [(0, 1)]
        await until(lambda: managed.fetchers() == [2], 60, "the idle fetcher to end")


async def test_broker_that_cannot_be_reached_leaves_its_partitions_looking_and_the_others_fetched():
    (unused_port,) = free_ports(1)
    dead = BrokerAddress(9, "127.0.0.1", unused_port)
    async with scripted_broker() as broker, Managed(broker.address, dead) as managed:
        queue = stream()
        broker.log("t", 0).append(b"a")
        broker.leaders = {A: broker.address, B: dead}
        managed.manager.start([info(A, queue), info(B, queue, NO_OFFSET)])
        assert await records_of(queue, 1) == [(0, 0)]
        await until(lambda: len(broker.lookups) >= 3, 60, "lookups of a leader that answers")
        assert broker.fetches[-1] == {A: 1}
        broker.log("t", 1).append(b"b")
        broker.leaders[B] = broker.address
        assert await records_of(queue, 1) == [(1, 0)]


async def test_no_registered_broker_is_waited_out(caplog):
    async with scripted_broker() as broker, Managed() as managed:
        queue = stream()
        broker.log("t", 0).append(b"a")
        broker.leaders = {A: broker.address}
        managed.manager.start([info(A, queue)])
        await until(lambda: managed.registered.reads >= 3, 60, "reads of an empty list")
        managed.registered.brokers["1"] = broker.address
        assert await records_of(queue, 1) == [(0, 0)]


async def test_stop_ends_a_finder_that_waits_for_a_fetcher_that_waits_for_a_stream():
    """In the order finder, fetchers; what was fetched and not queued is fetched again after a start."""
    async with scripted_broker() as broker, Managed(broker.address, fetch_message_max_bytes="100") as managed:
        slow = stream(chunks_max=1)
        for _ in range(3):
            broker.log("t", 0).append(b"a")
        broker.leaders = {A: broker.address, B: None}
        first, second = info(A, slow), info(B, slow)
        managed.manager.start([first, second])
        await until(lambda: blocked(slow), 60, "the fetcher to be stuck")
        looks = len(broker.lookups)
        broker.leaders[B] = broker.address
        await asyncio.wait_for(managed.manager.stop(), 60)
        assert len(broker.lookups) <= looks + 1, "the finder waited as well"
        assert managed.fetchers() == []
        assert all(task.done() for task in managed.tasks)
        slow.clear()
        fetched = len(broker.fetches)
        again = info(A, slow, first.consumed)
        managed.manager.start([again])
        assert await records_of(slow, 3) == [(0, 0), (0, 1), (0, 2)]
        assert broker.fetches[fetched] == {A: 0}


async def test_number_of_fetchers_for_a_broker_follows_the_setting():
    """Partition p of a topic goes to fetcher |31 * hash(topic) + p| mod n, and one slow stream stalls only its own."""
    assert {fetcher_id(tp, 2) for tp in (A, B)} == {0, 1}
    async with (
        scripted_broker() as broker,
        Managed(broker.address, fetch_message_max_bytes="100", num_consumer_fetchers="2") as managed,
    ):
        slow, quick = stream(chunks_max=1, number=0), stream(chunks_max=1, number=1)
        for _ in range(4):
            broker.log("t", 0).append(b"a")
            broker.log("t", 1).append(b"b")
        broker.leaders = {A: broker.address, B: broker.address}
        managed.manager.start([info(A, slow), info(B, quick)])
        assert await records_of(quick, 4) == [(1, 0), (1, 1), (1, 2), (1, 3)]
        assert managed.fetchers() == [1, 1]
        assert all(len(fetch) == 1 for fetch in broker.fetches)
        assert await records_of(slow, 4) == [(0, 0), (0, 1), (0, 2), (0, 3)]


async def test_unanswered_lookup_is_repeated():
    (unused_port,) = free_ports(1)
    async with Managed(BrokerAddress(1, "127.0.0.1", unused_port)) as managed:
        managed.manager.start([info(A, stream())])
        await until(lambda: managed.registered.reads >= 6, 60, "three lookups")
        with pytest.raises(Unavailable):
            await managed.manager._find_once()
