"""Our members for the herd, in a process of their own: JSON lines in, one answer per line out.

The first line has the settings of all members by Kafka's names, without `zookeeper.connect` and `consumer.id`. Then
{"id": 1, "do": "join", "name": "m01", "zookeeper": "...", "topic": "herd"}, {"id": 2, "do": "leave", "name": "m01"} and
{"id": 3, "do": "failed"}, which returns the number of failed attempts so far. The end of the input closes the members'
sessions and ends the process. They trace nothing, as the originals do not.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING

from comparison.scenarios.processes.host import Host
from kernel.errors import RebalanceLabError
from kernel.trace.writer import SilentTracer
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


class Failures(logging.Handler):
    """Counts failed attempts, by the executor's warnings; drops everything else."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "to rebalance failed" in record.getMessage()


class Members:
    def __init__(self, settings: Mapping[str, str], failures: Failures, process: Host) -> None:
        self._process = process
        self._failures = failures
        self._settings = settings
        self._members: dict[str, ZooKeeperConsumer] = {}

    async def join(self, name: str, zookeeper: str, topic: str) -> None:
        given = {**self._settings, "zookeeper.connect": zookeeper, "consumer.id": name}
        config, _ = ZkConsumerConfig.from_settings(given)
        consumer = self._members[name] = ZooKeeperConsumer(config, tracer=SilentTracer(), process=name)
        await consumer.start()
        await consumer.subscribe({topic: 1})

    async def leave(self, name: str) -> None:
        await self._members.pop(name).close()

    async def close(self) -> None:
        await asyncio.gather(*(consumer.close() for consumer in self._members.values()))

    async def serve(self, line: Mapping[str, object]) -> None:
        answer: dict[str, object] = {"id": line["id"], "error": None}
        try:
            match line["do"]:
                case "join":
                    await self.join(str(line["name"]), str(line["zookeeper"]), str(line["topic"]))
                case "leave":
                    await self.leave(str(line["name"]))
                case "failed":
                    answer["failed"] = self._failures.count
        except RebalanceLabError as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        self._process.write(answer)


async def main() -> None:
    process = Host()
    lines = process.lines()
    settings = await anext(lines, None)
    if settings is None:
        return
    gc.collect()
    gc.freeze()  # modules and the like: otherwise a full collection of 50 ms falls into some of the runs
    failures = Failures()
    logging.getLogger().addHandler(failures)
    members = Members({key: str(value) for key, value in settings.items()}, failures, process)
    process.write({"event": "ready"})
    async with asyncio.TaskGroup() as running:
        async for line in lines:
            running.create_task(members.serve(line))
    await members.close()


if __name__ == "__main__":
    asyncio.run(main())
