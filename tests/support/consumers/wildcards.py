"""Live tests of topic patterns: members that subscribe by pattern, and topics created and deleted meanwhile."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.zookeeper import Member, new_member
from zkconsumer.znodes.filters import TopicFilter


@asynccontextmanager
async def wildcard(
    chroot: str, name: str, topic_filter: TopicFilter, streams: int = 1, *, group: str = "g", **settings: str
) -> AsyncIterator[Member]:
    """A member that has joined by pattern. Closed at the end."""
    made = new_member(chroot, name, group=group, **settings)
    try:
        await made.consumer.start()
        await made.consumer.subscribe_pattern(topic_filter, streams, made)
        yield made
    finally:
        await made.consumer.close()


async def add_topic(session: ZooKeeperSession, topic: str, partitions: int) -> None:
    """Create a topic without a leader, as znodes only: enough to be owned."""
    assigned = {str(number): [0] for number in range(partitions)}
    await session.create(paths.topic(topic), json.dumps({"version": 1, "partitions": assigned}).encode(), makepath=True)


async def add_broker(session: ZooKeeperSession) -> None:
    """Register a broker that cannot be reached, for groups that own partitions without reading."""
    data = b'{"jmx_port":-1,"timestamp":"1","host":null,"version":1,"port":-1}'
    await session.create(paths.broker(0), data, makepath=True)


def reads_of_rebalances(who: Member, since: int = 0) -> int:
    """The number of reads in steps R1 to R11 since event number `since`, without the leader finder's repetitions."""
    return sum(
        event["op"] in ("exists", "getData", "getChildren")
        for event in who.tracer.events[since:]
        if event["kind"] == "zk_op" and event["step"] in ("R1", "R2", "R3", "R6", "R8", "R11")
    )


def operations(who: Member, since: int = 0) -> list[str]:
    """`step op path` of its requests since event number `since`, without the leader finder's."""
    return [
        f"{event['step']} {event['op']} {event['path']}"
        for event in who.tracer.events[since:]
        if event["kind"] == "zk_op" and event["step"] != "leader-finder"
    ]


async def rebalanced(who: Member, times: int, *, timeout_s: float = 60) -> None:
    """Wait until `times` rebalances have succeeded since it was started."""
    await until(lambda: who.rebalances() >= times, timeout_s, lambda: f"{times} rebalances, got {who.rebalances()}")
