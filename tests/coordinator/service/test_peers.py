"""Requests between brokers: connections are kept, and reopened when they are lost."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from coordinator.service import peers as peers_module
from coordinator.service.peers import Peers
from kernel.client.connection import BrokerConnection
from kernel.values import BrokerAddress
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import running_broker
from tests.support.brokers.peers import opened_by_coordinators


async def metadata_of(peers: Peers, broker: BrokerAddress) -> Any:
    return await peers.call(broker, Api.Metadata, {"topics": [], "allow_auto_topic_creation": False})


async def test_concurrent_calls_share_a_connection_and_a_closed_one_is_reopened(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_by_coordinators(monkeypatch)
    peers = Peers()
    async with running_broker(chroot, tmp_path) as broker:
        at = broker.address
        answers = await asyncio.gather(*(metadata_of(peers, at) for _ in range(5)))
        assert [answer.brokers[0].node_id for answer in answers] == [1] * 5
        assert len(opened) == 1
        opened[0].close()
        assert await metadata_of(peers, at) is not None
        assert len(opened) == 2
    await until(lambda: opened[1].closed, 60, "the broker to close the connection")
    assert await metadata_of(peers, at) is None, "no broker listens there now"
    async with running_broker(chroot, tmp_path) as broker:
        assert await metadata_of(peers, broker.address) is not None, "at its new address"
        await peers.close()
        assert all(connection.closed for connection in opened)
        assert await metadata_of(peers, broker.address) is None


async def test_calls_at_once_to_a_frozen_broker_share_the_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "TIMEOUT_MS", 200)
    attempts = []
    really = BrokerConnection.open

    async def counting(*given: Any, **named: Any) -> BrokerConnection:
        attempts.append(given)
        return await really(*given, **named)

    monkeypatch.setattr(BrokerConnection, "open", counting)
    peers = Peers()
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as frozen:  # the operating system accepts connections, and nothing answers
        at = BrokerAddress(1, *frozen.getsockname())
        assert await asyncio.gather(*(metadata_of(peers, at) for _ in range(20))) == [None] * 20
        assert len(attempts) == 1
        assert await metadata_of(peers, at) is None
        assert len(attempts) == 2, "the next call tries again"
        await peers.close()


async def test_cancelled_caller_does_not_close_the_connection_of_others(chroot: str, tmp_path: Path) -> None:
    peers = Peers()
    async with running_broker(chroot, tmp_path) as broker:
        first = asyncio.create_task(metadata_of(peers, broker.address))
        second = asyncio.create_task(metadata_of(peers, broker.address))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is not None
        await peers.close()


async def test_close_ends_calls_that_wait_for_a_frozen_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "TIMEOUT_MS", 600_000)
    peers = Peers()
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        call = asyncio.create_task(metadata_of(peers, BrokerAddress(1, *frozen.getsockname())))
        await asyncio.sleep(0)
        await peers.close()
        assert await asyncio.wait_for(call, 60) is None
