"""Proxies between the servers of an ensemble: a server that is started again finds the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comparison.scenarios.testbed.quorum import SERVERS
from kernel.tasks import cancel_and_wait
from kernel.waiting import until
from kernel.zookeeper.server import ServerProcess
from tests.faults.linked_ensemble import linked_ensemble, serving

_SERVES_S = 60.0


async def admitted(server: ServerProcess) -> None:
    """Wait until it leads or follows."""
    await until(
        lambda: asyncio.to_thread(lambda: server.mode() in ("leader", "follower")), _SERVES_S, "it to be admitted"
    )


@pytest.mark.faults
async def test_each_server_that_is_restarted_joins_the_others_again(tmp_path: Path) -> None:
    async with linked_ensemble(tmp_path) as (ensemble, links):
        for number, server in zip(SERVERS, ensemble.servers, strict=True):
            introducing = asyncio.create_task(links.introduce(number))
            await asyncio.to_thread(server.restart)
            await admitted(server)
            await cancel_and_wait(introducing)


@pytest.mark.faults
async def test_a_server_whose_connections_were_reset_is_readmitted(tmp_path: Path) -> None:
    """The first one: the ports by which it looks for the others are refused."""
    async with linked_ensemble(tmp_path) as (ensemble, links):
        first = ensemble.servers[0]
        broken = [(proxy, proxy.close()) for proxy, _ in links.of(first.number)]
        await until(lambda: asyncio.to_thread(lambda: first.mode() is None), _SERVES_S, "it to lose the others")
        for proxy, fault in broken:
            proxy.heal(fault)
        await links.readmit(first.number, lambda: serving(ensemble))
        await admitted(first)


@pytest.mark.faults
async def test_a_server_that_starts_after_the_others_are_complete_is_admitted(tmp_path: Path) -> None:
    """As one does on a busy machine: their connections to it were given up before it listened."""
    async with linked_ensemble(tmp_path) as (ensemble, links):
        first = ensemble.servers[0]
        await asyncio.to_thread(first.stop)
        await asyncio.to_thread(first.launch)
        await links.readmit(first.number, lambda: serving(ensemble))
        await admitted(first)
