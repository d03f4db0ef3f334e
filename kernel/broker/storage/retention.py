"""Enforces retention.ms and retention.bytes: deletes whole batches from the start of a log.

Source: LogManager.cleanupLogs and UnifiedLog.deleteOldSegments of Kafka 3.9. A batch plays the
part of Kafka's segment, so records go sooner than in Kafka, but never before their retention. Topics whose
`cleanup.policy` does not include `delete` keep everything.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.storage.errors import Fenced, LogStopped, OffsetOutOfRange, StorageFailed
from kernel.broker.storage.internal_errors import log_stopped
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kernel.broker.settings.topic_configs import TopicConfig
    from kernel.broker.storage.logs import PartitionLog
    from kernel.clock import Clock

log = logging.getLogger(__name__)


class Retention:
    """Checks every led log each `interval_ms` (log.retention.check.interval.ms)."""

    def __init__(
        self,
        led_logs: Callable[[], Iterable[PartitionLog]],
        config_of: Callable[[str], TopicConfig],
        clock: Clock,
        *,
        interval_ms: int,
    ) -> None:
        self._led_logs = led_logs
        self._config_of = config_of
        self._clock = clock
        self._interval_ms = interval_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="retention")
        self._task.add_done_callback(_ended)

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_and_wait(task)

    async def look(self) -> None:
        """Delete what has expired in every log."""
        for led in self._led_logs():
            try:
                await self._look_at(led)
            except (Fenced, OffsetOutOfRange, LogStopped):
                continue  # resigned since, or stopped, which has been logged
            except StorageFailed as failure:
                log.warning("%s: cannot delete old records: %s", led.topic_partition, failure)

    async def _look_at(self, led: PartitionLog) -> None:
        config = self._config_of(led.topic_partition.topic)
        if not config.delete or led.start_offset == led.end_offset:
            return
        oldest_ms = -1 if config.retention_ms < 0 else max(self._clock.wall_ms() - config.retention_ms, 0)
        before, start = await led.expired_before(oldest_ms, config.retention_bytes), led.start_offset
        if before > start:
            await led.trim(before)
            log.info("%s: records %d to %d are past their retention", led.topic_partition, start, before - 1)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            await self.look()


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (bug := task.exception()) is not None:
        log_stopped("deleting old records", bug)
