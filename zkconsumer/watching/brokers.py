"""Which brokers there are: one read for the names and one for each broker.

Source: ZkUtils.getAllBrokersInCluster, Kafka 0.8.2. The leader finder and whoever looks for the coordinator of
offsets read them in this way; the rebalance reads the same nodes as steps of its own (R1, R3).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from zkconsumer.znodes.payloads import parse_broker

if TYPE_CHECKING:
    from kernel.values import BrokerAddress
    from zkconsumer.watching.watcher import Watching


async def read_brokers(watching: Watching, *, step: str) -> list[BrokerAddress]:
    """The registered brokers by name; one that vanishes in between is left out."""
    try:
        names = await watching.children(paths.BROKER_IDS, step=step)
    except NoNode:
        return []
    found = await asyncio.gather(
        *(watching.get(f"{paths.BROKER_IDS}/{name}", step=step) for name in names), return_exceptions=True
    )
    brokers = []
    for name, data in zip(names, found, strict=True):
        if isinstance(data, NoNode):
            continue
        if isinstance(data, BaseException):
            raise data
        brokers.append(parse_broker(f"{paths.BROKER_IDS}/{name}", data))
    return brokers
