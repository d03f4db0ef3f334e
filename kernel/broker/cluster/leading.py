"""Which partitions this broker leads, and telling those who care, each partition in order.

What is *wanted* comes from the view (and is nothing at all without a registration in a live session); what is
*led* is what every listener has taken on. One task a partition closes the gap, as long as there is one, so a
slow take-over of one partition holds up no other, and no partition is told two things at a time.

A partition that a mistake of ours has stopped (`internal_errors`) is resigned, and not led again at the same
leadership.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kernel.broker.cluster.cluster_view import NO_LEADER, ClusterSnapshot, Leadership, changed_topics
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError
from kernel.broker.storage.internal_errors import stopped
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel.broker.cluster.cluster_view import LeadershipListener, TopicView
    from kernel.trace.writer import Tracer

log = logging.getLogger(__name__)

#: After a disk error, leading is tried again while the partition is still ours: so soon first, then less often.
_RETRY_S, _RETRY_S_MAX = 0.5, 4.0


def wanted(topic: TopicView, node_id: int) -> dict[TopicPartition, Leadership]:
    """What ZooKeeper says that broker `node_id` leads of a topic."""
    return {
        tp: Leadership(tp, topic.topic_id, partition.leader_epoch)
        for number, partition in enumerate(topic.partitions)
        if partition.leader == node_id
        for tp in (TopicPartition(topic.name, number),)
    }


class Leading:
    """Owned by the event loop. `want` and `follow` may be called at any time; `settled` waits until nothing is left."""

    def __init__(self, node_id: int, tracer: Tracer) -> None:
        self._node_id = node_id
        self._tracer = tracer
        self._listeners: list[tuple[LeadershipListener, Callable[[str], bool]]] = []
        self._wanted: dict[TopicPartition, Leadership] = {}
        self._led: dict[TopicPartition, Leadership] = {}
        #: Fenced at this very leadership, when the view is behind; or stopped by a mistake of ours.
        self._refused: dict[TopicPartition, Leadership] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._lost: set[TopicPartition] = set()  # led, but the storage has closed the log
        self._snapshot = ClusterSnapshot()
        self._followed: Mapping[str, TopicView] = {}  # the topics that `_wanted` was made from
        self._again: set[TopicPartition] = set()  # to be looked at though nothing about them has changed
        self._news = asyncio.Event()

    def subscribe(self, listener: LeadershipListener, topics: Callable[[str], bool]) -> None:
        self._listeners.append((listener, topics))

    def led(self, tp: TopicPartition) -> Leadership | None:
        """None as soon as it is no longer wanted, even while listeners are still being told."""
        leadership = self._led.get(tp)
        return leadership if tp not in self._lost and self._wanted.get(tp) == leadership else None

    def want(self, wanted: Mapping[TopicPartition, Leadership], snapshot: ClusterSnapshot) -> None:
        """This is what is to be led from now on."""
        self._snapshot, self._followed = snapshot, {}
        self._wanted = dict(wanted)
        self._look_at(self._wanted.keys() | self._led.keys())

    def follow(self, snapshot: ClusterSnapshot) -> None:
        """To be led is what this broker leads in ZooKeeper; only topics that have changed are looked at."""
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
        self._look_at(touched)

    def _look_at(self, touched: Iterable[TopicPartition]) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
        for tp in touched:
            if self._gap(tp) and tp not in self._tasks:
                self._tasks[tp] = asyncio.create_task(self._close_gap(tp), name=f"leading-{tp}")

    def lost(self, tp: TopicPartition, error: StorageError) -> None:
        """The storage has closed the log of `tp`: resign at once, without waiting for the view to tell.

        A fence that is unknown (StorageFailed) is tried again. One that is certain is not, at this leadership: it
        would only push the successor's aside when that is a later incarnation of this very broker.
        """
        leadership = self._led.get(tp)
        if leadership is None:
            return
        if isinstance(error, Fenced | LogStopped):
            self._refused[tp] = leadership
        self._lost.add(tp)
        self._look_at([tp])

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    def distrust(self) -> None:
        """A new registration: what was refused may be tried again."""
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
                # A new wish (the broker stops, say) ends the wait.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(retry_s):
                        await self._news.wait()
                retry_s = min(2 * retry_s, _RETRY_S_MAX)
        finally:
            del self._tasks[tp]

    async def _step(self, tp: TopicPartition) -> bool:
        """Resign or lead; False when it is worth trying again after a while."""
        try:
            if tp in self._led:
                await self._resign(tp)
            elif (leadership := self._wanted.get(tp)) is not None:
                return await self._lead(leadership)
        except Exception as mistake:  # noqa: BLE001 - our own: see kernel.broker.storage.internal_errors
            stopped(f"the leadership of {tp}", mistake)
            leadership = self._led.pop(tp, None) or self._wanted.get(tp)
            if leadership is not None:
                self._refused[tp] = leadership
            self._lost.discard(tp)
            await self._tell_resignation(tp)
        return True

    async def _lead(self, leadership: Leadership) -> bool:
        """False when the disk failed, and it is worth trying again."""
        tp = leadership.topic_partition
        try:
            for listener in self._listeners_of(tp):
                await listener.on_lead(leadership)
        except (Fenced, LogStopped) as refusal:
            log.warning("%s is not led at epoch %d: %s", tp, leadership.leader_epoch, refusal)
            self._refused[tp] = leadership
            await self._tell_resignation(tp)
            return True
        except StorageError as failure:
            log.error("%s cannot be led: %s", tp, failure)  # noqa: TRY400 - the message says it all
            await self._tell_resignation(tp)
            return False
        self._refused.pop(tp, None)
        self._led[tp] = leadership
        self._trace(tp, self._node_id, leadership.leader_epoch)
        return True

    async def _resign(self, tp: TopicPartition) -> None:
        leadership = self._led.pop(tp)
        self._lost.discard(tp)
        await self._tell_resignation(tp)
        partition = self._snapshot.partition(tp)
        leader, epoch = NO_LEADER, leadership.leader_epoch
        if partition is not None and partition.leader != self._node_id:
            leader, epoch = partition.leader, partition.leader_epoch
        self._trace(tp, leader, epoch)

    async def _tell_resignation(self, tp: TopicPartition) -> None:
        for listener in self._listeners_of(tp):
            try:
                await listener.on_resign(tp)
            except Exception as mistake:  # noqa: BLE001 - our own: the others are told nevertheless
                stopped(f"giving up {tp}", mistake)

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
