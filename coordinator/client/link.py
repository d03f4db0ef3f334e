"""The connection to the group's coordinator: found by asking any broker, closed when it moves or goes silent.

Each member has its own connection, separate from those that fetch: a parked JoinGroup or SyncGroup delays every later
request on its connection.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from coordinator.client import log_lines
from coordinator.client.calls import GroupCalls, find_coordinator
from coordinator.client.context import ConsumerContext
from coordinator.client.errors import GroupRefused
from coordinator.client.settings import CoordinatorConsumerConfig
from coordinator.membership.events import CoordinatorFound, CoordinatorUnknown
from kernel.client.connection import BrokerConnection, UnsupportedByBroker
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from coordinator.client.context import AnyContext

log = logging.getLogger(__name__)

#: Errors of FindCoordinator that a retry does not fix.
_FINAL = frozenset({"INVALID_GROUP_ID", "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST", "UNSUPPORTED_VERSION"})


class CoordinatorFinder:
    """One member's connection, in any design with a coordinator; None while it is being looked up."""

    def __init__(self, context: AnyContext, stream: int) -> None:
        self.connection: BrokerConnection | None = None
        self.log_prefix = ""  #: of the member's log lines
        self._context = context
        self._stream = stream
        self._member: str | None = None
        self._given_up: list[BrokerConnection] = []

    def name(self, member_id: str) -> None:
        """Set the member id under which requests are traced."""
        if (member_id or None) != self._member:
            self._member = member_id or None
            if self.connection is not None:
                self.connection.member = self._member

    async def find(self) -> CoordinatorFound | CoordinatorUnknown:
        """Look it up and connect. Raises `GroupRefused` for an error that a retry does not fix."""
        config = self._context.config
        try:
            broker = await self._context.client.any_connection()
            found = await find_coordinator(broker, config.group_id, timeout_ms=config.patience_ms)
            if found.error in _FINAL:
                raise GroupRefused("FindCoordinator", found.error, config.group_id)
            log.debug(log_lines.FIND_COORDINATOR_ANSWERED, self.log_prefix, found)
            if found.error:
                log.debug(log_lines.LOOKUP_FAILED, self.log_prefix, found.error)
                return CoordinatorUnknown(found.error)
            opened = await self._open(found.host, found.port, found.node_id)
        except UnsupportedByBroker as error:
            raise GroupRefused("FindCoordinator", "UNSUPPORTED_VERSION", config.group_id) from error
        except (Unavailable, ProtocolError) as error:
            return CoordinatorUnknown(str(error))
        self.abandon()
        self.connection = opened
        log.info(log_lines.DISCOVERED, self.log_prefix, log_lines.node(found.host, found.port, found.node_id))
        return CoordinatorFound(found.node_id)

    async def _open(self, host: str, port: int, node_id: int) -> BrokerConnection:
        config = self._context.config
        opened = await BrokerConnection.open(
            host,
            port,
            config.client_id,
            timeout_ms=config.socket_connection_setup_timeout_ms,
            node_id=node_id,
            tracer=self._context.tracer,
        )
        opened.member, opened.stream = self._member, self._stream
        return opened

    def abandon(self) -> None:
        """Close the connection without waiting for responses; requests already sent may still arrive."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()
            self._given_up = [old for old in (*self._given_up, connection) if old is not None][-8:]

    async def open_second(self, connection: BrokerConnection) -> BrokerConnection:
        """Open a second connection to the same broker; the caller closes it. Raises `Unavailable`, `ProtocolError`."""
        return await self._open(connection.host, connection.port, connection.node_id)

    async def close(self) -> None:
        self.abandon()
        await asyncio.gather(*(connection.wait_closed() for connection in self._given_up))


ClassicContext = ConsumerContext[CoordinatorConsumerConfig, GroupCalls]


class CoordinatorLink(CoordinatorFinder):
    """The link of a classic member, which leaves by a request."""

    def __init__(self, context: ClassicContext, stream: int) -> None:
        super().__init__(context, stream)
        self._calls = context.calls

    async def leave(self, member_id: str, *, bypass_parked: bool) -> None:
        """Leave the group; with `bypass_parked` on a second connection, so as not to queue behind a parked request."""
        connection = self.connection
        if connection is None:
            return
        connection.member = self._member = member_id  # traced as this member's request
        timeout_ms = self._context.config.patience_ms
        try:
            if not bypass_parked:
                await self._calls.leave(connection, member_id, timeout_ms=timeout_ms)
                return
            second = await self.open_second(connection)
            try:
                await self._calls.leave(second, member_id, timeout_ms=timeout_ms)
            finally:
                second.close()
                await second.wait_closed()
        except (Unavailable, ProtocolError):
            return  # the session timeout will remove the member
