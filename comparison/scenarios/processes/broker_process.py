"""A broker as a process: the kernel's broker with the coordinator mounted on it.

Standard input: one line of configuration (`BrokerProcessConfig`). The end of the input, or `{"command": "stop"}`,
ends the broker. `{"command": "fill_disk", "full": true}` and `{"command": "step_clock", "by_ms": N}` are faults;
`{"command": "halt_at", ...}` stops it (SIGSTOP) at an event, as a member's process.
Standard output: `{"event": "ready", "port": N}` once it serves, `{"event": "failed", "error": ...}` when it cannot
start, or when a bug of ours ends it later.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from comparison.logs import set_inherited_level
from comparison.scenarios.processes.broker_composition import broker_of
from comparison.scenarios.processes.child_trace import ChildConfig, ChildTrace, Halt
from comparison.scenarios.processes.host import Host
from comparison.scenarios.processes.lines import configured, stopping_after
from kernel.broker.loop import measured_loop
from kernel.broker.storage.errors import StorageError
from kernel.errors import RebalanceLabError
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.broker.broker import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProcessConfig(ChildConfig):
    """The first line."""

    zookeeper: str
    data_dir: str
    settings: dict[str, str] = field(default_factory=dict)  #: by Kafka's names, port and broker.id among them


async def run(host: Host) -> int:
    lines = host.lines()
    config = await configured(lines, BrokerProcessConfig)
    if config is None:
        return 0
    tracer = ChildTrace(config, Role.BROKER, host)
    broker: Broker | None = None

    async def perform(line: Mapping[str, object]) -> None:
        command = line.get("command")
        if command == "fill_disk" and broker is not None:
            with contextlib.suppress(StorageError):  # the broker is being stopped, or its disk is full by itself
                await broker.fill_disk(full=line.get("full") is True)
        elif command == "step_clock":
            host.step_clock(msgspec.convert(line.get("by_ms"), int))
        elif command == "halt_at":
            tracer.halt_at(msgspec.convert(line, Halt))

    stopping = stopping_after(host, lines, perform)
    try:
        broker, _ = broker_of(config.settings, config.zookeeper, Path(config.data_dir), tracer, runtime=host.runtime)
        await broker.start()
    except RebalanceLabError as error:
        host.write({"event": "failed", "error": str(error)})
        stopping.cancel()
        tracer.close()
        return 1
    host.write({"event": "ready", "port": broker.address.port})
    failed = asyncio.create_task(broker.failed())
    await asyncio.wait([stopping, failed], return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if failed.done():
        host.write({"event": "failed", "error": str(failed.result())})
        code = 1
    failed.cancel()
    stopping.cancel()
    await broker.stop()
    tracer.close()
    return code


def main() -> None:
    set_inherited_level()
    raise SystemExit(measured_loop.run(run(Host())))


if __name__ == "__main__":
    main()
