"""The registered brokers: one read for their names and one for each broker.

Source: ZkUtils.getAllBrokersInCluster, Kafka 0.8.2. The leader finder and the search for the offsets' coordinator read
brokers in this way; the rebalance reads the same nodes in separate steps (R1, R3).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from zkconsumer.znodes.payloads import broker_version, parse_broker

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.values import BrokerAddress
    from zkconsumer.watching.watcher import Watcher


async def read_brokers(
    watcher: Watcher, *, step: str, aged: Callable[[BrokerAddress, int], None] | None = None
) -> list[BrokerAddress]:
    """The registered brokers by name; one that disappears between the reads is left out.

    `aged(broker, version)` is called with the version of each broker's node, if it has one.
    """
    try:
        names = await watcher.children(paths.BROKER_IDS, step=step)
    except NoNode:
        return []
    found = await asyncio.gather(
        *(watcher.get(f"{paths.BROKER_IDS}/{name}", step=step) for name in names), return_exceptions=True
    )
    brokers = []
    for name, data in zip(names, found, strict=True):
        if isinstance(data, NoNode):
            continue
        if isinstance(data, BaseException):
            raise data
        path = f"{paths.BROKER_IDS}/{name}"
        brokers.append(parse_broker(path, data))
        if aged is not None and (version := broker_version(path, data)) is not None:
            aged(brokers[-1], version)
    return brokers
