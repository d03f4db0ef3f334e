"""Which partitions this broker leads, and notifying listeners of it, in order for each partition.

*Wanted* leaderships come from the view (none without a registration in a live session); a partition is *led* once
every listener has taken it over. One task per partition closes the gap between the two, so that a slow takeover
delays no other partition, and listeners get one notification per partition at a time.

A partition stopped by an internal error (`internal_errors`) is resigned, and not led again at the same leader epoch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kernel.broker.cluster.cluster_view import NO_LEADER, ClusterSnapshot, Leadership, changed_topics
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError
from kernel.broker.storage.internal_errors import log_stopped
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.broker.cluster.cluster_view import LeadershipListener, TopicView
    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

#: In the trace: the topic has been deleted. The name is Kafka's (LeaderAndIsr).
LEADER_DURING_DELETE = -2
#: Delays between attempts to lead after a disk error, while the partition is still ours: the first, and the longest.
_RETRY_S, _RETRY_S_MAX = 0.5, 4.0


def wanted(topic: TopicView, node_id: int) -> dict[TopicPartition, Leadership]:
    """The partitions of a topic that broker `node_id` leads according to ZooKeeper."""
    return {
        tp: Leadership(tp, topic.topic_id, partition.leader_epoch)
        for number, partition in enumerate(topic.partitions)
        if partition.leader == node_id
        for tp in (TopicPartition(topic.name, number),)
    }


class Leading:
    """Owned by the event loop. `want` and `follow` may be called at any time; `settled` waits for all tasks."""

    def __init__(self, node_id: int, tracer: Tracer) -> None:
        self._node_id = node_id
        self._tracer = tracer
        self._listeners: list[tuple[LeadershipListener, Callable[[str], bool]]] = []
        self._wanted: dict[TopicPartition, Leadership] = {}
        self._led: dict[TopicPartition, Leadership] = {}
        #: Fenced at this leadership, because the view is behind, or stopped by an internal error.
        self._refused: dict[TopicPartition, Leadership] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._lost: set[TopicPartition] = set()  # led, but the storage has closed the log
        self._snapshot = ClusterSnapshot()
        self._followed: Mapping[str, TopicView] = {}  # the topics that `_wanted` was derived from
        self._again: set[TopicPartition] = set()  # to be reconsidered although they have not changed
        self._changed = asyncio.Event()

    def subscribe(self, listener: LeadershipListener, topics: Callable[[str], bool]) -> None:
        self._listeners.append((listener, topics))

    def led(self, tp: TopicPartition) -> Leadership | None:
        """None as soon as it is no longer wanted, even while listeners are still being notified."""
        leadership = self._led.get(tp)
        return leadership if tp not in self._lost and self._wanted.get(tp) == leadership else None

    def want(self, wanted: Mapping[TopicPartition, Leadership], snapshot: ClusterSnapshot) -> None:
        """Lead exactly these partitions from now on."""
        self._snapshot, self._followed = snapshot, {}
        self._wanted = dict(wanted)
        self._reconcile(self._wanted.keys() | self._led.keys())

    def follow(self, snapshot: ClusterSnapshot) -> None:
        """Lead what this broker leads in ZooKeeper. Looks only at topics that have changed."""
        before, self._snapshot, self._followed = self._followed, snapshot, snapshot.topics
        touched, self._again = self._again, set()
        for name in changed_topics(before, snapshot.topics):
            old, new = before.get(name), snapshot.topics.get(name)
            gone = [TopicPartition(name, number) for number in range(len(old.partitions))] if old else []
            for tp in gone:
                self._wanted.pop(tp, None)
            added = wanted(new, self._node_id) if new else {}
            self._wanted.update(added)
            touched.update(gone, added)
        self._reconcile(touched)

    def _reconcile(self, touched: Iterable[TopicPartition]) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for tp in sorted(touched):  # in this order for every hash seed
            if self._gap(tp) and tp not in self._tasks:
                self._tasks[tp] = asyncio.create_task(self._close_gap(tp), name=f"leading-{tp}")

    def lost(self, tp: TopicPartition, error: StorageError) -> None:
        """The storage has closed the log of `tp`: resign immediately, without waiting for the view.

        An uncertain fence (StorageFailed) is tried again. A certain one is not, at this leadership: it would only
        overtake the successor, which may be a later incarnation of this broker.
        """
        leadership = self._led.get(tp)
        if leadership is None:
            return
        if isinstance(error, Fenced | LogStopped):
            self._refused[tp] = leadership
        self._lost.add(tp)
        self._reconcile([tp])

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    def forget_refusals(self) -> None:
        """After a new registration: refused leaderships may be tried again."""
        self._again.update(self._refused)
        self._refused.clear()

    def _gap(self, tp: TopicPartition) -> bool:
        wanted, led = self._wanted.get(tp), self._led.get(tp)
        if led is not None:
            return tp in self._lost or wanted != led
        return wanted is not None and self._refused.get(tp) != wanted

    async def _close_gap(self, tp: TopicPartition) -> None:
        retry_s = _RETRY_S
        try:
            while self._gap(tp):
                if await self._step(tp):
                    continue
                # A change of what is wanted (the broker stops, say) ends the wait.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(retry_s):
                        await self._changed.wait()
                retry_s = min(2 * retry_s, _RETRY_S_MAX)
        finally:
            del self._tasks[tp]

    async def _step(self, tp: TopicPartition) -> bool:
        """Resign or lead. False: try again later."""
        try:
            if tp in self._led:
                await self._resign(tp)
            elif (leadership := self._wanted.get(tp)) is not None:
                return await self._lead(leadership)
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            log_stopped(f"the leadership of {tp}", bug)
            leadership = self._led.pop(tp, None) or self._wanted.get(tp)
            if leadership is not None:
                self._refused[tp] = leadership
            self._lost.discard(tp)
            await self._notify_resigned(tp)
        return True

    async def _lead(self, leadership: Leadership) -> bool:
        """False if the disk failed: try again later."""
        tp = leadership.topic_partition
        try:
            for listener in self._listeners_of(tp):
                await listener.on_lead(leadership)
        except (Fenced, LogStopped) as refusal:
            log.warning("not leading %s at epoch %d: %s", tp, leadership.leader_epoch, refusal)
            self._refused[tp] = leadership
            await self._notify_resigned(tp)
            return True
        except StorageError as failure:
            log.error("cannot lead %s: %s", tp, failure)  # noqa: TRY400 - the message says it all
            await self._notify_resigned(tp)
            return False
        self._refused.pop(tp, None)
        self._led[tp] = leadership
        self._trace(tp, self._node_id, leadership.leader_epoch)
        return True

    async def _resign(self, tp: TopicPartition) -> None:
        leadership = self._led.pop(tp)
        self._lost.discard(tp)
        await self._notify_resigned(tp)
        topic, partition = self._snapshot.topics.get(tp.topic), self._snapshot.partition(tp)
        leader, epoch = NO_LEADER, leadership.leader_epoch
        # It may be there again, as another one; and its partitions' states go before the topic itself.
        is_another = topic is None or topic.topic_id != leadership.topic_id
        if is_another or (partition is not None and partition.leader_epoch < leadership.leader_epoch):
            leader = LEADER_DURING_DELETE
        elif partition is not None and partition.leader != self._node_id:
            leader, epoch = partition.leader, partition.leader_epoch
        self._trace(tp, leader, epoch)

    async def _notify_resigned(self, tp: TopicPartition) -> None:
        for listener in self._listeners_of(tp):
            try:
                await listener.on_resign(tp)
            except Exception as bug:  # noqa: BLE001 - a bug: the others are still notified
                log_stopped(f"giving up {tp}", bug)

    def _listeners_of(self, tp: TopicPartition) -> list[LeadershipListener]:
        return [listener for listener, topics in self._listeners if topics(tp.topic)]

    def _trace(self, tp: TopicPartition, leader: int, leader_epoch: int) -> None:
        self._tracer.emit(
            "leader_changed",
            topic=tp.topic,
            partition=tp.partition,
            leader=leader,
            leader_epoch=leader_epoch,
        )
