"""A member's id znode: how it is named, and how it comes to stand in ZooKeeper.

Source: ZookeeperConsumerConnector.registerConsumerInZK and ZkUtils.createEphemeralPathExpectConflictHandleZKBug,
Kafka 0.8.2. The loop below is what makes a member with a fixed consumer.id wait for the node that its dead
predecessor left, one session timeout a try and without an end (KAFKA-1387); 1.1 raises at once instead
(ZKCheckedEphemeral).

One thing the original does is left out: a member that finds the node of its own living session takes it for
somebody else's when the time in it differs, and waits for its own end. That happens when a session expires twice
in a row, and 1.1 does not do it either.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from typing import TYPE_CHECKING

from kernel.clock import SystemClock
from kernel.errors import UserError
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode
from kernel.zookeeper.operations import session_name
from zkconsumer.znodes.payloads import registration_payload

if TYPE_CHECKING:
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.member.subscription import Subscription

log = logging.getLogger(__name__)


class IdTaken(UserError):
    """Another session holds the member's id, and `registration.conflict` says to fail (1.1's answer)."""


def new_consumer_id(group: str, configured: str | None) -> str:
    """`<group>_<consumer.id>`, or `<group>_<host>-<epoch ms>-<8 hex digits>` when none is configured."""
    if configured is not None:
        return f"{group}_{configured}"
    unique = uuid.uuid4().hex[:8]
    return f"{group}_{socket.gethostname()}-{SystemClock().wall_ms()}-{unique}"


async def register(
    session: ZooKeeperSession,
    group: str,
    consumer_id: str,
    subscription: Subscription,
    *,
    conflict_backoff_ms: int,
    fail_on_conflict: bool,
) -> None:
    """Create the ephemeral id znode; returns when it stands with our bytes in it, or belongs to our session.

    One create when the group exists, five requests for a new one. The same bytes in a node that exists are
    our own create whose answer was lost. Any other session's node is waited for, `conflict_backoff_ms` a try;
    `fail_on_conflict`: raises `IdTaken` instead.
    """
    path = paths.member_id(group, consumer_id)
    payload = registration_payload(subscription.wanted, SystemClock().wall_ms(), subscription.pattern)
    while True:
        try:
            await session.create(path, payload, ephemeral=True, makepath=True, step="register")
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
                    "another consumer.id, or wait for the end of that session"
                )
            # The original's conflict handler reads it once more before it decides to wait (ZOOKEEPER-1740).
            await session.get(path, step="register")
        except NoNode:
            continue
        log.warning("%s is still registered by another session: waiting %d ms", consumer_id, conflict_backoff_ms)
        await asyncio.sleep(conflict_backoff_ms / 1000)
