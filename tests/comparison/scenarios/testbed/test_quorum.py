"""Proxies between the servers of an ensemble: a server that is started again finds the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from comparison.scenarios.testbed.quorum import SERVERS, QuorumProxies
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.embedded import ZooKeeperEnsemble

if TYPE_CHECKING:
    from pathlib import Path

_SERVES_S = 20.0


@pytest.mark.faults
def test_each_server_that_is_restarted_joins_the_others_again(tmp_path: Path) -> None:
    async def story() -> list[str | None]:
        links = QuorumProxies(SilentTracer())
        await links.start()
        ensemble = ZooKeeperEnsemble(tmp_path, quorum_links=links.ports)
        modes = []
        try:
            await asyncio.to_thread(ensemble.start)
            for number, server in zip(SERVERS, ensemble.servers, strict=True):
                introducing = asyncio.create_task(links.introduce(number))
                await asyncio.to_thread(server.restart, timeout_s=_SERVES_S)
                modes.append(await asyncio.to_thread(server.mode))
                introducing.cancel()
                await asyncio.gather(introducing, return_exceptions=True)
        finally:
            await asyncio.to_thread(ensemble.stop)
            await links.stop()
        return modes

    assert set(asyncio.run(story())) <= {"leader", "follower"}
