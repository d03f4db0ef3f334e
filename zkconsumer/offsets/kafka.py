"""Offsets kept in Kafka (`offsets.storage=kafka`): commits and fetches over a channel to the group's coordinator.

Source: commitOffsets and fetchOffsets of ZookeeperConsumerConnector, channelToOffsetManager of ClientUtils, Kafka
0.8.2. To the coordinator the group is a simple consumer without generation and members (generation -1, empty member
id), since partitions are owned in ZooKeeper only. So nothing fences a commit here either.

- The search for the coordinator has no limit: read the registered brokers from ZooKeeper, try them in a random order,
  ask the first one that answers, and retry after `offsets.channel.backoff.ms`. Commits wait meanwhile, as in the
  original on its lock.
- A fetch is retried until it succeeds or the member closes. NOT_COORDINATOR drops the channel, loading waits; any
  other error of a partition counts as "no offset".
- A commit names every partition of the registry, changed or not, even if its position is not known yet (-1). It is
  tried once; a failure is logged and reported, not raised. Only a closing member retries,
  `offsets.commit.max.retries` times, and not for its timer: `isAutoCommit`, on which this depends in the source,
  is false for the timer and true for all others.

Where we differ: every failed search waits for the backoff (the original spins if it reaches no broker), its requests
have the same timeout as all others (3 s in the original), and a closing member stops searching; in the original the
shutdown hangs until a coordinator is found.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING, Any

from kernel.client.connection import BrokerConnection
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, BrokerAddress, TopicPartition, by_topic
from kernel.wire.errors import ErrorCode, ProtocolError, error_name
from kernel.wire.versions import Api
from zkconsumer.watching.brokers import read_brokers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.trace.writer import Tracer
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watcher

log = logging.getLogger(__name__)

#: The versions of a 1.1 consumer; 0.8.2 sends version 1 of the last two.
FIND_VERSION, COMMIT_VERSION, FETCH_VERSION = 0, 2, 2

#: A commit without an answer, sent or not; not a Kafka error.
UNANSWERED = "UNANSWERED"

_MOVED = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"})
#: The one error of a commit for which a retry is useless.
_FINAL = frozenset({"OFFSET_METADATA_TOO_LARGE"})


class KafkaOffsets:
    """One member's offsets in Kafka. Callers must make one call at a time.

    `closing` says whether the member is shutting down, which ends a search for the coordinator.
    """

    def __init__(
        self, watcher: Watcher, config: ZkConsumerConfig, tracer: Tracer, member: str, closing: Callable[[], bool]
    ) -> None:
        self._watcher = watcher
        self._config = config
        self._tracer = tracer
        self._member = member
        self._closing = closing
        self._random = Random(f"offsets:{config.seed}:{member}")  # for an order, not for a secret
        self._channel: BrokerConnection | None = None

    async def connect(self) -> None:
        """Find the coordinator, however long it takes. Raises `Unavailable` once the member is closing."""
        if self._channel is None or self._channel.closed:
            self._channel = await self._find()

    async def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Try once: {partition: offset or `NO_OFFSET`}, or None to retry after the backoff.

        Raises `Unavailable` once the member is closing and there is no coordinator.
        """
        await self.connect()
        assert self._channel is not None
        wanted = tuple(partitions)
        body = {
            "group_id": self._config.group_id,
            "topics": [
                {"name": topic, "partition_indexes": [tp.partition for tp in of_topic]}
                for topic, of_topic in by_topic(wanted).items()
            ],
        }
        try:
            answer = await self._call(Api.OffsetFetch, body, FETCH_VERSION)
        except (Unavailable, ProtocolError) as error:
            log.warning("%s: fetching offsets failed: %s", self._member, error)
            await self.drop()
            return None
        found = dict.fromkeys(wanted, NO_OFFSET)
        errors = {error_name(answer.error_code)}
        for topic in answer.topics:
            for partition in topic.partitions:
                errors.add(error_name(partition.error_code))
                found[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
        if "NOT_COORDINATOR" in errors:
            log.info("%s: the coordinator has moved", self._member)
            await self.drop()
            return None
        if "COORDINATOR_LOAD_IN_PROGRESS" in errors:
            return None
        if strange := errors - {""}:
            log.warning("%s: treating committed offsets as missing: %s", self._member, ", ".join(sorted(strange)))
        return found

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
        """Try once: {partition: error, '' for success}; `UNANSWERED` for all without a response.

        Raises `Unavailable` once the member is closing and there is no coordinator.
        """
        await self.connect()
        body = {
            "group_id": self._config.group_id,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "retention_time": -1,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {"partition_index": tp.partition, "committed_offset": offsets[tp], "committed_metadata": ""}
                        for tp in of_topic
                    ],
                }
                for topic, of_topic in by_topic(offsets).items()
            ],
        }
        try:
            answer = await self._call(Api.OffsetCommit, body, COMMIT_VERSION)
        except (Unavailable, ProtocolError) as error:
            log.warning("%s: committing offsets failed: %s", self._member, error)
            await self.drop()
            return dict.fromkeys(offsets, UNANSWERED)
        errors = {
            TopicPartition(topic.name, partition.partition_index): error_name(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
        }
        if not _MOVED.isdisjoint(errors.values()):
            log.info("%s: the coordinator has moved or is not available", self._member)
            await self.drop()
        return {tp: errors.get(tp, UNANSWERED) for tp in offsets}

    async def drop(self) -> None:
        """Close the channel; the next call searches for the coordinator again. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
            await channel.wait_closed()

    async def pause(self) -> None:
        """Wait for `offsets.channel.backoff.ms`."""
        await asyncio.sleep(self._config.offsets_channel_backoff_ms / 1000)

    # -- the search for the coordinator ------------------------------------------------------------------------------

    async def _find(self) -> BrokerConnection:
        while True:
            try:
                return await self._find_once()
            except (Unavailable, ProtocolError) as error:
                if self._closing():
                    raise Unavailable(f"shutting down before the offsets' coordinator was found: {error}") from error
                log.warning("%s: the offsets' coordinator was not found yet: %s", self._member, error)
            await self.pause()

    async def _find_once(self) -> BrokerConnection:
        broker = await self._any_broker()
        keep = False
        try:
            answer = await broker.call(
                Api.FindCoordinator,
                {"key": self._config.group_id},
                version=FIND_VERSION,
                timeout_ms=self._config.offsets_channel_socket_timeout_ms,
                group=self._config.group_id,
            )
            if answer.error_code is not ErrorCode.none:
                raise Unavailable(f"{broker.host}:{broker.port} answered {error_name(answer.error_code)}")
            if (answer.host, answer.port) == (broker.host, broker.port):
                keep = True
                return broker
            return await self._open(BrokerAddress(answer.node_id, answer.host, answer.port))
        finally:
            if not keep:
                broker.close()
                await broker.wait_closed()

    async def _any_broker(self) -> BrokerConnection:
        brokers = await read_brokers(self._watcher, step="offsets-channel")
        self._random.shuffle(brokers)
        failures = []
        for broker in brokers:
            try:
                return await self._open(broker)
            except (Unavailable, ProtocolError) as error:
                failures.append(str(error))
        raise Unavailable("; ".join(failures) or "no broker is registered")

    async def _open(self, broker: BrokerAddress) -> BrokerConnection:
        connection = await BrokerConnection.open(
            broker.host,
            broker.port,
            self._config.client_id,
            timeout_ms=self._config.offsets_channel_socket_timeout_ms,
            node_id=broker.node_id,
            tracer=self._tracer,
        )
        connection.member = self._member
        return connection

    async def _call(self, api: Api, body: Mapping[str, object], version: int) -> Any:
        assert self._channel is not None, "connect() comes first"
        return await self._channel.call(
            api,
            body,
            version=version,
            timeout_ms=self._config.offsets_channel_socket_timeout_ms,
            group=self._config.group_id,
        )


def is_done(errors: Iterable[str]) -> bool:
    """Whether a commit with these errors needs no retry: no errors, or only final ones."""
    return all(not error or error in _FINAL for error in errors)
