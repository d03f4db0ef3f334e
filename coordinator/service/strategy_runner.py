"""Runs the broker's assignment strategy for groups of the server design, on threads off the event loop."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.server.rounds import next_generation
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from coordinator.groups.effects import Decide
    from coordinator.groups.records import ServerRecord
    from coordinator.groups.server.group import AssignmentSettings
    from coordinator.service.led_partition import LedPartition
    from kernel.platform.threads import Threads

log = logging.getLogger(__name__)

#: Groups decided at a time; the others wait. Threads share one interpreter, so more would not be faster.
AT_A_TIME = 4


class StrategyRunner:
    """Runs the strategy for partitions' machines and notifies them of the results."""

    def __init__(self, settings: AssignmentSettings, threads: Threads) -> None:
        self._settings = settings
        self._threads = threads
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._tasks: set[asyncio.Task[None]] = set()

    def decide(self, asked: Decide, partition: LedPartition) -> None:
        """Start a decision; `LedPartition.notify` takes the result, unless the partition was given up."""
        task = asyncio.create_task(self._decide(asked, partition), name=f"decide for {asked.group_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Drop running computations without waiting for them."""
        await cancel_and_wait(*self._tasks)

    async def _decide(self, asked: Decide, partition: LedPartition) -> None:
        record: ServerRecord | None = None
        async with self._places:
            if not partition.closed:
                try:
                    record = await self._threads.compute(partial(next_generation, asked, self._settings), "assign")
                except Exception:  # a plugged-in strategy may raise anything; the group gets an error
                    log.exception("strategy %s has no assignment for group %s", self._settings.strategy, asked.group_id)
        partition.notify(lambda machine, turn: machine.server.decided(asked, record, turn))
