"""Our KIP-848 consumers for tests, and brokers with short timers for their groups."""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from coordinator.service.mount import mount
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, create_topics, running_broker
from tests.support.consumers.consuming import Running
from tests.support.consumers.eager import bootstrap_of
from tests.support.trace.tracers import ListTracer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from kernel.broker.broker import Broker

QUICK = {"auto.offset.reset": "earliest", "fetch.max.wait.ms": "100", "retry.backoff.ms": "50"}

#: Of the broker; the session outlives a busy machine's pauses.
QUICK_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.max.session.timeout.ms": "60000",
}

_numbers = itertools.count(1)


def reconciling(bootstrap: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """One of our consumers, not started."""
    process = f"ours-{next(_numbers)}"
    given = {**QUICK, "bootstrap.servers": bootstrap, "group.id": group, "client.id": process, **(settings or {})}
    config, warnings = Kip848ConsumerConfig.from_settings(given)
    assert not warnings, warnings
    tracer = ListTracer(process=process)
    return Running(Kip848Consumer(config, tracer=tracer, process=process), tracer)


@asynccontextmanager
async def laboratory(
    chroot: str, data_dir: Path, *settings: Mapping[str, str], broker_settings: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Broker, list[Running]]]:
    """A broker with topic t of four partitions, and members that poll, one for each given settings."""
    async with AsyncExitStack() as stack:
        given = {**QUICK_GROUPS, **(broker_settings or {})}
        broker = await stack.enter_async_context(running_broker(chroot, data_dir, mount=(mount,), settings=given))
        await create_topics(broker, {"t": 4})
        running = []
        for one in settings:
            member = reconciling(bootstrap_of(broker), settings=one)
            stack.push_async_callback(member.close)
            running.append(await member.begin({"t": 1}))
        yield broker, running


async def expel(broker: Broker, member_id: str) -> None:
    """Remove a member from group g, as an administrator may."""
    async with client_of(broker) as client:
        connection = await client.any_connection()
        body = {"group_id": "g", "members": [{"member_id": member_id, "group_instance_id": None}]}
        answer = await connection.call(Api.LeaveGroup, body)
        assert answer.members[0].error_code == 0, answer
