"""Searches the topics that match regular expressions, in pieces between which other work runs."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from coordinator.groups.consumer_records import RegexRecord
from coordinator.service.loading import in_pieces
from coordinator.service.topic_regex import compiled, problem
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coordinator.groups.effects import Search
    from coordinator.service.led_partition import LedPartition
    from coordinator.service.topics import Topics
    from kernel.runtime import Runtime

log = logging.getLogger(__name__)

#: How long matching one expression may take. A name takes a microsecond, and some milliseconds with the worst ones.
MATCHING_S_MAX = 5.0


class TopicSearcher:
    """One search at a time; the others wait."""

    def __init__(self, topics: Topics, runtime: Runtime) -> None:
        self._topics = topics
        self._runtime = runtime
        self._place = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def search(self, asked: Search, partition: LedPartition) -> None:
        """Start a search; `LedPartition.notify` takes what was found, unless the partition was given up."""
        task = asyncio.create_task(self._search(asked, partition), name=f"search for {asked.group_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks)

    async def _search(self, asked: Search, partition: LedPartition) -> None:
        found: dict[str, RegexRecord] = {}
        async with self._place:
            names, wall_ms = self._topics.names(), self._runtime.clock.wall_ms()
            try:
                for regex in asked.regexes:
                    if not partition.closed:
                        topics = await self._matching(regex, names)
                        found[regex] = RegexRecord(tuple(topics), asked.version, wall_ms)
            except TimeoutError:
                found = {}
                log.warning(
                    "group %s: a regular expression took longer than %g s to match %d topics: all match what they did"
                    " before. Use a simpler one.",
                    asked.group_id,
                    MATCHING_S_MAX,
                    len(names),
                )
        partition.notify(lambda machine, turn: machine.consumer.matched(asked.group_id, found, turn))

    async def _matching(self, regex: str, names: Sequence[str]) -> list[str]:
        if (wrong := problem(regex)) is not None:
            log.warning("regular expression %r matches nothing: %s", regex, wrong)
            return []
        matching: list[str] = []
        stopwatch = self._runtime.stopwatch
        await in_pieces(_pieces(regex, names, matching, stopwatch), stopwatch)
        return sorted(matching)


def _pieces(regex: str, names: Sequence[str], matching: list[str], stopwatch: Callable[[], float]) -> Iterator[int]:
    fullmatch, spent_s = compiled(regex).fullmatch, 0.0
    for name in names:
        begin = stopwatch()
        if fullmatch(name.encode()) is not None:
            matching.append(name)
        spent_s += stopwatch() - begin
        if spent_s > MATCHING_S_MAX:
            raise TimeoutError
        yield 1
