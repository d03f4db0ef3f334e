"""The registered brokers, read as the original reads them."""

from __future__ import annotations

import asyncio

import pytest

from kernel.trace.writer import SilentTracer
from kernel.values import BrokerAddress
from kernel.zookeeper import paths
from tests.support.consumers.wildcards import add_broker
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened
from zkconsumer.records.leaders import FetcherManager
from zkconsumer.settings import ZkConsumerConfig
from zkconsumer.watching.brokers import read_brokers
from zkconsumer.watching.watcher import Watcher


async def renewed() -> None:
    pass


async def test_reading_the_brokers_costs_one_read_and_one_for_each(chroot):
    tracer = ListTracer()
    async with opened(chroot) as other, opened(chroot, tracer) as session:
        watcher = Watcher(session, renewed)
        assert await read_brokers(watcher, step="R12") == []
        await add_broker(other)
        (found,) = await read_brokers(watcher, step="R12")
        assert isinstance(found, BrokerAddress)
        assert [each["op"] for each in tracer.of("zk_op")] == ["getChildren", "getChildren", "getData"]


async def test_broker_that_disappears_between_the_reads_is_left_out(chroot, link):
    def is_the_read_of_a_broker(request) -> bool:
        return request.op == "getData" and request.path.endswith(f"{paths.BROKER_IDS}/0")

    async with opened(chroot) as other, opened(link.connect_string) as session:
        await add_broker(other)
        held = link.pause_at(is_the_read_of_a_broker)
        reading = asyncio.create_task(read_brokers(Watcher(session, renewed), step="R12"))
        await held.reached()
        await other.delete(paths.broker(0))
        held.release()
        assert await reading == []


@pytest.mark.parametrize(("version", "old"), [(1, True), (3, True), (4, False), (5, False), (None, False)])
async def test_broker_that_is_too_old_to_fetch_from_is_named_once(chroot, caplog, version, old):
    """0.8.2.2 registers with version 1; a node without a version says nothing of its broker's age."""
    async with opened(chroot) as session:
        await session.ensure_path(paths.BROKER_IDS)
        age = "" if version is None else f'"version":{version},'
        node = f'{{{age}"host":"127.0.0.1","port":1}}'
        await session.create(paths.broker(0), node.encode(), ephemeral=True)
        config, _ = ZkConsumerConfig.from_settings({"zookeeper.connect": chroot, "group.id": "g"})
        watcher = Watcher(session, renewed)
        finder = FetcherManager(watcher, config, SilentTracer(), "g_c1", asyncio.create_task)
        for _ in range(2):
            await read_brokers(watcher, step="leader-finder", aged=finder._warn_of_old)
    warnings = [record.getMessage() for record in caplog.records if "older than Kafka 0.11" in record.getMessage()]
    assert len(warnings) == (1 if old else 0)
