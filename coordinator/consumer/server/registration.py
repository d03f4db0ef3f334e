"""A member's ephemeral znode: how its id is made, how it comes to stand in ZooKeeper, changes, and goes.

No watch is set anywhere here: a member that waits for a dead predecessor's znode looks again from time to time, as
the consumer of 0.8 does (ZOOKEEPER-1740, KAFKA-1387).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from typing import TYPE_CHECKING

from coordinator.protocol.member_znode import registration_payload
from kernel.clock import SystemClock
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode, SessionClosed, SessionExpired
from kernel.zookeeper.operations import session_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

#: Of a session timeout, which is how long a dead session's znode may stay: the part after which it is looked for again.
LOOKS_PER_SESSION_TIMEOUT = 4


def new_member_id(group: str, configured: str | None, stream: int) -> str:
    """`<group>_<consumer.id>`, or `<group>_<host>-<epoch ms>-<8 hex digits>`; later streams are numbered behind it."""
    unique = uuid.uuid4().hex[:8]
    second = f"{socket.gethostname()}-{SystemClock().wall_ms()}-{unique}" if configured is None else configured
    return f"{group}_{second}" + (f"-{stream}" if stream else "")


async def register(
    session: ZooKeeperSession, group: str, member_id: str, topics: Callable[[], tuple[str, ...]], *, only_in: int
) -> None:
    """Have the id stand, with `topics()` in it. Raises `SessionExpired` once the session `only_in` is over.

    An id that another session holds is waited for: it is our own of an earlier life, or somebody has the same
    consumer.id. One that our session holds already was not lost with what it stood for.
    """
    path = paths.member_id(group, member_id)
    while True:
        payload = registration_payload(topics(), SystemClock().wall_ms())
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
    session: ZooKeeperSession, group: str, member_id: str, topics: tuple[str, ...], *, only_in: int
) -> None:
    """Have the registration name other topics. Whatever is in the way means that it will be written anew anyway."""
    payload = registration_payload(topics, SystemClock().wall_ms())
    try:
        await session.set(paths.member_id(group, member_id), payload, step="register", only_in=only_in)
    except (NoNode, SessionExpired, SessionClosed) as error:
        log.info("%s could not change its registration: %s", member_id, error)


async def unregister(session: ZooKeeperSession, group: str, member_id: str, *, only_in: int) -> None:
    """What is gone already is as good."""
    try:
        await session.delete(paths.member_id(group, member_id), step="unregister", only_in=only_in)
    except (NoNode, SessionExpired, SessionClosed) as error:
        log.debug("%s was gone already: %s", member_id, error)
