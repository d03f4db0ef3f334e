"""Telling the partitions of `__consumer_offsets` how a producer's transaction ended (WriteTxnMarkers).

A partition that is led here is told directly, others through their leaders, again and again until all know.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from coordinator.group.errors import Error
from coordinator.group.requests import Mark
from kernel.broker.cluster_view import GROUP_METADATA_TOPIC
from kernel.broker.connection import BrokerConnection
from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from coordinator.gate import Coordinator
    from coordinator.group.outcome import Marker

log = logging.getLogger(__name__)

RETRY_S = 0.1
TIMEOUT_MS = 5_000
#: Another broker could not be asked; clients come again.
UNTOLD = Error.COORDINATOR_NOT_AVAILABLE

#: It was told, or somebody with a higher epoch has decided since.
_FINAL = frozenset({Error.NONE, Error.TRANSACTION_COORDINATOR_FENCED, Error.INVALID_PRODUCER_EPOCH})


class Deliveries:
    """Delivers markers of the transactional ids that this broker looks after."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def deliver(self, marker: Marker, *, epoch: int) -> None:
        """Until every partition has been told; `epoch` is that of the leadership that decided it."""
        for number in sorted({self._coordinator.number_of(group_id) for group_id in marker.groups}):
            while (error := await self._tell(number, marker, epoch)) not in _FINAL:
                log.debug("marker of %s for partition %s: %s", marker.transactional_id, number, error.name)
                await asyncio.sleep(RETRY_S)

    async def _tell(self, number: int, marker: Marker, epoch: int) -> Error:
        here = await mark(self._coordinator, number, lambda token: _request(token, marker, epoch))
        if here is not Error.NOT_COORDINATOR:
            return here
        answer = await call_leader(self._coordinator, number, Api.WriteTxnMarkers, _body(number, marker, epoch))
        if answer is None:
            return UNTOLD
        code = int(answer.markers[0].topics[0].partitions[0].error_code)
        return Error(code) if code in set(Error) else Error.UNKNOWN_SERVER_ERROR


async def call_leader(coordinator: Coordinator, number: int, api: Api, body: dict[str, Any]) -> Any | None:
    """The answer of the broker that leads partition `number`; None when there is none, or no answer."""
    leader = coordinator.services.cluster.snapshot.leader_of(TopicPartition(GROUP_METADATA_TOPIC, number))
    if leader is None or leader.node_id == coordinator.services.node_id:
        return None  # the view is behind
    try:
        connection = await BrokerConnection.open(leader.host, leader.port, "coordinator", timeout_ms=TIMEOUT_MS)
        try:
            return await connection.call(api, body, timeout_ms=TIMEOUT_MS)
        finally:
            connection.close()
            await connection.wait_closed()
    except RebalanceLabError as error:
        log.info("%s to broker %s about partition %s: %s", api.name, leader.node_id, number, error)
        return None


async def mark(coordinator: Coordinator, number: int, request: Any) -> Error:
    """Put a marker to partition `number` if it is led here; `request` makes it for a token."""
    at = coordinator.at_number(number)
    if isinstance(at, Error):
        return at
    answer = at.ask(request, lambda given: {"error": given.error})
    answered = answer if isinstance(answer, dict) else await answer
    assert answered is not None, "a marker is always answered"
    return Error(answered["error"])


def _request(token: int, marker: Marker, epoch: int) -> Mark:
    return Mark(token=token, producer=marker.producer, coordinator_epoch=epoch, commits=marker.commits)


def _body(number: int, marker: Marker, epoch: int) -> dict[str, Any]:
    return {
        "markers": [
            {
                "producer_id": marker.producer.id,
                "producer_epoch": marker.producer.epoch,
                "transaction_result": marker.commits,
                "topics": [{"name": GROUP_METADATA_TOPIC, "partition_indexes": [number]}],
                "coordinator_epoch": epoch,
            }
        ]
    }
