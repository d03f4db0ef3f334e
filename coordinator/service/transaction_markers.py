"""Telling partitions how a producer's transaction ended (WriteTxnMarkers), until all of them know.

Partitions of data get a control batch, those of `__consumer_offsets` let pending offsets count or drop them. What is
led here is told directly, the rest through the leaders, one request for all that a broker leads. A partition that is
not there any more was deleted, and is told nothing.

Source: TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import Mark
from kernel.broker.cluster.cluster_view import GROUP_METADATA_TOPIC
from kernel.broker.storage.errors import CoordinatorFenced, Fenced, InvalidProducerEpoch, StorageError
from kernel.records.control_records import end_marker
from kernel.records.transactions import EndMarker
from kernel.values import TopicPartition
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from coordinator.groups.outcome import Marker
    from coordinator.service.coordinator import Coordinator
    from kernel.values import BrokerAddress

log = logging.getLogger(__name__)

RETRY_S = 0.1
#: So many tries in a row a partition is not in the view: not new to it, as it may be after a failover, but deleted.
ABSENT_TRIES = 50
#: Another broker could not be asked; clients come again.
UNTOLD = Error.COORDINATOR_NOT_AVAILABLE

#: It was told, or somebody with a higher epoch has decided since.
_FINAL = frozenset({Error.NONE, Error.TRANSACTION_COORDINATOR_FENCED, Error.INVALID_PRODUCER_EPOCH})
#: It is not led here.
_ELSEWHERE = frozenset({Error.NOT_COORDINATOR, Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION})

_STORAGE_ERRORS: dict[type[StorageError], Error] = {
    Fenced: Error.NOT_LEADER_OR_FOLLOWER,
    InvalidProducerEpoch: Error.INVALID_PRODUCER_EPOCH,
    CoordinatorFenced: Error.TRANSACTION_COORDINATOR_FENCED,
}


class Deliveries:
    """Delivers markers of the transactional ids that this broker looks after."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def deliver(self, marker: Marker, *, epoch: int) -> None:
        """Until every partition has been told; `epoch` is that of the leadership that decided it."""
        numbers = {self._coordinator.number_of(group_id) for group_id in marker.groups}
        left = {*marker.partitions, *(TopicPartition(GROUP_METADATA_TOPIC, number) for number in numbers)}
        absent = dict.fromkeys(left, 0)
        while left := await self._tell(left, marker, epoch):
            snapshot = self._coordinator.services.cluster.snapshot
            for tp in left:
                absent[tp] = absent[tp] + 1 if snapshot.partition(tp) is None else 0
            if gone := {tp for tp in left if absent[tp] >= ABSENT_TRIES}:
                log.info("marker of %s: deleted meanwhile: %s", marker.transactional_id, ", ".join(map(str, gone)))
                left -= gone
            await asyncio.sleep(RETRY_S)

    async def _tell(self, partitions: Collection[TopicPartition], marker: Marker, epoch: int) -> set[TopicPartition]:
        """Once; returns those that have not been told."""
        mark = _mark(0, marker, epoch)
        errors = dict(
            zip(
                partitions,
                await asyncio.gather(*(written(self._coordinator, tp, mark) for tp in partitions)),
                strict=True,
            )
        )
        by_leader: dict[BrokerAddress, list[TopicPartition]] = {}
        for tp, error in errors.items():
            leader = self._coordinator.services.cluster.snapshot.leader_of(tp)
            if error in _ELSEWHERE and leader is not None and leader.node_id != self._coordinator.services.node_id:
                by_leader.setdefault(leader, []).append(tp)
        for answered in await asyncio.gather(
            *(self._ask(leader, of_leader, mark) for leader, of_leader in by_leader.items())
        ):
            errors |= answered
        left = {tp for tp, error in errors.items() if error not in _FINAL}
        for tp in left:
            log.debug("marker of %s for %s: %s", marker.transactional_id, tp, errors[tp].name)
        return left

    async def _ask(
        self, leader: BrokerAddress, partitions: Iterable[TopicPartition], mark: Mark
    ) -> dict[TopicPartition, Error]:
        answer = await self._coordinator.peers.call(leader, Api.WriteTxnMarkers, _body(partitions, mark))
        if answer is None:
            return dict.fromkeys(partitions, UNTOLD)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition.error_code)
            for told in answer.markers
            for topic in told.topics
            for partition in topic.partitions
        }


async def call_leader(coordinator: Coordinator, number: int, api: Api, body: dict[str, Any]) -> Any | None:
    """The answer of the broker that leads partition `number`; None when there is none, or no answer."""
    leader = coordinator.services.cluster.snapshot.leader_of(TopicPartition(GROUP_METADATA_TOPIC, number))
    if leader is None or leader.node_id == coordinator.services.node_id:
        return None  # the view is behind
    return await coordinator.peers.call(leader, api, body)


def error_of(code: int) -> Error:
    """Another broker's answer."""
    return Error(code) if int(code) in set(Error) else Error.UNKNOWN_SERVER_ERROR


async def written(coordinator: Coordinator, tp: TopicPartition, mark: Mark) -> Error:
    """Put a marker to a partition if it is led here. The token of `mark` does not matter."""
    if tp.topic == GROUP_METADATA_TOPIC:
        return await _count_or_drop(coordinator, tp.partition, mark)
    led = coordinator.services.logs.get(tp)
    if led is None:
        known = coordinator.services.cluster.snapshot.partition(tp) is not None
        return Error.NOT_LEADER_OR_FOLLOWER if known else Error.UNKNOWN_TOPIC_OR_PARTITION
    batch = end_marker(
        EndMarker(mark.commits, mark.coordinator_epoch),
        producer_id=mark.producer.id,
        producer_epoch=mark.producer.epoch,
        timestamp_ms=coordinator.services.clock.wall_ms(),
    )
    try:
        await led.append([batch])
    except StorageError as error:
        return _STORAGE_ERRORS.get(type(error), Error.KAFKA_STORAGE_ERROR)
    return Error.NONE


async def _count_or_drop(coordinator: Coordinator, number: int, mark: Mark) -> Error:
    at = coordinator.at_number(number)
    if isinstance(at, Error):
        return at
    answer = at.ask(lambda token: replace(mark, token=token), lambda given: {"error": given.error})
    answered = answer if isinstance(answer, dict) else await answer
    assert answered is not None, "a marker is always answered"
    return Error(answered["error"])


def _mark(token: int, marker: Marker, epoch: int) -> Mark:
    return Mark(token=token, producer=marker.producer, coordinator_epoch=epoch, commits=marker.commits)


def _body(partitions: Iterable[TopicPartition], mark: Mark) -> dict[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return {
        "markers": [
            {
                "producer_id": mark.producer.id,
                "producer_epoch": mark.producer.epoch,
                "transaction_result": mark.commits,
                "topics": [{"name": topic, "partition_indexes": numbers} for topic, numbers in by_topic.items()],
                "coordinator_epoch": mark.coordinator_epoch,
            }
        ]
    }
