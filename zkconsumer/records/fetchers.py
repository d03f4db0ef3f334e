"""Fetchers fill the streams' queues: one for each broker, or `num.consumer.fetchers` of them.

Source: AbstractFetcherThread, ConsumerFetcherThread and SimpleConsumer, Kafka 0.8.2. A fetcher requests all its
partitions in one request. It knows nothing about ZooKeeper: a lost connection or an expired session does not stop it,
only `stop` does.

It locks its partitions while it handles a response, and so while it waits for room in a queue: a slow stream blocks
everything that this fetcher fetches, and the leader finder too when that adds or counts partitions here.

It sends one request at a time and retries a failed one once on a new connection; after that, all its partitions go
back to the leader finder. An offset out of range is reset at once according to `auto.offset.reset`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from kernel.client.connection import BrokerConnection
from kernel.client.reads import EARLIEST, LATEST, fetch_bytes, list_offset
from kernel.errors import RebalanceLabError, Retriable
from zkconsumer.records.chunks import chunk_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from kernel.client.reads import FetchedBytes
    from kernel.trace.writer import Tracer
    from kernel.values import BrokerAddress, TopicPartition
    from zkconsumer.records.streams import PartitionInfo
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
#: 0.8 limits each partition's part of a response, but not the whole response.
_RESPONSE_BYTES_MAX = 2**31 - 1


class Fetcher:
    """Fetches from one broker; `give_back` takes the partitions that it can no longer fetch."""

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
        self._infos: dict[TopicPartition, PartitionInfo] = {}
        self._offsets: dict[TopicPartition, int] = {}  #: the next offset to request
        self._left_out: frozenset[TopicPartition] = frozenset()  #: had records that did not fit into the last response
        self._partitions = asyncio.Lock()  #: partitionMapLock
        self._added = asyncio.Event()
        self._channel = asyncio.Lock()  #: one request at a time
        self._connection: BrokerConnection | None = None

    async def add(self, infos: Iterable[PartitionInfo]) -> None:
        """Fetch these too, from their offsets; a partition that is here already keeps its own.

        Partitions without an offset are resolved first. If the broker cannot resolve them, this raises and adds none.
        """
        async with self._partitions:
            new = [info for info in infos if info.topic_partition not in self._infos]
            await self._reset([info for info in new if info.fetched < 0])
            for info in new:
                self._infos[info.topic_partition] = info
                self._offsets[info.topic_partition] = info.fetched
                self._emit_started(info)
            self._added.set()

    async def count(self) -> int:
        """How many partitions it has; waits while a response is handled."""
        async with self._partitions:
            return len(self._infos)

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                if not self._infos:
                    self._added.clear()
                    await self._added.wait()
                await self._round()
        finally:
            await self._disconnect()

    async def _round(self) -> None:
        async with self._partitions:
            wanted = {tp: self._offsets[tp] for tp in sorted(self._offsets, key=lambda tp: tp not in self._left_out)}
        try:
            fetched = await self._ask(lambda connection: self._fetch(connection, wanted))
        except RebalanceLabError as error:
            log.info("fetching from %s failed, looking for new leaders: %s", self.broker, error)
            async with self._partitions:
                self._lose(dict.fromkeys(self._infos, "NETWORK_EXCEPTION"))
            return
        self._left_out = frozenset(
            tp for tp, part in fetched.items() if not part.data and part.high_watermark > wanted[tp] and not part.error
        )
        async with self._partitions:
            self._lose({tp: part.error for tp, part in fetched.items() if not await self._handle(tp, wanted[tp], part)})

    async def _fetch(
        self, connection: BrokerConnection, wanted: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, FetchedBytes]:
        return await fetch_bytes(
            connection,
            wanted,
            max_wait_ms=self._config.fetch_wait_max_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=_RESPONSE_BYTES_MAX,
            partition_max_bytes=self._config.fetch_message_max_bytes,
            timeout_ms=self._config.socket_timeout_ms,
        )

    async def _handle(self, tp: TopicPartition, offset: int, part: FetchedBytes) -> bool:
        """Handle one partition's part of the response to a request from `offset`; False if it needs another leader."""
        info = self._infos.get(tp)
        if info is None or self._offsets[tp] != offset:
            return True
        if part.error == _OUT_OF_RANGE:
            try:
                await self._reset([info])
            except RebalanceLabError as error:
                log.info("%s: offset %d is out of range and could not be reset: %s", tp, offset, error)
                return False
            self._offsets[tp] = info.fetched
        elif part.error:
            log.info("%s on %s: %s, looking for its new leader", tp, self.broker, part.error)
            return False
        else:
            assert info.fetched == offset, f"{tp} was fetched from {offset}, expected {info.fetched}"
            chunk, self._offsets[tp] = chunk_of(info, offset, part.data, bytes_max=self._config.fetch_message_max_bytes)
            if chunk is not None:
                await info.stream.put(chunk)
            info.fetched = self._offsets[tp]
        return True

    async def _reset(self, infos: Sequence[PartitionInfo]) -> None:
        """Set both offsets of these to the beginning or end of their log. Raises if the broker does not know it."""
        if not infos:
            return
        end = EARLIEST if self._config.auto_offset_reset == "smallest" else LATEST
        wanted = {info.topic_partition: end for info in infos}
        answers = await self._ask(
            lambda connection: list_offset(connection, wanted, timeout_ms=self._config.socket_timeout_ms)
        )
        for info in infos:
            error, offset = answers.get(info.topic_partition, ("no answer", -1))
            if error:
                raise Retriable(f"{self.broker} does not know the offsets of {info.topic_partition}: {error}")
            info.fetched = info.consumed = offset
            self._emit("position_reset", info, offset=offset, reset=self._config.auto_offset_reset)

    def _lose(self, refused: Mapping[TopicPartition, str]) -> None:
        """Give back these partitions; Kafka's name for why."""
        for tp, error in refused.items():
            del self._offsets[tp]
            self._emit("fetch_refused", self._infos[tp], error=error)
        if refused:
            self._give_back([self._infos.pop(tp) for tp in refused])

    # -- trace -----------------------------------------------------------------------------------------------------

    def _emit_started(self, info: PartitionInfo) -> None:
        if not info.started:
            info.started = True
            self._emit("position_started", info, offset=info.fetched)

    def _emit(self, kind: str, info: PartitionInfo, **more: str | int) -> None:
        tp = info.topic_partition
        self._tracer.emit(
            kind,
            member=self._member,
            stream=info.stream.number,
            cause="",
            topic=tp.topic,
            partition=tp.partition,
            **more,
        )

    # -- connection ------------------------------------------------------------------------------------------------

    async def _ask(self, question: Callable[[BrokerConnection], Awaitable[Result]]) -> Result:
        """Raises what the second try raised."""
        async with self._channel:
            try:
                return await question(await self._connected())
            except RebalanceLabError as error:
                log.info("%s did not answer, reconnecting: %s", self.broker, error)
            await self._disconnect()
            try:
                return await question(await self._connected())
            except RebalanceLabError:
                await self._disconnect()
                raise

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
