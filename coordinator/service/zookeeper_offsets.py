"""Committed offsets in ZooKeeper: OffsetCommit 0 and OffsetFetch 0, for clients of the ZooKeeper era.

Such clients, kafka-node for one, own their partitions by znodes and have a broker write their offsets, into the same
znodes that Kafka's own high-level consumer writes by itself. So any broker answers, not only the group's coordinator;
nothing is checked of the group, which need not exist; and nothing fences a commit.

Source: KafkaApis.handleOffsetCommitRequest and handleOffsetFetchRequest up to Kafka 3.9. As recorded from 1.1.1 and
3.9.1: metadata is measured but not kept; a missing offset is UNKNOWN_TOPIC_OR_PARTITION; a group id that no path can
hold and a znode without a number are UNKNOWN_SERVER_ERROR; a group id may hold slashes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from coordinator.groups.answers import CommitAnswer, PartitionError
from coordinator.groups.errors import Error
from coordinator.groups.offsets.offsets import exceeds
from coordinator.groups.records import OffsetRecord
from kernel.errors import Retriable
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode, ZooKeeperError
from kernel.zookeeper.offset_text import offset_in, offset_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from coordinator.groups.requests import OffsetToCommit
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

Partition = tuple[str, int]
Found = OffsetRecord | Error
Answer = TypeVar("Answer")

_STEP = "offsets"


class ZooKeeperOffsets:
    """Writes and reads with the broker's session, one partition after the other."""

    def __init__(self, session: Callable[[], ZooKeeperSession], *, metadata_length_max: int) -> None:
        self._session = session
        self._metadata_length_max = metadata_length_max

    async def commit(self, group_id: str, offsets: Sequence[OffsetToCommit]) -> CommitAnswer:
        """Write the offsets of partitions that exist. Of a partition that occurs twice only the last is written."""
        too_large = [exceeds(o.metadata, self._metadata_length_max) for o in offsets]
        last = {(o.topic, o.partition): o.offset for o, refused in zip(offsets, too_large, strict=True) if not refused}

        async def write(at: Partition) -> Error:
            return await self._write(paths.offset(group_id, *at), last[at])

        errors = await _in_turn(last, write)
        return CommitAnswer(
            tuple(
                PartitionError(
                    o.topic,
                    o.partition,
                    Error.OFFSET_METADATA_TOO_LARGE if refused else errors[o.topic, o.partition],
                )
                for o, refused in zip(offsets, too_large, strict=True)
            )
        )

    async def fetch(self, group_id: str, partitions: Collection[Partition]) -> dict[Partition, Found]:
        """The offset of each of these partitions, or the error that stands for it."""

        async def read(at: Partition) -> Found:
            return await self._read(paths.offset(group_id, *at))

        return await _in_turn(partitions, read)

    async def _write(self, path: str, offset: int) -> Error:
        if not paths.is_valid(path):
            return Error.UNKNOWN_SERVER_ERROR
        try:
            await self._session().put(path, offset_text(offset), step=_STEP)
        except ZooKeeperError as error:
            return _refusal(error)
        return Error.NONE

    async def _read(self, path: str) -> Found:
        if not paths.is_valid(path):
            return Error.UNKNOWN_SERVER_ERROR
        try:
            data, stat = await self._session().get(path, step=_STEP)
            return OffsetRecord(offset_in(data), -1, "", stat.mtime_ms)
        except NoNode:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        except ZooKeeperError as error:
            return _refusal(error)
        except ValueError as error:
            log.info("%r: %s, not %.60r", path, error, data)
            return Error.UNKNOWN_SERVER_ERROR


async def _in_turn(
    partitions: Collection[Partition], perform: Callable[[Partition], Awaitable[Answer]]
) -> dict[Partition, Answer | Error]:
    """One partition after the other; once ZooKeeper does not answer, the rest is not tried."""
    answers: dict[Partition, Answer | Error] = {}
    for at in partitions:
        answers[at] = await perform(at)
        if answers[at] is Error.REQUEST_TIMED_OUT:
            return {**dict.fromkeys(partitions, Error.REQUEST_TIMED_OUT), **answers}
    return answers


def _refusal(error: ZooKeeperError) -> Error:
    """Kafka waits for ZooKeeper however long it takes, and its client for the answer; ours tell the client to retry."""
    log.info("an offset in ZooKeeper: %s", error)
    return Error.REQUEST_TIMED_OUT if isinstance(error, Retriable) else Error.UNKNOWN_SERVER_ERROR
