"""Watches one group as it is played: its trace files, its znodes, whatever no trace has yet."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from comparison.playground.live.fold import GroupFold
from comparison.playground.live.following import SLACK_NS, Follower
from comparison.playground.play.znodes import TreeReader
from comparison.scenarios.testbed.live_observer import LiveObserver
from kernel.clock import NS_PER_MS
from kernel.errors import RebalanceLabError
from kernel.runtime import REAL
from kernel.tasks import cancel_and_wait
from kernel.zookeeper import paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.playground import messages
    from comparison.playground.play.group import PlayedGroup
    from comparison.scenarios.run.changes import Changes
    from kernel.runtime import Runtime
    from kernel.values import TopicPartition

#: How often the znodes are read.
_TREE_S = 0.3
#: The trace files that are followed: not the proxy's. The observer's is written after the game, from ZooKeeper's log.
_FOLLOWED = re.compile(r"(m\d+(\.\d+)?|broker-\d+|runner|observer)")


class WatchedGroup:
    """The events of one group, in one order, folded. All of it is on one event loop."""

    def __init__(self, played: PlayedGroup, first: messages.Group, begun_ns: int, runtime: Runtime = REAL) -> None:
        self._played = played
        self._begun_ns = begun_ns
        self._runtime = runtime
        self._now_ns = runtime.clock.monotonic_ns
        self._follower = Follower(played.request.run_dir / "trace", lambda name: _FOLLOWED.fullmatch(name) is not None)
        self._fold = GroupFold(first)
        self._observer: LiveObserver | None = None
        self._tree: TreeReader | None = None
        self._reading: asyncio.Task[None] | None = None
        self._observed: tuple[TopicPartition, ...] = ()
        self._changes: Changes | None = None
        played.on_ready, played.on_over = self._begin, self._end
        played.on_rate = lambda rate: self._add("rate_set", {"rate": rate})

    def now_ms(self) -> int:
        return (self._now_ns() - self._begun_ns) // NS_PER_MS

    async def _begin(self, changes: Changes) -> None:
        """Watch ZooKeeper, before the first member joins. Raises `Unavailable`."""
        self._changes = changes
        changes.members.on_waiting = lambda event: self._add("zk_waiting", event)
        zookeeper, group = changes.testbed.zookeeper.connect_string, changes.testbed.group
        if self._played.design.zookeeper_sessions:
            self._tree = await TreeReader.open(zookeeper, paths.group(group), self._runtime)
            self._reading = asyncio.create_task(self._read_tree(self._tree))
        if not self._played.design.coordinator:
            self._observed = changes.testbed.partitions
            self._observer = LiveObserver(zookeeper, group, self._observed, _Emitted(self), self._runtime)
            await self._observer.start()

    async def _end(self) -> None:
        """Watch ZooKeeper no more, before it is stopped."""
        self._changes = None
        await cancel_and_wait(self._reading)
        if self._observer is not None:
            with contextlib.suppress(RebalanceLabError):  # ZooKeeper may be gone by now
                await self._observer.stop()
        if self._tree is not None:
            await self._tree.close()

    def take(self, slack_ns: int = SLACK_NS) -> Sequence[Mapping[str, object]]:
        """Fold the events since the last call, but those of the last `slack_ns`; the events."""
        events = list(self._follower.read(self._now_ns(), slack_ns))
        while self._follower.has_more:
            events += self._follower.read(self._now_ns(), slack_ns)
        for event in events:
            ns = event["ns"]
            assert isinstance(ns, int)
            self._fold.apply(max(0.0, (ns - self._begun_ns) / NS_PER_MS), event)
        return events

    def tell(self, at_ms: int) -> None:
        """Make sentences of what is known and over by now."""
        self._fold.tell(at_ms)

    def drain(self, at_ms: int, before: messages.Group) -> Sequence[messages.AnyChange]:
        """What has changed, and was told, since the last call, after which the group was as `before`."""
        return self._fold.drain(at_ms, before)

    def _add(self, kind: str, fields: Mapping[str, object]) -> None:
        self._follower.add({"process": "observer", **fields, "ns": self._now_ns(), "kind": kind})

    async def _read_tree(self, tree: TreeReader) -> None:
        while True:
            self._observe_new()
            with contextlib.suppress(RebalanceLabError):
                self._fold.see_tree(self.now_ms(), await tree.read())
            await asyncio.sleep(_TREE_S)

    def _observe_new(self) -> None:
        """Watch the owners of partitions that were added."""
        if self._observer is not None and self._changes is not None:
            partitions = self._changes.testbed.partitions
            if new := partitions[len(self._observed) :]:
                self._observed = partitions
                self._observer.watch(new)


class _Emitted:
    """A tracer that adds the observer's events to those of the group."""

    def __init__(self, watched: WatchedGroup) -> None:
        self._watched = watched

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        self._watched._add(kind, fields)
