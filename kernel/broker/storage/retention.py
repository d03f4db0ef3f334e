"""retention.ms and retention.bytes: what is past them goes, whole batches at a time, from a log's start on.

Source: LogManager.cleanupLogs and UnifiedLog.deleteOldSegments of Kafka 3.9. A batch is to our logs what a segment is
to Kafka's, so records go sooner than there, never earlier than their retention. Topics whose `cleanup.policy` does
not say `delete` keep everything.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.storage.errors import Fenced, LogStopped, OffsetOutOfRange, StorageFailed
from kernel.broker.storage.internal_errors import log_stopped

if TYPE_CHECKING:
    from kernel.broker.cluster.config_store import ConfigStore
    from kernel.broker.storage.led_logs import LedLogs
    from kernel.broker.storage.logs import PartitionLog
    from kernel.clock import Clock

log = logging.getLogger(__name__)


class Retention:
    """Looks at every led log each `interval_ms` (log.retention.check.interval.ms)."""

    def __init__(self, logs: LedLogs, configs: ConfigStore, clock: Clock, *, interval_ms: int) -> None:
        self._logs = logs
        self._configs = configs
        self._clock = clock
        self._interval_ms = interval_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="retention")
        self._task.add_done_callback(_ended)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def look(self) -> None:
        """One round."""
        for led in self._logs.all():
            try:
                await self._look_at(led)
            except (Fenced, OffsetOutOfRange, LogStopped):
                continue  # given up meanwhile, or stopped: whoever stopped it has logged why
            except StorageFailed as failure:
                log.warning("%s: old records could not be deleted: %s", led.topic_partition, failure)

    async def _look_at(self, led: PartitionLog) -> None:
        config = self._configs.of(led.topic_partition.topic)
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
