"""A member's two connections to its coordinator: one for commits, one for AwaitCommand.

Kafka's brokers answer requests on a connection in order, so a commit would wait behind an AwaitCommand.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.client.link import CoordinatorFinder
from kernel.client.connection import Disconnected

if TYPE_CHECKING:
    from coordinator.client.context import AnyContext
    from kernel.client.connection import BrokerConnection


class CommandLink(CoordinatorFinder):
    """`connection` is for commits; the other is opened by the first AwaitCommand."""

    def __init__(self, context: AnyContext, stream: int) -> None:
        super().__init__(context, stream)
        self._command_connection: BrokerConnection | None = None
        self._closed_connections: list[BrokerConnection] = []

    def name(self, member_id: str) -> None:
        super().name(member_id)
        if self._command_connection is not None:
            self._command_connection.member = member_id or None

    async def for_commands(self) -> BrokerConnection:
        """Return the connection for AwaitCommand, open. Raises `Unavailable`, `ProtocolError`."""
        if self._command_connection is None or self._command_connection.closed:
            known = self.connection
            if known is None:
                raise Disconnected("the coordinator is not known yet")
            opened = await self.open_second(known)
            if self.connection is not known:
                self._close(opened)
                raise Disconnected("the coordinator was abandoned meanwhile")
            self._command_connection = opened
        return self._command_connection

    def cancel_await(self) -> None:
        """Close the connection of an outstanding AwaitCommand; the next one opens another."""
        connection, self._command_connection = self._command_connection, None
        if connection is not None:
            self._close(connection)

    def _close(self, connection: BrokerConnection) -> None:
        connection.close()
        self._closed_connections = [*self._closed_connections, connection][-8:]

    def abandon(self) -> None:
        self.cancel_await()
        super().abandon()

    async def close(self) -> None:
        await super().close()
        await asyncio.gather(*(connection.wait_closed() for connection in self._closed_connections))
