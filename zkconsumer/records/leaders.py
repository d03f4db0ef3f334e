"""Starts and stops the fetchers; the leader finder assigns partitions to them.

Source: ConsumerFetcherManager, Kafka 0.8.2. A start creates a new leader finder with all partitions "without a
leader". In each round it reads the brokers from ZooKeeper (1 + B reads), asks one of them for the leaders, and adds the
partitions to the fetchers of their leaders. A partition without a leader waits (KAFKA-693: it fails no rebalance), as
does one that a fetcher cannot take. Then it stops fetchers without partitions, and after `refresh.leader.backoff.ms`
starts another round if any partition has no leader. It blocks while a fetcher that it adds to, or counts, waits for
room in a stream's queue.

A stop ends the leader finder first, since it would start fetchers again. All of them are interrupted wherever they
wait, so a fetcher that is blocked by a slow stream does not delay a rebalance (KAFKA-832).
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING

from kernel.client.client import ClusterClient
from kernel.errors import RebalanceLabError, Unavailable
from kernel.java_hash import java_hash, kafka_abs, signed
from kernel.tasks import cancel_and_wait
from zkconsumer.records.fetchers import Fetcher
from zkconsumer.watching.brokers import read_brokers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from kernel.trace.writer import Tracer
    from kernel.values import BrokerAddress, TopicPartition
    from zkconsumer.records.streams import PartitionInfo
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watcher

log = logging.getLogger(__name__)

#: The version of a broker's node that 0.10.1 writes. We fetch by Fetch 4, which came with 0.11; of 0.10.2, which writes
#: the same version as 0.11, the failure to fetch says so.
_TOO_OLD = 3


class FetcherManager:
    """All fetching of one consumer. (The name is the original's: ConsumerFetcherManager.)"""

    def __init__(
        self,
        watcher: Watcher,
        config: ZkConsumerConfig,
        tracer: Tracer,
        member: str,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
    ) -> None:
        self._watcher = watcher
        self._config = config
        self._tracer = tracer
        self._member = member
        self._spawn = spawn
        self._random = Random(f"{config.seed}:{member}")  # for an order, not for a secret
        self._client: ClusterClient | None = None
        self._warned: set[BrokerAddress] = set()
        self._without_leader: dict[TopicPartition, PartitionInfo] = {}
        self._lost = asyncio.Event()
        self._finder: asyncio.Task[None] | None = None
        self._fetchers: dict[tuple[BrokerAddress, int], tuple[Fetcher, asyncio.Task[None]]] = {}

    def start(self, infos: Iterable[PartitionInfo]) -> None:
        """Start to fetch these partitions. Must not be called again without a `stop`."""
        assert self._finder is None, "the fetchers are running already"
        self._give_back(infos)
        self._finder = self._spawn(self._find_leaders())

    async def stop(self) -> None:
        """Stop everything; nothing is fetched or queued after this returns."""
        finder, self._finder = self._finder, None
        if finder is not None:
            await cancel_and_wait(finder)
        tasks = [task for _, task in self._fetchers.values()]
        self._fetchers.clear()
        await cancel_and_wait(*tasks)
        self._without_leader.clear()

    async def close(self) -> None:
        """Stop for good."""
        await self.stop()
        if self._client is not None:
            await self._client.close()

    def _give_back(self, infos: Iterable[PartitionInfo]) -> None:
        self._without_leader.update({info.topic_partition: info for info in infos})
        self._lost.set()

    async def _find_leaders(self) -> None:
        while True:
            if not self._without_leader:
                self._lost.clear()
                await self._lost.wait()
            try:
                await self._find_once()
            except RebalanceLabError as error:
                log.info("no leaders for %d partitions yet: %s", len(self._without_leader), error)
            await self._end_idle()
            await asyncio.sleep(self._config.refresh_leader_backoff_ms / 1000)

    async def _find_once(self) -> None:
        brokers = await read_brokers(self._watcher, step="leader-finder", aged=self._warn_of_old)
        if not brokers:
            raise Unavailable("no broker is registered")
        client = self._client_for(brokers)
        metadata = await client.refresh(
            {tp.topic for tp in self._without_leader}, timeout_ms=self._config.socket_timeout_ms
        )
        found: dict[Fetcher, list[PartitionInfo]] = {}
        for tp, info in list(self._without_leader.items()):
            leader = client.leader_of(tp)
            broker = None if leader is None else metadata.brokers.get(leader)
            if broker is not None:
                del self._without_leader[tp]
                found.setdefault(self._fetcher(broker, tp), []).append(info)
        for fetcher, infos in found.items():
            try:
                await fetcher.add(infos)
            except RebalanceLabError as error:
                log.info("could not add %d partitions to %s: %s", len(infos), fetcher.broker, error)
                self._give_back(infos)

    def _warn_of_old(self, broker: BrokerAddress, version: int) -> None:
        if version > _TOO_OLD or broker in self._warned:
            return
        self._warned.add(broker)
        log.warning(
            "%s is older than Kafka 0.11 (version %d of its node in ZooKeeper) and does not understand our requests: "
            "its partitions are claimed, and nothing is delivered from them; use a broker of 0.11 or later",
            broker,
            version,
        )

    def _client_for(self, brokers: list[BrokerAddress]) -> ClusterClient:
        """A client that tries the brokers in a new random order, as the original does, after any open connection."""
        addresses = [(broker.host, broker.port) for broker in brokers]
        self._random.shuffle(addresses)
        if self._client is None:
            self._client = ClusterClient(addresses, self._config.client_id, self._tracer)
            self._client.member = self._member
        self._client.bootstrap = tuple(addresses)
        return self._client

    def _fetcher(self, broker: BrokerAddress, tp: TopicPartition) -> Fetcher:
        # By address, not only by id: a broker that returned at another address needs a new fetcher.
        key = (broker, fetcher_id(tp, self._config.num_consumer_fetchers))
        if key not in self._fetchers:
            fetcher = Fetcher(broker, self._config, self._tracer, self._member, self._give_back)
            self._fetchers[key] = fetcher, self._spawn(fetcher.run())
        return self._fetchers[key][0]

    async def _end_idle(self) -> None:
        for key, (fetcher, task) in list(self._fetchers.items()):
            if await fetcher.count() == 0:
                del self._fetchers[key]
                await cancel_and_wait(task)


def fetcher_id(tp: TopicPartition, fetchers: int) -> int:
    """Which of a broker's fetchers gets a partition: Utils.abs(31 * topic.hashCode + partition) % fetchers."""
    return kafka_abs(signed(31 * java_hash(tp.topic) + tp.partition)) % fetchers
