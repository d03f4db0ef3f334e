"""A broker's own znodes: the folders it needs, the cluster id, and its registration under /brokers/ids."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.cluster import znodes
from kernel.errors import EnvironmentFault, UserError
from kernel.random_ids import fresh_uuid
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode
from kernel.zookeeper.operations import Create, SetData

if TYPE_CHECKING:
    from random import Random

    from kernel.clock import Clock
    from kernel.values import BrokerAddress
    from kernel.zookeeper.operations import WatchFired
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)
_STEP = "registration"


#: Generated broker ids are higher (Kafka's reserved.broker.max.id).
RESERVED_BROKER_ID_MAX = 1000


class BrokerIdTaken(UserError):
    """Another live session has registered this broker id."""


async def find_cluster(session: ZooKeeperSession) -> str | None:
    """The cluster's id; None in a ZooKeeper that no broker has used. Raises EnvironmentFault if it is malformed."""
    try:
        data, _ = await session.get(paths.CLUSTER_ID, step=_STEP)
    except NoNode:
        return None
    try:
        return znodes.parse_cluster_id(data)
    except znodes.MalformedNode as error:
        raise EnvironmentFault(
            f"{paths.CLUSTER_ID} in ZooKeeper is malformed: {error}. Restore it: the id is cluster.id in"
            " brokers/*/meta.properties of the data folder."
        ) from error


async def next_node_id(session: ZooKeeperSession) -> int:
    """Generate a broker id as Kafka does: the data version of /brokers/seqid, which a write increments."""
    try:
        stat = await session.set(paths.BROKER_SEQUENCE, b"", step=_STEP)
    except NoNode:
        await session.ensure_path(paths.BROKER_SEQUENCE, step=_STEP)
        stat = await session.set(paths.BROKER_SEQUENCE, b"", step=_STEP)
    return RESERVED_BROKER_ID_MAX + stat.version


async def ensure_cluster(session: ZooKeeperSession, random: Random) -> str:
    """Create the folders that Kafka creates, including /consumers; returns the cluster's id."""
    found = await asyncio.gather(*(session.exists(path, step=_STEP) for path in paths.BROKER_ROOTS))
    for path, stat in zip(paths.BROKER_ROOTS, found, strict=True):
        if stat is None:
            await session.ensure_path(path, step=_STEP)
    proposed = znodes.id_text(fresh_uuid(random))
    try:
        await session.create(paths.CLUSTER_ID, znodes.cluster_id_node(proposed), makepath=True, step=_STEP)
    except NodeExists:
        data, _ = await session.get(paths.CLUSTER_ID, step=_STEP)
        return znodes.parse_cluster_id(data)
    return proposed


async def register(session: ZooKeeperSession, address: BrokerAddress, clock: Clock, *, patience_ms: int | None) -> None:
    """Create the broker's ephemeral znode, as 3.9.1 does: one transaction of create and set.

    Waits for another session's node to go: usually one of a previous incarnation of this broker, whose session has not
    timed out yet. Raises BrokerIdTaken if it still exists after `patience_ms` (None: wait forever).
    """
    path = paths.broker(address.node_id)
    try:
        async with asyncio.timeout(None if patience_ms is None else patience_ms / 1000):
            while not await _registered(session, path, znodes.broker_node(address, clock.wall_ms())):
                await _wait_for_deletion(session, path)
    except TimeoutError:
        raise BrokerIdTaken(
            f"broker id {address.node_id} is registered in ZooKeeper by another live broker. Stop that one, wait"
            " for its session to time out, or choose another broker.id."
        ) from None


async def _registered(session: ZooKeeperSession, path: str, data: bytes) -> bool:
    try:
        await session.transaction(Create(path, data, ephemeral=True), SetData(path, data), step=_STEP)
    except NodeExists:
        stat = await session.exists(path, step=_STEP)
        # Our own: the reply to a first attempt was lost with its connection.
        return stat is not None and stat.ephemeral_owner == session.session_id
    return True


async def _wait_for_deletion(session: ZooKeeperSession, path: str) -> None:
    fired = asyncio.Event()

    def wake(_: WatchFired) -> None:
        fired.set()

    if await session.exists(path, watch=wake, step=_STEP) is not None:
        log.warning("%s exists in another session; waiting until it is gone", path)
        await fired.wait()


async def allocate_block(session: ZooKeeperSession, node_id: int) -> znodes.ProducerIdBlock:
    """Allocate the next block of producer ids for this broker alone."""
    while True:
        try:
            data, stat = await session.get(paths.PRODUCER_ID_BLOCK, step="producer-ids")
        except NoNode:
            await session.ensure_path(paths.PRODUCER_ID_BLOCK, step="producer-ids")
            continue
        block = znodes.next_producer_id_block(data, node_id)
        try:
            await session.set(
                paths.PRODUCER_ID_BLOCK, znodes.producer_id_block_node(block), stat.version, step="producer-ids"
            )
        except BadVersion:
            continue
        return block
