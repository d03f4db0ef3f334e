"""The connection on which a member's request waits, while its coordinator is abandoned."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from coordinator.client.context import AnyContext
from coordinator.client.server.link import CommandLink
from kernel.client.connection import BrokerConnection, Disconnected


class Connection:
    """As much of a connection as a link needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def close(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None:
        assert self.closed


class Link(CommandLink):
    """Opens the second connection on request."""

    def __init__(self) -> None:
        super().__init__(cast("AnyContext", None), 0)
        self.may_open = asyncio.Event()
        self.opened: list[Connection] = []

    async def open_second(self, connection: BrokerConnection) -> BrokerConnection:
        await self.may_open.wait()
        self.opened.append(Connection(f"second to {cast('Any', connection).name}"))
        return cast("BrokerConnection", self.opened[-1])


async def test_request_is_not_sent_to_a_coordinator_abandoned_while_its_connection_opens() -> None:
    link = Link()
    link.connection = cast("BrokerConnection", Connection("old"))
    asking = asyncio.create_task(link.for_commands())
    await asyncio.sleep(0)
    link.abandon()
    link.connection = cast("BrokerConnection", Connection("new"))
    link.may_open.set()
    with pytest.raises(Disconnected, match="abandoned meanwhile"):
        await asking
    assert [(opened.name, opened.closed) for opened in link.opened] == [("second to old", True)]
    assert cast("Any", await link.for_commands()).name == "second to new"
    assert cast("Any", await link.for_commands()).name == "second to new"
    await link.close()
    assert [opened.closed for opened in link.opened] == [True, True]
