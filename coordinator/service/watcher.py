"""What a coordinator of the server design watches: the ids of its groups in ZooKeeper, and changes of topics.

Both start when a machine first asks to watch a group.
"""

from __future__ import annotations

import asyncio
import operator
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.effects import WatchIds
from coordinator.service.member_watches import MemberWatches

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.effects import Turn, WatchEffect
    from coordinator.groups.machine import Machine
    from coordinator.service.led_partition import LedPartition
    from coordinator.service.member_watches import Ids
    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.services import BrokerServices

#: Timeout of one wait for a new view of the cluster; then the next wait begins.
_WAIT_MS = 3_600_000


class Watcher:
    """Notifies the led partitions."""

    def __init__(self, services: BrokerServices, every_led: Callable[[], list[LedPartition]]) -> None:
        self._cluster = services.cluster
        self._every_led = every_led
        self._watches = MemberWatches(services)
        self._topics: asyncio.Task[None] | None = None
        self._stopped = False

    def watch(self, watch: WatchEffect, partition: LedPartition) -> None:
        """Start or end a watch for the machine of `partition`, which is notified by `LedPartition.notify`."""
        if self._topics is None and isinstance(watch, WatchIds) and not self._stopped:
            self._topics = asyncio.create_task(self._follow_topics(), name="server-groups-topics")
            self._topics.add_done_callback(self._stop_all_on_internal_error)
        self._watches.watch(
            watch, partition, lambda ids: partition.notify(partial(_seen, watch.group_id, ids)), partition.stop
        )

    async def stop(self) -> None:
        self._stopped = True
        await self._watches.stop()
        if self._topics is not None:
            self._topics.cancel()
            await asyncio.gather(self._topics, return_exceptions=True)
            self._topics = None

    def _stop_all_on_internal_error(self, task: asyncio.Task[None]) -> None:
        """After a bug, partitions would not be notified of topics (`internal_errors`), so stop them all."""
        if not task.cancelled() and (bug := task.exception()) is not None:
            for partition in self._every_led():
                partition.stop(bug)

    async def _follow_topics(self) -> None:
        while True:
            before = self._cluster.snapshot
            sizes = _sizes(before)
            await self._cluster.until(partial(operator.is_not, before), _WAIT_MS)
            if _sizes(self._cluster.snapshot) != sizes:
                for partition in self._every_led():
                    partition.notify(_topics_changed)


def _seen(group_id: str, ids: Ids, machine: Machine, turn: Turn) -> None:
    machine.server.seen(group_id, ids, turn)


def _topics_changed(machine: Machine, turn: Turn) -> None:
    machine.server.topics_changed(turn)


def _sizes(snapshot: ClusterSnapshot) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in snapshot.topics.items()}
