"""The stall of article 002: a group waits for its slowest member to poll, at most for max.poll.interval.ms."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Running, partitions_of, producing
from tests.support.consumers.eager import bootstrap_of, eager, joining, settled

EVERYTHING = partitions_of("t", 4)


def within(member: Running, since: int, until_ns: int) -> int:
    """How many records it delivered in that time."""
    times = [(event["ns"], event["last"], event["first"]) for event in member.tracer.of("records_delivered")]
    return sum(int(str(last)) - int(str(first)) + 1 for ns, last, first in times if since < int(str(ns)) < until_ns)


def traced_ns(member: Running, kind: str, **fields: object) -> int:
    """When it last traced such an event."""
    found = [event for event in member.tracer.of(kind) if fields.items() <= event.items()]
    return int(str(found[-1]["ns"]))


@pytest.mark.parametrize(("strategy", "keeps"), [("range", 0), ("cooperative-sticky", 2)])
async def test_group_waits_for_the_member_that_does_not_poll(
    chroot: str, tmp_path: Path, strategy: str, keeps: int
) -> None:
    """Eager members stop for it; cooperative ones wait for the partitions that move, and read what they have."""
    settings = {"partition.assignment.strategy": strategy}
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 4})
        producer = await stack.enter_async_context(producing(bootstrap_of(broker)))

        async def joined(name: str, **more: str) -> Running:
            member = eager(bootstrap_of(broker), settings={**settings, "client.id": name, **more})
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        busy, idle = await joined("a"), await joined("b", **{"max.poll.interval.ms": "12000"})
        await settled([busy, idle], EVERYTHING)
        await idle.pause()
        joiner = await joined("c")
        await until(lambda: joining(busy), 60, "the busy one to join")
        began_ns = traced_ns(busy, "phase_entered", phase="join")
        await producer.send("t", 5)
        await until(lambda: idle.tracer.of("partitions_lost"), 60, "the idle one to leave")
        await settled([busy, joiner], EVERYTHING)
        ended_ns = min(int(str(e["ns"])) for e in busy.tracer.of("partitions_assigned") if int(str(e["ns"])) > began_ns)
        assert traced_ns(idle, "partitions_lost") < ended_ns
        assert within(busy, began_ns, ended_ns) == 5 * keeps
        await until(lambda: len(busy.records) + len(joiner.records) == 20, 60, "all records")
        idle.resume()
        await settled([busy, idle, joiner], EVERYTHING)
        assert idle.listener.of("lost")
