"""A member's two connections to its coordinator: one for commits, one for the question that waits for a command.

Kafka's brokers answer each connection in order, so whatever follows a question that waits would wait with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.consumer.link import CoordinatorFinder
from kernel.client.connection import Disconnected

if TYPE_CHECKING:
    from coordinator.consumer.link import LinkContext
    from kernel.client.connection import BrokerConnection


class CommandLink(CoordinatorFinder):
    """`connection` is for commits; the other is opened when the first question is asked."""

    def __init__(self, context: LinkContext, stream: int) -> None:
        super().__init__(context, stream)
        self._asking: BrokerConnection | None = None
        self._called_off: list[BrokerConnection] = []

    def name(self, member_id: str) -> None:
        super().name(member_id)
        if self._asking is not None:
            self._asking.member = member_id or None

    async def for_commands(self) -> BrokerConnection:
        """Raises `Unavailable`, `ProtocolError`."""
        if self._asking is None or self._asking.closed:
            known = self.connection
            if known is None:
                raise Disconnected("the coordinator is being looked for")
            opened = await self.beside(known)
            if self.connection is not known:
                self._close(opened)
                raise Disconnected("the coordinator was given up meanwhile")
            self._asking = opened
        return self._asking

    def call_off(self) -> None:
        """Close the connection on which a question waits; the next question opens another."""
        asking, self._asking = self._asking, None
        if asking is not None:
            self._close(asking)

    def _close(self, asking: BrokerConnection) -> None:
        asking.close()
        self._called_off = [*self._called_off, asking][-8:]

    def abandon(self) -> None:
        self.call_off()
        super().abandon()

    async def close(self) -> None:
        await super().close()
        await asyncio.gather(*(connection.wait_closed() for connection in self._called_off))
