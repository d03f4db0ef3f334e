"""A member of the server design as a child process that tests may stop, continue and kill.

`python -m tests.coordinator.designs.commanded_child ZOOKEEPER BOOTSTRAP TRACE SESSION_TIMEOUT_MS` is a member of group
g for topic t that polls, commits every 100 ms, and writes its trace to the file TRACE; it ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator.client.server.consumer import ServerConsumer
from coordinator.client.server.settings import ServerConsumerConfig
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.support.consumers.commander import QUICK
from tests.support.lean_child import lean_child

PROCESS = "child"


async def belong(zookeeper: str, bootstrap: str, trace: Path, session_timeout_ms: str) -> None:
    given = {
        **QUICK,
        "zookeeper.connect": zookeeper,
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "zookeeper.session.timeout.ms": session_timeout_ms,
        "auto.commit.interval.ms": "100",
    }
    config, _ = ServerConsumerConfig.from_settings(given)
    identity = TraceIdentity(run="r", scenario="s", design="server", role=Role.MEMBER, process=PROCESS, seed=1)
    writer = TraceWriter(trace, identity)
    consumer = ServerConsumer(config, tracer=writer, process=PROCESS)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    try:
        await consumer.start()
        await consumer.subscribe({"t": 1})
        while not ended.done():
            await consumer.getmany(timeout_ms=50)
    finally:
        await consumer.close()
        writer.close()


@dataclass
class Child:
    """The process, and the trace that it has written so far."""

    process: Process
    trace: Path

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Its events of one kind; a line that is still being written is left for the next call."""
        lines = self.trace.read_text(encoding="utf-8").split("\n")[1:-1] if self.trace.exists() else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if event.get("kind") == kind]

    @property
    def owned(self) -> int:
        """The number of partitions that it had by its last trace event."""
        words = [
            event
            for kind in ("partitions_assigned", "partitions_revoked", "partitions_lost")
            for event in self.of(kind)
        ]
        return len(max(words, key=lambda event: event["seq"])["all"]) if words else 0


@asynccontextmanager
async def commanded_child(zookeeper: str, bootstrap: str, trace: Path, session_timeout_ms: int) -> AsyncIterator[Child]:
    """The child; killed at the end if it is still running."""
    module = "tests.coordinator.designs.commanded_child"
    async with lean_child(module, zookeeper, bootstrap, trace, session_timeout_ms, stdout=None) as process:
        yield Child(process, trace)


if __name__ == "__main__":
    asyncio.run(belong(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]))
