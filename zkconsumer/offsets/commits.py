"""Commits: positions are written to ZooKeeper, one znode per partition, or to Kafka, or to both (dual commit).

Source: commitOffsets, fetchOffsets and autoCommit of ZookeeperConsumerConnector, ZkUtils.updatePersistentPath,
Kafka 0.8.2. One commit or fetch runs at a time, as under the original's lock on its offsets channel.

A position is written to ZooKeeper if it differs from the last one written, so an unresolved one (-1) never is. The
write is a setData of any version, so a member that only believes it owns a partition overwrites the real owner. It is
retried across lost connections and expired sessions until it succeeds: a member that was frozen writes its old
position in its *new* session, which moves the offset back. Both are kept on purpose; `fix.commit.fence` removes them
(`fences.py`).

A commit to Kafka writes everything in the registry every time (`kafka.py`); with dual commit, what Kafka accepted then
goes to ZooKeeper by the rules above.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError, Unavailable
from kernel.values import NO_OFFSET, CommitOutcome, TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.offset_text import offset_text
from zkconsumer.offsets.fences import FENCES, REFUSALS
from zkconsumer.offsets.kafka import UNANSWERED, KafkaOffsets, is_done

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from kernel.trace.writer import Tracer
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.records.streams import PartitionInfo, Registry
    from zkconsumer.settings import ZkConsumerConfig
    from zkconsumer.watching.watcher import Watcher

log = logging.getLogger(__name__)

#: The step of the timer's commits; all others are retried while the member closes (Kafka only).
BY_TIMER = "auto-commit"


class Offsets:
    """One member's commits, and the offsets that its partitions start from if Kafka keeps them.

    `closing` says whether the member is shutting down.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        watcher: Watcher,
        registry: Registry,
        config: ZkConsumerConfig,
        tracer: Tracer,
        *,
        closing: Callable[[], bool],
    ) -> None:
        self._session = session
        self._registry = registry
        self._config = config
        self._tracer = tracer
        self._closing = closing
        self._write_fenced = FENCES[config.fixes.commit_fence]
        self._lock = asyncio.Lock()
        self._kafka: KafkaOffsets | None = None
        if config.offsets_storage == "kafka":
            self._kafka = KafkaOffsets(watcher, config, tracer, session.member or "", self._shutting_down)
        self._ended = False

    async def open(self) -> None:
        """With offsets in Kafka: wait until the coordinator is found, as the original's constructor does."""
        if self._kafka is not None:
            async with self._lock:
                await self._kafka.connect()

    async def close(self) -> None:
        """Close the channel to the coordinator, and end a search for it."""
        self._ended = True
        if self._kafka is not None:
            await self._kafka.drop()

    @asynccontextmanager
    async def between_commits(self) -> AsyncIterator[None]:
        """Wait for a commit or fetch that is under way; none runs inside."""
        async with self._lock:
            yield

    async def commit_by_timer(self) -> None:
        """Commit every auto.commit.interval.ms, for ever."""
        while True:
            await asyncio.sleep(self._config.auto_commit_interval_ms / 1000)
            try:
                await self.commit(explicit=False, step=BY_TIMER)
            except RebalanceLabError:
                log.exception("%s: the automatic commit failed", self._session.member)

    async def commit(self, *, explicit: bool, step: str) -> CommitOutcome:
        """Write the positions; `accepted` holds the store's offsets of the registry's partitions after the commit.

        To ZooKeeper, partitions are written one after the other. A failure raises (only if the session was closed or
        ZooKeeper refused the write; lost connections are waited out), and earlier writes stay. What a fence refused is
        in `refused`. To Kafka, a failure raises only if brokers cannot be read from ZooKeeper or the session of the
        second store was closed; any other is in `refused`, by Kafka's name or UNANSWERED. With dual commit Kafka is
        the authority: what a fence refused in ZooKeeper is in the trace only.
        """
        if self._kafka is None:
            async with self._lock:
                return await self._commit_to_zookeeper(explicit=explicit, step=step)
        # No retries unless the member is closing, and then not for the timer.
        tries = 1 + self._config.offsets_commit_max_retries
        while True:
            async with self._lock:
                outcome = await self._commit_to_kafka(self._kafka, explicit=explicit, step=step)
            tries -= 1
            if is_done(outcome.refused.values()) or not self._closing() or step == BY_TIMER or not tries:
                return outcome
            await self._kafka.pause()

    async def fetch_stored(
        self, partitions: tuple[TopicPartition, ...], closing: Callable[[], bool]
    ) -> Mapping[TopicPartition, int]:
        """The offsets in Kafka: {partition: offset or `NO_OFFSET`}. Waits for as long as the coordinator takes.

        Raises `Unavailable` if the member is `closing` before there is an answer.
        """
        assert self._kafka is not None, "offsets.storage is not kafka"
        if not partitions:
            return {}
        while not closing():
            async with self._lock:
                found = await self._kafka.fetch(partitions)
            if found is not None:
                return found
            await self._kafka.pause()
        raise Unavailable("shutting down before the committed offsets were fetched")

    # -- internals ---------------------------------------------------------------------------------------------------

    def _shutting_down(self) -> bool:
        return self._ended or self._closing()

    async def _commit_to_zookeeper(self, *, explicit: bool, step: str) -> CommitOutcome:
        outcome = CommitOutcome()
        # A snapshot: registry and positions may change before the last of these is written.
        for info, offset in [(info, info.consumed) for info in self._registry.infos()]:
            tp = info.topic_partition
            refused = await self._write(info, offset, explicit=explicit, step=step)
            if refused:
                outcome.refused[tp] = refused
            elif offset != NO_OFFSET:
                outcome.accepted[tp] = offset
        return outcome

    async def _commit_to_kafka(self, kafka: KafkaOffsets, *, explicit: bool, step: str) -> CommitOutcome:
        infos = {info.topic_partition: info for info in self._registry.infos()}
        offsets = {tp: info.consumed for tp, info in infos.items()}
        if not offsets:
            return CommitOutcome()
        try:
            errors = await kafka.commit(offsets)
        except Unavailable as failure:
            log.warning("%s: committing offsets failed: %s", self._session.member, failure)
            errors = dict.fromkeys(offsets, UNANSWERED)
        for tp, error in errors.items():
            answered = {"": "accepted", UNANSWERED: "unknown"}.get(error, "refused")
            self._emit(infos[tp], offsets[tp], answered, error, explicit=explicit, store="kafka")
        if self._config.dual_commit_enabled:
            for tp in (tp for tp, error in errors.items() if not error):
                await self._write(infos[tp], offsets[tp], explicit=explicit, step=step)
        return CommitOutcome(
            accepted={tp: offset for tp, offset in offsets.items() if not errors[tp] and offset != NO_OFFSET},
            refused={tp: error for tp, error in errors.items() if error},
        )

    async def _write(self, info: PartitionInfo, offset: int, *, explicit: bool, step: str) -> str:
        """Write to ZooKeeper, unless unchanged; returns the error by which a fence refused, or ''."""
        if offset == info.checkpointed:
            return ""
        tp = info.topic_partition
        path = paths.offset(self._config.group_id, tp.topic, tp.partition)
        outcome, error = "unknown", UNANSWERED  # until there is an answer, also if we are cancelled
        try:
            await self._write_fenced(self._session, info, path, offset_text(offset), step)
            info.checkpointed = offset
            outcome, error = "accepted", ""
        except REFUSALS as refusal:
            outcome, error = "refused", type(refusal).__name__
            log.info("%s: the commit of %s at %d was refused: %s", self._session.member, tp, offset, refusal)
        except RebalanceLabError as failure:
            error = type(failure).__name__
            raise
        finally:
            self._emit(info, offset, outcome, error, explicit=explicit, store="zookeeper")
        return error

    def _emit(self, info: PartitionInfo, offset: int, outcome: str, error: str, *, explicit: bool, store: str) -> None:
        self._tracer.emit(
            "commit_answered",
            member=self._session.member,
            stream=info.stream.number,
            group=self._config.group_id,
            topic=info.topic_partition.topic,
            partition=info.topic_partition.partition,
            offset=offset,
            outcome=outcome,
            error=error or None,
            explicit=explicit,
            store=store,
        )
