"""How long a group of lean members takes to become stable, and what it costs the broker in CPU."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.waiting import until
from tests.bench.lean import NONE, REBALANCE_IN_PROGRESS, LeanMember, connect

if TYPE_CHECKING:
    from tests.bench.lab import Server


@dataclass(frozen=True)
class Forming:
    """Seconds from the first JoinGroup to the last SyncGroup answer; the initial delay is 0 in this bench."""

    members: int
    stable_s: float
    cpu_s: float
    rejoin_s: float  #: the same after one more member has joined
    rejoin_cpu_s: float


async def _follow(member: LeanMember, generation: int) -> None:
    """Heartbeat until the rebalance shows, then rejoin."""
    error = await until(member.heartbeat, 30, "the heartbeat tells of the rebalance", every_s=0.05)
    if error != REBALANCE_IN_PROGRESS:
        raise RuntimeError(f"heartbeat of {member.member_id}: error {error}")
    await member.join()
    if member.generation <= generation:
        raise RuntimeError(f"generation {member.generation} after {generation}")


async def forming(server: Server, count: int, group: str) -> Forming:
    """Form a group of `count` at once, then add one member; checks that all end in one generation."""
    members = [LeanMember(await connect(server.port, f"{group}-{n}"), group) for n in range(count + 1)]
    *first, joiner = members
    try:
        await first[0].find_coordinator()
        cpu_s, started = server.cpu_s(), time.monotonic()
        await asyncio.gather(*(member.join() for member in first))
        await _settled(first)
        stable_s, stable_cpu_s = time.monotonic() - started, server.cpu_s() - cpu_s
        generation = first[0].generation
        cpu_s, started = server.cpu_s(), time.monotonic()
        await asyncio.gather(joiner.join(), *(_follow(member, generation) for member in first))
        rejoin_s, rejoin_cpu_s = time.monotonic() - started, server.cpu_s() - cpu_s
        if len({member.generation for member in members}) != 1:
            raise RuntimeError("the members ended in different generations")
    finally:
        for member in members:
            member.connection.close()
    return Forming(count, stable_s, stable_cpu_s, rejoin_s, rejoin_cpu_s)


async def _settled(members: list[LeanMember]) -> None:
    """With no initial delay the first join completes a generation alone: follow until all share one."""
    for _ in range(200):
        errors = await asyncio.gather(*(member.heartbeat() for member in members))
        behind = [member for member, error in zip(members, errors, strict=True) if error != NONE]
        if not behind and len({member.generation for member in members}) == 1:
            return
        await asyncio.gather(*(member.join() for member in behind))
    raise TimeoutError("the group did not settle")
