"""Writing transaction markers (WriteTxnMarkers): every partition of a transaction learns how it ended.

A partition of data gets a control batch. A partition of `__consumer_offsets` commits or drops the pending offsets.
Partitions led here are written directly, the others through their leaders, one request per broker. A partition that
no longer exists was deleted and needs no marker.

Source: TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import Mark
from coordinator.service.peers import UNREACHABLE, error_of
from kernel.broker.storage.errors import CoordinatorFenced, Fenced, InvalidProducerEpoch, StorageError
from kernel.records.control_records import end_marker
from kernel.records.transactions import EndTransactionMarker
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition, by_topic
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from coordinator.groups.effects import Marker
    from coordinator.service.led_partitions import LedPartitions
    from coordinator.service.peers import Peers
    from kernel.broker.services import BrokerServices
    from kernel.values import BrokerAddress

log = logging.getLogger(__name__)

RETRY_S = 0.1
#: Tries in a row in which a partition is missing from the cluster's view before it counts as deleted. After a failover
#: the view may lack it for a moment.
ABSENT_TRIES = 50

#: The marker is written, or a higher epoch has ended the transaction.
_FINAL = frozenset({Error.NONE, Error.TRANSACTION_COORDINATOR_FENCED, Error.INVALID_PRODUCER_EPOCH})
#: Another broker leads the partition.
_ELSEWHERE = frozenset({Error.NOT_COORDINATOR, Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION})

_STORAGE_ERRORS: dict[type[StorageError], Error] = {
    Fenced: Error.NOT_LEADER_OR_FOLLOWER,
    InvalidProducerEpoch: Error.INVALID_PRODUCER_EPOCH,
    CoordinatorFenced: Error.TRANSACTION_COORDINATOR_FENCED,
}


class TransactionMarkers:
    """Delivers the markers of the transactions coordinated here, and writes those that other brokers send."""

    def __init__(self, services: BrokerServices, partitions: LedPartitions, peers: Peers) -> None:
        self._services = services
        self._partitions = partitions
        self._peers = peers

    async def deliver(self, marker: Marker, *, epoch: int) -> None:
        """Retry until every partition has the marker; `epoch` is the leader epoch under which it was decided."""
        numbers = {self._partitions.number_of(group_id) for group_id in marker.groups}
        left = {*marker.partitions, *(TopicPartition(OFFSETS_TOPIC, number) for number in numbers)}
        absent = dict.fromkeys(left, 0)
        while left := await self._deliver_once(left, marker, epoch):
            snapshot = self._services.cluster.snapshot
            for tp in left:
                absent[tp] = absent[tp] + 1 if snapshot.partition(tp) is None else 0
            if gone := {tp for tp in left if absent[tp] >= ABSENT_TRIES}:
                log.info(
                    "marker of %s: skipped deleted partitions: %s",
                    marker.transactional_id,
                    ", ".join(map(str, sorted(gone))),
                )
                left -= gone
            await asyncio.sleep(RETRY_S)

    async def _deliver_once(
        self, partitions: Collection[TopicPartition], marker: Marker, epoch: int
    ) -> set[TopicPartition]:
        """Try each partition once; return those that still need the marker."""
        mark = Mark(token=0, producer=marker.producer, coordinator_epoch=epoch, commits=marker.commits)
        ordered = sorted(partitions)
        errors = dict(zip(ordered, await asyncio.gather(*(self.write(tp, mark) for tp in ordered)), strict=True))
        by_leader: dict[BrokerAddress, list[TopicPartition]] = {}
        for tp, error in errors.items():
            leader = self._services.cluster.snapshot.leader_of(tp)
            if error in _ELSEWHERE and leader is not None and leader.node_id != self._services.node_id:
                by_leader.setdefault(leader, []).append(tp)
        for answered in await asyncio.gather(
            *(self._send(leader, of_leader, mark) for leader, of_leader in by_leader.items())
        ):
            errors |= answered
        left = {tp for tp, error in errors.items() if error not in _FINAL}
        for tp in left:
            log.debug("marker of %s for %s: %s", marker.transactional_id, tp, errors[tp].name)
        return left

    async def _send(
        self, leader: BrokerAddress, partitions: Iterable[TopicPartition], mark: Mark
    ) -> dict[TopicPartition, Error]:
        answer = await self._peers.call(leader, Api.WriteTxnMarkers, _body(partitions, mark))
        if answer is None:
            return dict.fromkeys(partitions, UNREACHABLE)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for partition in topic.partitions
        }

    async def write(self, tp: TopicPartition, mark: Mark) -> Error:
        """Write a marker to a partition led here. The token of `mark` is ignored."""
        services = self._services
        if tp.topic == OFFSETS_TOPIC:
            return await self._end_pending_offsets(tp.partition, mark)
        led = services.logs.get(tp)
        if led is None:
            known = services.cluster.snapshot.partition(tp) is not None
            return Error.NOT_LEADER_OR_FOLLOWER if known else Error.UNKNOWN_TOPIC_OR_PARTITION
        batch = end_marker(
            EndTransactionMarker(mark.commits, mark.coordinator_epoch),
            producer_id=mark.producer.id,
            producer_epoch=mark.producer.epoch,
            timestamp_ms=services.runtime.clock.wall_ms(),
        )
        try:
            await led.append([batch])
        except StorageError as error:
            return _STORAGE_ERRORS.get(type(error), Error.KAFKA_STORAGE_ERROR)
        return Error.NONE

    async def _end_pending_offsets(self, number: int, mark: Mark) -> Error:
        at = self._partitions.at_number(number)
        if isinstance(at, Error):
            return at
        answer = at.ask(lambda token: replace(mark, token=token), lambda given: {"error": given.error})
        answered = answer if isinstance(answer, dict) else await answer
        assert answered is not None, "a marker is always answered"
        return Error(answered["error"])


def _body(partitions: Iterable[TopicPartition], mark: Mark) -> dict[str, Any]:
    return {
        "markers": [
            {
                "producer_id": mark.producer.id,
                "producer_epoch": mark.producer.epoch,
                "transaction_result": mark.commits,
                "topics": [
                    {"name": topic, "partition_indexes": [tp.partition for tp in of_topic]}
                    for topic, of_topic in by_topic(partitions).items()
                ],
                "coordinator_epoch": mark.coordinator_epoch,
            }
        ]
    }
