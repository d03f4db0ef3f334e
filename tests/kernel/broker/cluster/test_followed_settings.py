"""A broker that follows settings in a real ZooKeeper, over a connection that breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from kernel.broker.cluster.cluster_view import Leadership
from kernel.broker.cluster.config_store import ConfigStore
from kernel.broker.cluster.znodes import config_change_node, topic_config_node
from kernel.clock import SystemClock
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import errors, paths
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, opened

TOPICS = ("t", "u")


@asynccontextmanager
async def following(session: ZooKeeperSession) -> AsyncIterator[ConfigStore]:
    """Broker 1, which leads a partition of each of `TOPICS`."""
    store = ConfigStore(1, {}, SystemClock())
    store.connect(lambda: session)
    await store.start()
    try:
        for number, name in enumerate(TOPICS):
            await store.on_lead(Leadership(TopicPartition(name, 0), UUID(int=number), 0))
        yield store
    finally:
        await store.stop()


async def alter(session: ZooKeeperSession, name: str, max_message_bytes: int) -> str:
    """Alter a topic's setting as Kafka's tools do; returns the path of the notification."""
    node = topic_config_node({"max.message.bytes": str(max_message_bytes)})
    path = paths.topic_configuration(name)
    if await session.exists(path):
        await session.set(path, node)
    else:
        await session.create(path, node, makepath=True)
    return await session.create_numbered(paths.CONFIG_CHANGE, config_change_node(f"topics/{name}"))


async def heard(store: ConfigStore, **expected: int) -> None:
    def found() -> dict[str, int]:
        return {name: store.of(name).max_message_bytes for name in expected}

    await until(lambda: found() == expected, 60, lambda: f"{expected}, got {found()}")


async def test_change_whose_notification_was_removed_during_a_disconnection_is_still_read(chroot: str):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(chroot) as tool, opened(proxy.connect_string) as session:
            await session.create(paths.CONFIG_CHANGES, makepath=True)
            async with following(session) as store:
                first = await alter(tool, "u", 1000)
                await heard(store, u=1000)
                proxy.refuse()
                proxy.cut()
                await become(session, SessionState.SUSPENDED)
                removed = await alter(tool, "t", 2000)
                for path in (first, removed):
                    await tool.delete(path)
                await alter(tool, "u", 3000)
                proxy.refuse(False)
                await heard(store, u=3000)
                await heard(store, t=2000)


@pytest.mark.parametrize("error", [errors.ConnectionLost, errors.Unanswered])
async def test_broker_settings_that_were_unreadable_at_startup_are_read_later(
    chroot: str, monkeypatch: pytest.MonkeyPatch, error: type[errors.ZooKeeperError]
):
    async with opened(chroot) as tool, opened(chroot) as session:
        await session.create(paths.CONFIG_CHANGES, makepath=True)
        await alter(tool, "u", 1000)  # its notification is the last change that the starting broker sees
        node = topic_config_node({"message.max.bytes": "4000"})
        await tool.create(paths.broker_configuration("1"), node, makepath=True)
        failures = [error("broken", "/config/brokers/1")]
        read = ConfigStore.broker

        async def broker(store: ConfigStore, name: str) -> dict[str, str]:
            if failures:
                raise failures.pop()
            return await read(store, name)

        monkeypatch.setattr(ConfigStore, "broker", broker)
        async with following(session) as store:
            await heard(store, t=4000)
