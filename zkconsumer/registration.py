"""A member's id znode: how it is named, and how it comes to stand in ZooKeeper.

Source: ZookeeperConsumerConnector.registerConsumerInZK and ZkUtils.createEphemeralPathExpectConflictHandleZKBug,
Kafka 0.8.2. The loop below is what makes a member with a fixed consumer.id wait for the node that its dead
predecessor left, one session timeout a try and without an end (KAFKA-1387); 1.1 raises at once instead.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from typing import TYPE_CHECKING

from kernel.clock import SystemClock
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode
from zkconsumer.payloads import registration_payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)


def new_consumer_id(group: str, configured: str | None) -> str:
    """`<group>_<consumer.id>`, or `<group>_<host>-<epoch ms>-<8 hex digits>` when none is configured."""
    if configured is not None:
        return f"{group}_{configured}"
    unique = uuid.uuid4().hex[:8]
    return f"{group}_{socket.gethostname()}-{SystemClock().wall_ms()}-{unique}"


async def register(
    session: ZooKeeperSession, group: str, consumer_id: str, topics: Mapping[str, int], conflict_backoff_ms: int
) -> None:
    """Create the ephemeral id znode; returns when it stands with our bytes in it.

    One create when the group exists, five requests for a new one. The same bytes in a node that exists are
    our own create whose answer was lost. Any other node is waited for, `conflict_backoff_ms` a try.
    """
    path = paths.member_id(group, consumer_id)
    payload = registration_payload(topics, SystemClock().wall_ms())
    while True:
        try:
            await session.create(path, payload, ephemeral=True, makepath=True, step="register")
        except NodeExists:
            pass
        else:
            return
        try:
            if (await session.get(path, step="register"))[0] == payload:
                return
            # The original's conflict handler reads it once more before it decides to wait (ZOOKEEPER-1740).
            await session.get(path, step="register")
        except NoNode:
            continue
        log.warning("%s is still registered by another session: waiting %d ms", consumer_id, conflict_backoff_ms)
        await asyncio.sleep(conflict_backoff_ms / 1000)
