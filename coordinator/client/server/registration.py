"""A member's ephemeral znode: make its id, create, update and delete it.

Sets no watches: a member that waits for a dead predecessor's znode polls it, as the 0.8 consumer does (ZOOKEEPER-1740,
KAFKA-1387).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from coordinator.protocol.server.member_znode import registration_payload
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode, SessionClosed, SessionExpired
from kernel.zookeeper.operations import session_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.clock import Clock
    from kernel.runtime import Runtime
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

#: How often to look for a dead session's znode within the session timeout, which is how long it may stay.
LOOKS_PER_SESSION_TIMEOUT = 4


def new_member_id(group: str, configured: str | None, stream: int, runtime: Runtime) -> str:
    """Make `<group>_<consumer.id>`, or `<group>_<host>-<epoch ms>-<8 hex digits>`; streams from 1 on add `-<n>`."""
    unique = f"{runtime.random.getrandbits(32):08x}"
    second = (
        f"{runtime.edge(socket.gethostname)()}-{runtime.clock.wall_ms()}-{unique}" if configured is None else configured
    )
    return f"{group}_{second}" + (f"-{stream}" if stream else "")


async def register(
    session: ZooKeeperSession,
    group: str,
    member_id: str,
    topics: Callable[[], tuple[str, ...]],
    *,
    clock: Clock,
    only_in: int,
) -> None:
    """Create the znode, with `topics()` in it. Raises `SessionExpired` once the session `only_in` is over.

    Waits while another session holds the id: that is our own earlier session, or a member with the same consumer.id.
    If our session holds it already, the registration survived; update it.
    """
    path = paths.member_id(group, member_id)
    while True:
        payload = registration_payload(topics(), clock.wall_ms())
        try:
            await session.create(path, payload, ephemeral=True, makepath=True, step="register", only_in=only_in)
        except NodeExists:
            stat = await session.exists(path, step="register")
        else:
            return
        if stat is None:
            continue
        if stat.ephemeral_owner == only_in:
            await session.set(path, payload, step="register", only_in=only_in)
            return
        log.warning("%s is still registered by session %s: waiting", member_id, session_name(stat.ephemeral_owner))
        await asyncio.sleep(session.negotiated_timeout_ms / LOOKS_PER_SESSION_TIMEOUT / 1000)


async def announce(
    session: ZooKeeperSession, group: str, member_id: str, topics: tuple[str, ...], *, clock: Clock, only_in: int
) -> None:
    """Update the topics in the znode. Without the znode or the session, the member will register again anyway."""
    payload = registration_payload(topics, clock.wall_ms())
    try:
        await session.set(paths.member_id(group, member_id), payload, step="register", only_in=only_in)
    except (NoNode, SessionExpired, SessionClosed) as error:
        log.info("%s could not change its registration: %s", member_id, error)


async def unregister(session: ZooKeeperSession, group: str, member_id: str, *, only_in: int) -> None:
    """Delete the znode, if it still exists."""
    try:
        await session.delete(paths.member_id(group, member_id), step="unregister", only_in=only_in)
    except (NoNode, SessionExpired, SessionClosed) as error:
        log.debug("%s was already gone: %s", member_id, error)
