"""Proxies between the servers of an ensemble: a server that is started again finds the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from comparison.scenarios.testbed.quorum import SERVERS, QuorumProxies
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from kernel.zookeeper.embedded import ZooKeeperEnsemble

if TYPE_CHECKING:
    from pathlib import Path

_SERVES_S = 20.0


def serving(ensemble: ZooKeeperEnsemble) -> set[int]:
    return {server.number for server in ensemble.servers if server.mode() is not None}


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


@pytest.mark.faults
def test_a_server_whose_connections_were_reset_is_readmitted(tmp_path: Path) -> None:
    """The first one: the ports by which it looks for the others are refused."""

    async def story() -> str | None:
        links = QuorumProxies(SilentTracer())
        await links.start()
        ensemble = ZooKeeperEnsemble(tmp_path, quorum_links=links.ports)
        try:
            await asyncio.to_thread(ensemble.start)
            first = ensemble.servers[0]
            broken = [(proxy, proxy.close()) for proxy, _ in links.of(first.number)]
            await until(lambda: asyncio.to_thread(lambda: first.mode() is None), _SERVES_S, "it to lose the others")
            for proxy, fault in broken:
                proxy.heal(fault)
            await links.readmit(first.number, lambda: serving(ensemble))
            return await asyncio.to_thread(first.mode)
        finally:
            await asyncio.to_thread(ensemble.stop)
            await links.stop()

    assert asyncio.run(story()) in ("leader", "follower")


@pytest.mark.faults
def test_a_server_that_starts_after_the_others_are_complete_is_admitted(tmp_path: Path) -> None:
    """As one does on a busy machine: their connections to it were given up before it listened."""

    async def story() -> str | None:
        links = QuorumProxies(SilentTracer())
        await links.start()
        ensemble = ZooKeeperEnsemble(tmp_path, quorum_links=links.ports)
        try:
            await asyncio.to_thread(ensemble.start)
            first = ensemble.servers[0]
            await asyncio.to_thread(first.stop)
            await asyncio.to_thread(first.launch)
            await links.readmit(first.number, lambda: serving(ensemble))
            return await asyncio.to_thread(first.mode)
        finally:
            await asyncio.to_thread(ensemble.stop)
            await links.stop()

    assert asyncio.run(story()) in ("leader", "follower")
