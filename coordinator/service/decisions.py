"""The broker's strategy at work for the groups of the server design, on threads apart from the broker's loop."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.server.rounds import next_generation
from kernel.computing import computed

if TYPE_CHECKING:
    from coordinator.groups.records import ServerRecord
    from coordinator.groups.server.group import Rules
    from coordinator.groups.server.requests import Decide
    from coordinator.service.led_partition import LedPartition

log = logging.getLogger(__name__)

#: So many groups are decided at a time; the others wait. Threads share one interpreter: more of them decide no faster.
AT_A_TIME = 4


class Decisions:
    """Makes those that the machines ask for, and tells the partitions that asked."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._tasks: set[asyncio.Task[None]] = set()

    def decide(self, asked: Decide, partition: LedPartition) -> None:
        """The partition is told by `LedPartition.tell`; one that was given up meanwhile hears nothing."""
        task = asyncio.create_task(self._decide(asked, partition), name=f"decide for {asked.group_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Wait for nothing: what a strategy still computes is dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _decide(self, asked: Decide, partition: LedPartition) -> None:
        record: ServerRecord | None = None
        async with self._places:
            if not partition.closed:
                try:
                    record = await computed(partial(next_generation, asked, self._rules), "assign")
                except Exception:  # a strategy that was plugged in may raise anything; the group is told
                    log.exception("strategy %s has no assignment for group %s", self._rules.strategy, asked.group_id)
        partition.notify(lambda machine, turn: machine.server.decided(asked, record, turn))
