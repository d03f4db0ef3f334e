"""Counts the connections that brokers on the test's own event loop open to each other.

opened = opened_by_coordinators(monkeypatch)
... assert len(opened) == 1
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.service.peers import CLIENT_ID
from kernel.client.connection import BrokerConnection


def opened_by_coordinators(monkeypatch: pytest.MonkeyPatch) -> list[BrokerConnection]:
    """The connections that brokers open to each other from now on; the list grows with them."""
    opened: list[BrokerConnection] = []
    really = BrokerConnection.open

    async def counting(host: str, port: int, client_id: str, **given: Any) -> BrokerConnection:
        connection = await really(host, port, client_id, **given)
        if client_id == CLIENT_ID:
            opened.append(connection)
        return connection

    monkeypatch.setattr(BrokerConnection, "open", counting)
    return opened
