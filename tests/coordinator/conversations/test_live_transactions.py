"""Recorded conversations about transactions on data, played over TCP to one of our brokers, all at once.

They hold what a 4.1.1 broker answered to producers and zombies, what it stored (markers byte for byte), and what
readers of both isolation levels received. `tests.coordinator.conversations.record_transactions` recorded them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from coordinator.service.mount import mount
from kernel.trace.writer import SilentTracer
from tests.support.brokers.live import running_broker
from tests.support.conversations.recorded import player, recording
from tests.support.wire.clients import WireConnection, wait_for_coordinator


def test_recorded_transactions_on_data_are_answered_as_4_1_1_answered_them(chroot: str, tmp_path: Path):
    problems = asyncio.run(_play_all(chroot, tmp_path))
    assert not problems, "\n".join(f"{name}: {line}" for name, found in problems.items() for line in found)


async def _play_all(chroot: str, tmp_path: Path) -> dict[str, list[str]]:
    """What differed, by conversation. One that differs is played up to twice more, alone: waits are in real time."""
    recorded = recording("data")
    assert len(recorded.conversations) == 10
    settings = {k: v for k, v in recorded.settings.items() if not k.startswith("transaction.state.")}
    async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,), tracer=SilentTracer()) as broker:

        async def connect(client_id: str) -> WireConnection:
            return await WireConnection.open(broker.address.host, broker.address.port, client_id)

        admin = await connect("admin")
        await wait_for_coordinator(admin, *(f"warm-{n}" for n in range(16)))
        admin.close()
        names = list(recorded.conversations)
        together = await asyncio.gather(*(player(recorded, name, connect).play() for name in names))
        again = [name for name, differences in zip(names, together, strict=True) if differences]

        async def play(name: str) -> list[str]:
            return await player(recorded, name, connect).play()

        return {name: found for name in again if await play(name) and (found := await play(name))}
