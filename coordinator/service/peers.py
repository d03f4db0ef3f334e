"""Requests to other brokers, over one connection per broker that is opened on first use and kept.

Source: InterBrokerSendThread and TransactionMarkerChannelManager of Kafka 3.9 keep theirs as well.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from kernel.client.connection import BrokerConnection
from kernel.errors import RebalanceLabError
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from kernel.values import BrokerAddress
    from kernel.wire.versions import Api

log = logging.getLogger(__name__)

TIMEOUT_MS = 5_000
CLIENT_ID = "coordinator"
#: When another broker cannot be reached: clients retry.
UNREACHABLE = Error.COORDINATOR_NOT_AVAILABLE


class Peers:
    """Connections to other brokers. The next call tries again to reach an unreachable broker."""

    def __init__(self) -> None:
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: dict[BrokerAddress, asyncio.Task[BrokerConnection | None]] = {}
        self._closed = False

    async def call(self, broker: BrokerAddress, api: Api, body: dict[str, Any]) -> Any | None:
        """The answer as kio's entity, or None after logging why there is none."""
        connection = await self._connection(broker)
        if connection is None:
            return None
        try:
            return await connection.call(api, body, timeout_ms=TIMEOUT_MS)
        except RebalanceLabError as error:
            log.info("%s to broker %s: %s", api.name, broker.node_id, error)
            return None

    async def _connection(self, broker: BrokerAddress) -> BrokerConnection | None:
        if self._closed:
            return None
        kept = self._connections.get(broker.node_id)
        if kept is not None and not kept.closed and (kept.host, kept.port) == (broker.host, broker.port):
            return kept
        opening = self._opening.get(broker)
        if opening is None:
            opening = self._opening[broker] = asyncio.create_task(self._open(broker))
            opening.add_done_callback(lambda _: self._opening.pop(broker))
        await asyncio.wait([opening])  # goes on if one of the waiting callers is cancelled
        return None if opening.cancelled() else opening.result()

    async def _open(self, broker: BrokerAddress) -> BrokerConnection | None:
        """One attempt, for all callers meanwhile: one after another, each would wait for a frozen broker."""
        try:
            opened = await BrokerConnection.open(
                broker.host, broker.port, CLIENT_ID, timeout_ms=TIMEOUT_MS, node_id=broker.node_id
            )
        except RebalanceLabError as error:
            log.info("broker %s: %s", broker.node_id, error)
            return None
        if broker.node_id in self._connections:
            self._connections[broker.node_id].close()  # ended, or to another address
        self._connections[broker.node_id] = opened
        return opened

    async def close(self) -> None:
        """Current and later calls return None."""
        self._closed = True
        opening = list(self._opening.values())
        await cancel_and_wait(*opening)
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()


def error_of(code: int) -> Error:
    """The error in another broker's answer."""
    return Error(code) if int(code) in set(Error) else Error.UNKNOWN_SERVER_ERROR
