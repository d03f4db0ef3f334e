"""A member's session, and its id znode: its name and its creation.

Source: ZookeeperConsumerConnector.registerConsumerInZK and ZkUtils.createEphemeralPathExpectConflictHandleZKBug,
Kafka 0.8.2. Because of the loop below, a member with a fixed consumer.id waits for the node of its dead predecessor to
disappear, retrying once per session timeout, without a limit (KAFKA-1387); 1.1 raises at once (ZKCheckedEphemeral).

We leave out one thing the original does: if the node belongs to the member's own live session but has another
timestamp, the original takes it for a foreign node and waits for its own session to end. That happens when a session
expires twice in a row; 1.1 does not do it either.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from kernel.errors import RefusedForGood
from kernel.zookeeper import paths
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import NodeExists, NoNode
from kernel.zookeeper.manners import JavaManners
from kernel.zookeeper.operations import session_name
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from zkconsumer.settings import ZkConsumerConfig

log = logging.getLogger(__name__)


class IdTaken(RefusedForGood):
    """Another session holds the member's id, and `registration.conflict` is `fail` (as in 1.1)."""


def new_consumer_id(group: str, configured: str | None, runtime: Runtime) -> str:
    """`<group>_<consumer.id>`, or `<group>_<host>-<epoch ms>-<8 hex digits>` when none is configured."""
    if configured is not None:
        return f"{group}_{configured}"
    unique = f"{runtime.random.getrandbits(32):08x}"
    return f"{group}_{runtime.edge(socket.gethostname)()}-{runtime.clock.wall_ms()}-{unique}"


async def open_session(
    config: ZkConsumerConfig, consumer_id: str, process: str, tracer: Tracer, runtime: Runtime
) -> ZooKeeperSession:
    """A session with the manners of the Java client. Raises `Unavailable` without ZooKeeper."""
    pauses = Random(f"{config.seed}:{consumer_id}") if config.pauses_to_reconnect else None
    return await ZooKeeperSession.open(
        config.zookeeper_connect,
        session_timeout_ms=config.session_timeout_ms,
        tracer=tracer,
        process=process,
        name=consumer_id,
        connection_timeout_ms=config.connection_timeout_ms,
        retry_forever=True,
        bridge=partial(runtime.edge(Bridge), manners=JavaManners(pauses, runtime.clock)),
    )


async def register(
    session: ZooKeeperSession,
    group: str,
    consumer_id: str,
    payload: bytes,
    *,
    conflict_backoff_ms: int,
    fail_on_conflict: bool,
    release: str = "0.8.2",
) -> None:
    """Create the ephemeral id znode; return once it holds our bytes or belongs to our session.

    One create if the group exists, five requests for a new one; as 1.1, always four. A node with the same bytes is our
    own create whose response was lost. If the node belongs to another session, retry every `conflict_backoff_ms`, or
    raise `IdTaken` with `fail_on_conflict`.
    """
    path = paths.member_id(group, consumer_id)
    create = _create_as_1_1 if release == "1.1" else _create
    while True:
        try:
            await create(session, path, payload)
        except NodeExists:
            pass
        else:
            return
        try:
            data, stat = await session.get(path, step="register")
            if data == payload or stat.ephemeral_owner == session.session_id:
                return
            if fail_on_conflict:
                raise IdTaken(
                    f"{consumer_id} is registered by session {session_name(stat.ephemeral_owner)}: give this member "
                    "another consumer.id, or wait for that session to end"
                )
            # The original's conflict handler reads the node once more before it decides to wait (ZOOKEEPER-1740).
            await session.get(path, step="register")
        except NoNode:
            continue
        log.warning("%s is still registered by another session: waiting %d ms", consumer_id, conflict_backoff_ms)
        await asyncio.sleep(conflict_backoff_ms / 1000)


async def _create(session: ZooKeeperSession, path: str, payload: bytes) -> None:
    await session.create(path, payload, ephemeral=True, makepath=True, step="register")


async def _create_as_1_1(session: ZooKeeperSession, path: str, payload: bytes) -> None:
    """ZKCheckedEphemeral of 1.1: create the whole path top down without waiting, parents with an empty text."""
    ids = paths.parent(path)
    parents = (paths.CONSUMERS, paths.parent(ids), ids)
    *made, registered = await asyncio.gather(
        *(session.create(each, b"", step="register") for each in parents),
        session.create(path, payload, ephemeral=True, step="register"),
        return_exceptions=True,
    )
    for outcome in (*made, registered):
        if isinstance(outcome, BaseException) and (outcome is registered or not isinstance(outcome, NodeExists)):
            raise outcome
