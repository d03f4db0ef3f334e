"""A copier as a process: an application of a group of its own that copies records and commits what it has read.

Standard input: one line of configuration (`CopierConfig`), then `{"command": "go on"}` for one that `pauses`. The end
of the input, or `{"command": "stop"}`, ends it.
Standard output: `{"event": "paused"}` when half of the records are written, `{"event": "copied", ...}` with how the
requests of its last part were answered, and `{"event": "failed", "error": ...}`.

One that pauses waits for the command to go on, so that no record is left to the race between its next request and the
signal that freezes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.scenarios.processes.copying import Copier, read_first
from comparison.scenarios.processes.host import Host
from comparison.scenarios.processes.lines import configured, stopping_after
from coordinator.client.calls import GroupCalls
from kernel.client.client import ClusterClient
from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Mapping


_REQUEST_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CopierConfig:
    """The first line."""

    process: str
    bootstrap: list[tuple[str, int]]
    group: str
    session_timeout_ms: int
    transactional_id: str  #: '': without transactions
    origin: tuple[str, int]
    to: tuple[str, int]
    records: int  #: to be copied, from the first one of `origin`
    pauses: bool  #: after half of them


async def _copy(config: CopierConfig, client: ClusterClient, resumed: asyncio.Event, host: Host) -> None:
    copier = Copier(client, config.transactional_id)
    origin, to = TopicPartition(*config.origin), TopicPartition(*config.to)
    session_ms = config.session_timeout_ms
    group = GroupCalls(config.group, session_ms, session_ms, _REQUEST_MS)
    await copier.join(group, origin)
    beating = asyncio.create_task(copier.keep_alive())
    try:
        await copier.begin()
        await copier.add(to)
        values = await read_first(client, origin, config.records)
        half = len(values) // 2 if config.pauses else 0
        if config.pauses:
            await copier.write(to, values[:half])
            host.write({"event": "paused"})
            await resumed.wait()
        written = await copier.write(to, values[half:])
        offset = await copier.commit_offset(origin, len(values))
        answers = {"write": written, "offset": offset, "commit": await copier.commit()}
        host.write({"event": "copied", **answers})
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating


async def run(host: Host) -> int:
    lines, resumed = host.lines(), asyncio.Event()
    config = await configured(lines, CopierConfig)
    if config is None:
        return 0

    async def perform(_: Mapping[str, object]) -> None:
        resumed.set()

    stopping = stopping_after(host, lines, perform)
    client = ClusterClient(config.bootstrap, config.process)
    copying = asyncio.create_task(_copy(config, client, resumed, host))
    code = 0
    try:
        await asyncio.wait([stopping, copying], return_when=asyncio.FIRST_COMPLETED)
        if copying.done():
            await copying
            await stopping
        copying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await copying
    except (RebalanceLabError, WaitTimeout) as error:
        host.write({"event": "failed", "error": str(error)})
        code = 1
    stopping.cancel()
    await client.close()
    return code


def main() -> None:
    raise SystemExit(asyncio.run(run(Host())))


if __name__ == "__main__":
    main()
