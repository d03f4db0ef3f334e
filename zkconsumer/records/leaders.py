"""Starting and stopping the fetchers, and the leader finder that hands them their partitions.

Source: ConsumerFetcherManager, Kafka 0.8.2. A start makes a new leader finder with all partitions "without a
leader". It reads the brokers from ZooKeeper (1 + B reads a look), asks one of them for the leaders, and adds what
it found to the fetchers of those brokers; what has no leader just waits (KAFKA-693: it fails no rebalance), and what
a fetcher cannot take goes back to those. Then it ends fetchers without partitions, and after
`refresh.leader.backoff.ms` looks again if anything has no leader. It waits while a fetcher that it adds to, or
counts, waits for room in a stream's queue.

A stop ends the leader finder first, since it would start fetchers again. Wherever one of them waits, it is
interrupted there: a fetcher that is blocked by a slow stream holds up no rebalance (KAFKA-832).
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING

from kernel.client.client import ClusterClient
from kernel.errors import RebalanceLabError, Unavailable
from kernel.java_hash import java_hash, kafka_abs, signed
from zkconsumer.records.fetchers import Fetcher
from zkconsumer.watching.brokers import read_brokers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from kernel.trace.writer import Tracer
    from kernel.values import BrokerAddress, TopicPartition
    from zkconsumer.records.streams import PartitionInfo
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watching

log = logging.getLogger(__name__)


class FetcherManager:
    """All fetching of one consumer. (The name is the original's: ConsumerFetcherManager.)"""

    def __init__(
        self,
        watching: Watching,
        config: ZkConsumerConfig,
        tracer: Tracer,
        member: str,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
    ) -> None:
        self._watching = watching
        self._config = config
        self._tracer = tracer
        self._member = member
        self._spawn = spawn
        self._random = Random(f"{config.seed}:{member}")  # an order, not a secret
        self._client: ClusterClient | None = None
        self._without_leader: dict[TopicPartition, PartitionInfo] = {}
        self._lost = asyncio.Event()
        self._finder: asyncio.Task[None] | None = None
        self._fetchers: dict[tuple[BrokerAddress, int], tuple[Fetcher, asyncio.Task[None]]] = {}

    def start(self, infos: Iterable[PartitionInfo]) -> None:
        """Begin to fetch these; needs a `stop` first."""
        assert self._finder is None, "fetchers are started once"
        self._give_back(infos)
        self._finder = self._spawn(self._find_leaders())

    async def stop(self) -> None:
        """Nothing is fetched or queued any more when this returns."""
        finder, self._finder = self._finder, None
        if finder is not None:
            await _ended([finder])
        tasks = [task for _, task in self._fetchers.values()]
        self._fetchers.clear()
        await _ended(tasks)
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
                await self._look_once()
            except RebalanceLabError as error:
                log.info("no leader for %d partitions yet: %s", len(self._without_leader), error)
            await self._end_idle()
            await asyncio.sleep(self._config.refresh_leader_backoff_ms / 1000)

    async def _look_once(self) -> None:
        brokers = await read_brokers(self._watching, step="leader-finder")
        if not brokers:
            raise Unavailable("no broker is registered")
        client = self._asking(brokers)
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
                log.info("%d partitions were not added to %s: %s", len(infos), fetcher.broker, error)
                self._give_back(infos)

    def _asking(self, brokers: list[BrokerAddress]) -> ClusterClient:
        """The brokers in a new order each time, as the original asks them; an open connection is used first."""
        addresses = [(broker.host, broker.port) for broker in brokers]
        self._random.shuffle(addresses)
        if self._client is None:
            self._client = ClusterClient(addresses, self._config.client_id, self._tracer)
            self._client.member = self._member
        self._client.bootstrap = tuple(addresses)
        return self._client

    def _fetcher(self, broker: BrokerAddress, tp: TopicPartition) -> Fetcher:
        # By address, not by id alone: a broker that came back elsewhere needs a fetcher that knows where.
        key = (broker, fetcher_id(tp, self._config.num_consumer_fetchers))
        if key not in self._fetchers:
            fetcher = Fetcher(broker, self._config, self._tracer, self._member, self._give_back)
            self._fetchers[key] = fetcher, self._spawn(fetcher.run())
        return self._fetchers[key][0]

    async def _end_idle(self) -> None:
        for key, (fetcher, task) in list(self._fetchers.items()):
            if await fetcher.count() == 0:
                del self._fetchers[key]
                await _ended([task])


def fetcher_id(tp: TopicPartition, fetchers: int) -> int:
    """Which of a broker's fetchers a partition goes to: Utils.abs(31 * topic.hashCode + partition) % fetchers."""
    return kafka_abs(signed(31 * java_hash(tp.topic) + tp.partition)) % fetchers


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
