"""The whole broker: failed starts leave nothing behind, mounted parts run from subscription to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.server.handlers import HandlerTable, RequestContext
from kernel.broker.services import BrokerServices
from kernel.client.connection import BrokerConnection
from kernel.errors import EnvironmentFault, Unavailable
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import broker_of, running_broker, running_cluster


def leftovers() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def run(test: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(300):
            await test()
            await until(lambda: leftovers() == [], 60, lambda: f"{leftovers()} to be removed")

    asyncio.run(whole())


def nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


async def test_taken_port_is_reported_before_anything_else_happens(chroot: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(EnvironmentFault, match=port):
            await broker_of(chroot, tmp_path / "data", settings={"port": port}).start()
    assert list((tmp_path / "data").iterdir()) == []


def test_zookeeper_that_is_down_is_unavailable_and_the_port_is_free_again(unused_port: int, tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"zookeeper.connection.timeout.ms": "300"}
        with pytest.raises(Unavailable, match=str(unused_port)):
            await broker_of(f"127.0.0.1:{unused_port}", tmp_path, settings=settings).start()

    run(test)


def test_mounted_part_is_served_and_stops_while_the_cluster_is_still_there(chroot: str, tmp_path: Path) -> None:
    handled: list[str] = []

    def mount(services: BrokerServices) -> HandlerTable:
        def heartbeat(context: RequestContext, _body: Any) -> Mapping[str, Any]:
            handled.append(context.client_id)
            return {"error_code": 0}

        async def stop() -> None:
            topic = await until(
                lambda: services.create_internal_topic("__consumer_offsets"),
                60,
                "the topic, while ZooKeeper still answers",
            )
            assert topic is not None
            handled.append(f"stopped with {len(topic.partitions)} partitions")

        services.on_stop(stop)
        assert services.cluster.snapshot.brokers == {}, "it has not joined yet: parts can subscribe"
        return {Api.Heartbeat: heartbeat}

    async def test() -> None:
        async with running_broker(chroot, tmp_path, mount=[mount]) as broker:
            assert broker.cluster.snapshot.brokers[1] == broker.address
            connection = await BrokerConnection.open(broker.address.host, broker.address.port, "me")
            assert connection.offered[Api.Heartbeat] == (0, 4)
            assert Api.JoinGroup not in connection.offered
            await connection.call(Api.Heartbeat, {"group_id": "g", "member_id": "m"})
            connection.close()
            await connection.wait_closed()
        assert handled == ["me", "stopped with 4 partitions"]
        assert nobody_listens(broker.address.port)
        await broker.stop()

    run(test)


def test_brokers_without_an_id_get_different_ones_above_1000(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with running_cluster(2, chroot, tmp_path, settings={"broker.id": "-1"}) as brokers:
            ids = [broker.address.node_id for broker in brokers]
            assert sorted(brokers[0].cluster.snapshot.brokers) == sorted(ids)
            assert min(ids) > 1000

    run(test)
