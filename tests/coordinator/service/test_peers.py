"""What brokers ask each other: connections are kept, and opened again when they are gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator.service.peers import Peers
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers import running_broker
from tests.support.peers import opened_by_coordinators

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from kernel.values import BrokerAddress


async def metadata_of(peers: Peers, broker: BrokerAddress) -> Any:
    return await peers.call(broker, Api.Metadata, {"topics": [], "allow_auto_topic_creation": False})


def test_calls_at_once_share_a_connection_and_one_that_ended_is_opened_again(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened = opened_by_coordinators(monkeypatch)

    async def test() -> None:
        peers = Peers()
        async with running_broker(chroot, tmp_path) as broker:
            at = broker.address
            answers = await asyncio.gather(*(metadata_of(peers, at) for _ in range(5)))
            assert [answer.brokers[0].node_id for answer in answers] == [1] * 5
            assert len(opened) == 1
            opened[0].close()
            assert await metadata_of(peers, at) is not None
            assert len(opened) == 2
        await until(lambda: opened[1].closed, 10, "the broker to close the connection")
        assert await metadata_of(peers, at) is None, "nobody listens there any more"
        async with running_broker(chroot, tmp_path) as broker:
            assert await metadata_of(peers, broker.address) is not None, "at its new address"
            await peers.close()
            assert all(connection.closed for connection in opened)
            assert await metadata_of(peers, broker.address) is None

    asyncio.run(test())
