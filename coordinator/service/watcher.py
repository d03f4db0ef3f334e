"""What a coordinator watches: changes of topics, and for the server design the ids of its groups in ZooKeeper.

The former starts with the first partition that the broker leads, the latter when a machine first asks to watch a group.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from coordinator.service.member_watches import MemberWatches
from kernel.tasks import cancel_and_wait

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

    def follow_topics(self) -> None:
        """Notify of topics that change from now on."""
        if self._topics is None and not self._stopped:
            seen = self._cluster.snapshot
            self._topics = asyncio.create_task(self._follow_topics(seen), name="coordinator-topics")
            self._topics.add_done_callback(self._stop_all_on_internal_error)

    def watch(self, watch: WatchEffect, partition: LedPartition) -> None:
        """Start or end a watch for the machine of `partition`, which is notified by `LedPartition.notify`."""
        self._watches.watch(
            watch, partition, lambda ids: partition.notify(partial(_seen, watch.group_id, ids)), partition.stop
        )

    async def stop(self) -> None:
        self._stopped = True
        await self._watches.stop()
        await cancel_and_wait(self._topics)
        self._topics = None

    def _stop_all_on_internal_error(self, task: asyncio.Task[None]) -> None:
        """After a bug, partitions would not be notified of topics (`internal_errors`), so stop them all."""
        if not task.cancelled() and (bug := task.exception()) is not None:
            for partition in self._every_led():
                partition.stop(bug)

    async def _follow_topics(self, now: ClusterSnapshot) -> None:
        while True:
            before = now
            await self._cluster.until(partial(_has_other_topics, before), _WAIT_MS)
            now = self._cluster.snapshot
            # By id: a topic may have been deleted and created again meanwhile.
            gone = frozenset(before.topic_names[topic_id] for topic_id in before.topic_names.keys() - now.topic_names)
            have_changed = _sizes(before) != _sizes(now)
            for partition in self._every_led():
                if gone:
                    partition.notify(partial(_topics_deleted, gone))
                if have_changed:
                    partition.notify(_topics_changed)


def _seen(group_id: str, ids: Ids, machine: Machine, turn: Turn) -> None:
    machine.server.seen(group_id, ids, turn)


def _topics_deleted(names: frozenset[str], machine: Machine, turn: Turn) -> None:
    machine.offsets.delete_of_topics(names, turn, spared=machine.server.groups)


def _topics_changed(machine: Machine, turn: Turn) -> None:
    machine.server.topics_changed(turn)


def _has_other_topics(before: ClusterSnapshot, now: ClusterSnapshot) -> bool:
    return now.topics is not before.topics


def _sizes(snapshot: ClusterSnapshot) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in snapshot.topics.items()}
