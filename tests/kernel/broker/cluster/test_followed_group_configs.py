"""The settings of groups in a real ZooKeeper, altered by one broker and followed by another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kernel.broker.cluster.group_config_store import GroupConfigStore
from kernel.broker.cluster.znodes import topic_config_node
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, opened

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@asynccontextmanager
async def following(session: ZooKeeperSession, node_id: int = 1) -> AsyncIterator[GroupConfigStore]:
    store = GroupConfigStore(node_id, lambda: session)
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


async def alter(store: GroupConfigStore, group: str, **changes: str) -> None:
    names = {"session": SESSION, "heartbeat": HEARTBEAT}
    await store.alter(group, lambda before: {**before, **{names[name]: value for name, value in changes.items()}})


async def heard(store: GroupConfigStore, group: str, expected: dict[str, str]) -> None:
    await until(lambda: store.of(group) == expected, 60, lambda: f"{expected}, got {store.of(group)}")


async def test_alteration_is_in_force_at_once_reaches_other_brokers_and_those_that_start_later(chroot: str) -> None:
    async with opened(chroot) as one, opened(chroot) as other:
        async with following(one) as altering, following(other, 2) as listening:
            assert altering.of("g") == {}
            await alter(altering, "g", session="50000")
            assert altering.of("g") == {SESSION: "50000"}
            await heard(listening, "g", {SESSION: "50000"})
            await alter(listening, "g", heartbeat="6000")
            await heard(altering, "g", {SESSION: "50000", HEARTBEAT: "6000"})
            await altering.alter("g", lambda _: {})
            await heard(listening, "g", {})
            await alter(altering, "g", heartbeat="7000")
        async with following(other, 3) as later:
            assert later.of("g") == {HEARTBEAT: "7000"}


@pytest.mark.parametrize("group", ["a/b", ".", "..", "%2F", "ü *~+", "-"])
async def test_group_may_have_any_name(chroot: str, group: str) -> None:
    async with opened(chroot) as session, opened(chroot) as other:
        async with following(session) as store, following(other, 2) as listening:
            await alter(store, group, session="50000")
            await heard(listening, group, {SESSION: "50000"})
        async with following(session, 3) as later:
            assert later.of(group) == {SESSION: "50000"}


async def test_alterations_during_a_disconnection_are_read_afterwards(chroot: str) -> None:
    with ZooKeeperProxy(chroot) as proxy:
        async with (
            opened(chroot) as one,
            opened(proxy.connect_string) as session,
            following(one) as altering,
            following(session, 2) as listening,
        ):
            await alter(altering, "g", session="50000")
            await heard(listening, "g", {SESSION: "50000"})
            proxy.refuse()
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            for group in ("g", "h"):
                await alter(altering, group, session="51000")
            proxy.refuse(False)
            for group in ("g", "h"):
                await heard(listening, group, {SESSION: "51000"})


async def test_what_no_broker_wrote_is_ignored_with_a_warning(chroot: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(chroot) as session:
        await session.create(paths.group_configuration("a"), b"{}", makepath=True)
        node = topic_config_node({SESSION: "soon", HEARTBEAT: "6000", "share.session.timeout.ms": "1"})
        await session.create(paths.group_configuration("b"), node)
        async with following(session) as store:
            assert (store.of("a"), store.of("b")) == ({}, {HEARTBEAT: "6000"})
            await session.set(paths.CONFIG_GROUPS, b"nonsense")
            await session.set(paths.group_configuration("a"), topic_config_node({HEARTBEAT: "7000"}))
            await session.set(paths.CONFIG_GROUPS, b"nonsense")
            await heard(store, "a", {HEARTBEAT: "7000"})
    assert "Invalid value soon for configuration consumer.session.timeout.ms" in caplog.text
    assert "Unknown group config name: share.session.timeout.ms" in caplog.text
    assert "ignoring /config/groups/a" in caplog.text
