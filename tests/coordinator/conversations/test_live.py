"""The recorded conversations of a real Kafka 4.1.1, played over TCP to one of our brokers on a real ZooKeeper.

All 120, many at a time. Their timers are real, so one that differs is played once more, alone, before it counts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.service.mount import mount
from kernel.trace.writer import SilentTracer
from tests.support.brokers import create_topics, running_broker
from tests.support.conversations import player, recording
from tests.support.wire_clients import WireConnection, wait_for_coordinator

if TYPE_CHECKING:
    from pathlib import Path


AT_A_TIME = 24
#: Settings of the recorded brokers that ours does not have, all for features that it does not have.
FOREIGN = ("transaction.state.", "log.cleaner.")


def test_recorded_conversations_are_answered_as_4_1_1_answered_them_over_tcp(chroot: str, tmp_path: Path) -> None:
    differing, problems = asyncio.run(_play_all(chroot, tmp_path))
    assert not problems, "\n".join(f"{name}: {line}" for name, found in problems.items() for line in found)
    assert len(differing) < 30, f"they differed only at the first try: {differing}"


async def _play_all(chroot: str, tmp_path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The names of those that differed when played together, and what differed when they were played alone."""
    recorded = recording("classic")
    names = list(recorded.conversations)
    assert len(names) == 120
    settings = {k: v for k, v in recorded.settings.items() if not k.startswith(FOREIGN)}
    async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,), tracer=SilentTracer()) as broker:
        await create_topics(broker, recorded.topics)

        async def connect(client_id: str) -> WireConnection:
            return await WireConnection.open(broker.address.host, broker.address.port, client_id)

        admin = await connect("admin")
        await wait_for_coordinator(admin, *(f"warm-{n}" for n in range(16)))
        admin.close()
        room = asyncio.Semaphore(AT_A_TIME)

        async def play(name: str) -> list[str]:
            async with room:
                return await player(recorded, name, connect).play()

        together = [name for name in names if not recorded.conversations[name].get("alone")]
        differing = [
            name for name, found in zip(together, await asyncio.gather(*map(play, together)), strict=True) if found
        ]
        again = differing + [name for name in names if name not in together]
        problems = {name: found for name in again if (found := await play(name))}
    return differing, problems
