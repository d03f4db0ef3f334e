"""A broker as a process: the kernel's broker with the coordinator mounted on it.

Standard input: one line of configuration (`BrokerProcessConfig`); its end, or `{"command": "stop"}`, ends the
broker. Standard output: `{"event": "ready", "port": N}` once it serves; `{"event": "failed", "error": ...}` when it
cannot, or when a mistake of ours ends it later.
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from comparison.scenarios.processes.broker_composition import broker_of
from comparison.scenarios.processes.child_trace import ChildTrace
from comparison.scenarios.processes.lines import lines_of_stdin, tell
from kernel.broker.loop import measured_loop
from kernel.errors import RebalanceLabError
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProcessConfig:
    """The first line."""

    process: str
    design: str
    run: str
    scenario: str
    seed: int
    trace: str
    zookeeper: str
    data_dir: str
    settings: dict[str, str] = field(default_factory=dict)  #: by Kafka's names, port and broker.id among them


async def _until_told(lines: AsyncIterator[Mapping[str, object]]) -> None:
    async for line in lines:
        if line.get("command") == "stop":
            return


async def run() -> int:
    lines = lines_of_stdin()
    first = await anext(lines, None)
    if first is None or "command" in first:  # told to stop before it was needed
        return 0
    config = msgspec.convert(first, BrokerProcessConfig)
    tracer = ChildTrace.of(config, Role.BROKER)
    told = asyncio.create_task(_until_told(lines))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.cancel)
    try:
        broker, _ = broker_of(config.settings, config.zookeeper, Path(config.data_dir), tracer)
        await broker.start()
    except RebalanceLabError as error:
        tell({"event": "failed", "error": str(error)})
        told.cancel()
        tracer.close()
        return 1
    tell({"event": "ready", "port": broker.address.port})
    failed = asyncio.create_task(broker.failed())
    await asyncio.wait([told, failed], return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if failed.done():
        tell({"event": "failed", "error": str(failed.result())})
        code = 1
    failed.cancel()
    told.cancel()
    await broker.stop()
    tracer.close()
    return code


def main() -> None:
    raise SystemExit(measured_loop.run(run()))


if __name__ == "__main__":
    main()
