"""Committing to ZooKeeper: one znode a partition, written when it changed, fenced by nothing.

Source: ZookeeperConsumerConnector.commitOffsets and ZkUtils.updatePersistentPath, Kafka 0.8.2. The write is a
setData of any version, so whoever believes to own a partition overwrites whoever owns it. It is repeated over
lost connections and expired sessions until it is done: a member that was frozen writes its old position in its
*new* session, which moves the offset back. Both are kept on purpose.

A partition's first commit takes three requests (setData finds nothing, the parent is made, the node is made),
each later one takes one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.values import NO_OFFSET, CommitOutcome, TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode
from zkconsumer.payloads import offset_payload

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.streams import PartitionInfo, Registry

log = logging.getLogger(__name__)


class Offsets:
    """Commits of one member."""

    def __init__(self, session: ZooKeeperSession, registry: Registry, group: str, tracer: Tracer) -> None:
        self._session = session
        self._registry = registry
        self._group = group
        self._tracer = tracer

    async def commit(self, *, explicit: bool, step: str) -> CommitOutcome:
        """Write every position that differs from what was written last, one after the other.

        `accepted` holds what ZooKeeper has now of all partitions of the registry. A failure (only of a session
        that was closed, or of a refused write: lost connections are waited out) raises; what was written
        before it stays written.
        """
        accepted: dict[TopicPartition, int] = {}
        # The registry is read once: it may be another one when the last of these is written.
        for info in self._registry.infos():
            offset = info.consumed
            if offset != info.checkpointed:
                await self._write(info, offset, explicit=explicit, step=step)
                info.checkpointed = offset
            if offset != NO_OFFSET:
                accepted[info.topic_partition] = offset
        return CommitOutcome(accepted=accepted)

    async def _write(self, info: PartitionInfo, offset: int, *, explicit: bool, step: str) -> None:
        tp = info.topic_partition
        error: RebalanceLabError | None = None
        try:
            await self._update(paths.offset(self._group, tp.topic, tp.partition), offset_payload(offset), step)
        except RebalanceLabError as failure:
            error = failure
            raise
        finally:
            self._tracer.emit(
                "commit_answered",
                member=self._session.member,
                stream=info.stream.number,
                group=self._group,
                topic=tp.topic,
                partition=tp.partition,
                offset=offset,
                outcome="accepted" if error is None else "unknown",
                error=None if error is None else type(error).__name__,
                explicit=explicit,
            )

    async def _update(self, path: str, data: bytes, step: str) -> None:
        try:
            await self._session.set(path, data, step=step)
        except NoNode:
            await self._session.ensure_path(paths.parent(path), step=step)
            try:
                await self._session.create(path, data, step=step)
            except NodeExists:
                await self._session.set(path, data, step=step)
