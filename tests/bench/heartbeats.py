"""Heartbeats per second, wall and CPU, at several numbers of connections: ours beside librdkafka's mock cluster.

Each connection is a group of one member (the mock settles no larger group at once) and sends its next heartbeat
when the last one is answered. Every answer's error code is checked.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.lean import NONE, LeanMember, connect

if TYPE_CHECKING:
    from tests.bench.lab import Server


@dataclass(frozen=True)
class HeartbeatRate:
    """`per_cpu_s` counts answers per CPU second of the server process."""

    connections: int
    per_s: float
    per_cpu_s: float


async def _members(server: Server, count: int) -> list[LeanMember]:
    members = [LeanMember(await connect(server.port, f"bench-{count}-{n}"), f"bench-{count}-{n}") for n in range(count)]
    await members[0].find_coordinator()
    await asyncio.gather(*(member.join() for member in members))
    return members


async def _beat(member: LeanMember, deadline: float) -> int:
    beats = 0
    while time.monotonic() < deadline:
        error = await member.heartbeat()
        if error != NONE:
            raise RuntimeError(f"heartbeat of {member.member_id}: error {error}")
        beats += 1
    return beats


async def heartbeat_rate(server: Server, connections: int, seconds: float) -> HeartbeatRate:
    """Closed loop, one heartbeat in flight a connection."""
    members = await _members(server, connections)
    try:
        cpu_s, started = server.cpu_s(), time.monotonic()
        beats = sum(await asyncio.gather(*(_beat(member, started + seconds) for member in members)))
        elapsed, cpu_s = time.monotonic() - started, server.cpu_s() - cpu_s
    finally:
        for member in members:
            member.connection.close()
    return HeartbeatRate(connections, beats / elapsed, beats / max(cpu_s, 0.01))
