"""Fetching: one fetcher a broker (`num.consumer.fetchers` of them), which fills the streams' queues.

Source: AbstractFetcherThread and ConsumerFetcherThread, Kafka 0.8.2. A fetcher asks for all its partitions in
one request. It knows nothing of ZooKeeper: it is not stopped by a lost connection or an expired session, only by
`stop`. Putting into a full queue waits, and with it everything else that this fetcher fetches.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.broker.client import EARLIEST, LATEST, fetch, list_offset
from kernel.broker.connection import BrokerConnection
from kernel.errors import RebalanceLabError
from kernel.values import NO_OFFSET, BrokerAddress, TopicPartition
from zkconsumer.streams import Chunk, PartitionInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.broker.client import FetchedPartition
    from kernel.trace.writer import Tracer
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)

_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


@dataclass(slots=True)
class _Fetching:
    """A partition of a fetcher: `offset` is what is asked for next, NO_OFFSET until it is resolved."""

    info: PartitionInfo
    offset: int


class Fetcher:
    """Fetches from one broker; `give_back` gets the partitions that it cannot fetch any more."""

    def __init__(
        self,
        broker: BrokerAddress,
        config: ZkConsumerConfig,
        tracer: Tracer,
        member: str,
        give_back: Callable[[Iterable[PartitionInfo]], None],
    ) -> None:
        self.broker = broker
        self._config = config
        self._tracer = tracer
        self._member = member
        self._give_back = give_back
        self._partitions: dict[TopicPartition, _Fetching] = {}
        self._added = asyncio.Event()
        self._connection: BrokerConnection | None = None

    @property
    def idle(self) -> bool:
        return not self._partitions

    def add(self, info: PartitionInfo) -> None:
        """Fetch this one too, from where it stands; one that is here already keeps its offset."""
        self._partitions.setdefault(info.topic_partition, _Fetching(info, info.fetched))
        self._added.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                if self.idle:
                    self._added.clear()
                    await self._added.wait()
                await self._round()
        finally:
            await self._disconnect()

    async def _round(self) -> None:
        try:
            connection = await self._connected()
            await self._resolve(connection)
            # One that was added a moment ago may have to be resolved first.
            asked = {tp: f.offset for tp, f in self._partitions.items() if f.offset != NO_OFFSET}
            if not asked:
                return
            fetched = await fetch(
                connection,
                asked,
                max_wait_ms=self._config.fetch_wait_max_ms,
                min_bytes=self._config.fetch_min_bytes,
                partition_max_bytes=self._config.fetch_message_max_bytes,
                timeout_ms=self._config.socket_timeout_ms,
            )
        except RebalanceLabError as error:
            log.info("fetching from %s failed, looking for leaders anew: %s", self.broker, error)
            await self._disconnect()
            self._lose(list(self._partitions))
            return
        for tp, part in fetched.items():
            await self._take(tp, asked[tp], part)

    async def _take(self, tp: TopicPartition, asked: int, part: FetchedPartition) -> None:
        fetching = self._partitions.get(tp)
        if fetching is None or fetching.offset != asked:
            return
        info = fetching.info
        if part.error == _OUT_OF_RANGE:
            fetching.offset = NO_OFFSET
        elif part.error:
            log.info("%s on %s: %s, looking for its leader anew", tp, self.broker, part.error)
            self._lose([tp])
        else:
            assert info.fetched == asked, f"{tp} was fetched from {asked}, expected {info.fetched}"
            fetching.offset = part.next_offset
            if part.records:
                await info.stream.put(Chunk(info, asked, part.records))
            info.fetched = part.next_offset

    async def _resolve(self, connection: BrokerConnection) -> None:
        """Ask where partitions without a usable offset begin or end, and go on from there."""
        wanted = {tp: self._reset_to for tp, fetching in self._partitions.items() if fetching.offset == NO_OFFSET}
        answers: Mapping[TopicPartition, tuple[str, int]] = {}
        if wanted:
            answers = await list_offset(connection, wanted, timeout_ms=self._config.socket_timeout_ms)
        for tp, (error, offset) in answers.items():
            if error:
                log.info("where %s starts is not known: %s", tp, error)
                self._lose([tp])
                continue
            fetching = self._partitions[tp]
            fetching.offset = fetching.info.fetched = fetching.info.consumed = offset
            self._tell("position_reset", fetching.info, offset, reset=self._config.auto_offset_reset)
        for fetching in self._partitions.values():
            if not fetching.info.started and fetching.offset != NO_OFFSET:
                fetching.info.started = True
                self._tell("position_started", fetching.info, fetching.offset)

    @property
    def _reset_to(self) -> int:
        return EARLIEST if self._config.auto_offset_reset == "smallest" else LATEST

    def _tell(self, kind: str, info: PartitionInfo, offset: int, **more: str) -> None:
        tp = info.topic_partition
        stream = info.stream.number
        self._tracer.emit(
            kind,
            member=self._member,
            stream=stream,
            cause="",
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
            **more,
        )

    def _lose(self, partitions: Iterable[TopicPartition]) -> None:
        self._give_back([self._partitions.pop(tp).info for tp in partitions])

    async def _connected(self) -> BrokerConnection:
        if self._connection is None or self._connection.closed:
            self._connection = await BrokerConnection.open(
                self.broker.host,
                self.broker.port,
                self._config.client_id,
                timeout_ms=self._config.socket_timeout_ms,
                node_id=self.broker.node_id,
                tracer=self._tracer,
                receive_buffer_bytes=self._config.socket_receive_buffer_bytes,
            )
            self._connection.member = self._member
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            await connection.wait_closed()
