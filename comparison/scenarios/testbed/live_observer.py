"""Observes a group by watches in a ZooKeeper that is not ours, whose transaction log cannot be read.

It has a session of its own, which is not traced or counted. It sees less than the log has: changes that are faster
than the next watch are merged, and a watch does not show who wrote an offset. So offsets are written to the trace only
after the run, merged with the members' traces (`comparison.scenarios.testbed.observed_offsets`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.scenarios.testbed.observed_offsets import SeenWrite
from comparison.scenarios.testbed.observer import session_name
from kernel.decimals import signed_decimal
from kernel.errors import Unavailable
from kernel.runtime import REAL
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode, ZooKeeperError
from kernel.zookeeper.session import ZooKeeperSession, untraced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition
    from kernel.zookeeper.operations import WatchFired, ZnodeStat

#: The interval for polling until the group has created its nodes.
_ABSENT_S = 0.05


class LiveObserver:
    """Follows one group's members, owners and offsets, from `start` to `stop`."""

    def __init__(
        self,
        connect_string: str,
        group: str,
        partitions: Sequence[TopicPartition],
        tracer: Tracer,
        runtime: Runtime = REAL,
    ) -> None:
        self._connect_string = connect_string
        self.group = group
        self._partitions = list(partitions)
        self._tracer = tracer
        self._runtime = runtime
        self._tasks: list[asyncio.Task[None]] = []
        self._session: ZooKeeperSession | None = None
        self._blind = ""
        self.seen: list[SeenWrite] = []  #: writes of offsets, in each node's order

    def check(self) -> None:
        """Raise `Unavailable` if changes may have been missed. What was seen remains valid."""
        ended = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
        why = next((f"failed: {error}" for error in ended if error is not None), self._blind)
        if why:
            raise Unavailable(f"the observer of the group's owners {why}")

    async def start(self) -> None:
        """Raises `Unavailable`."""
        self._session = await untraced(self._connect_string, "observer", retry_forever=True, runtime=self._runtime)
        self._tasks.append(asyncio.create_task(self._members(self._session)))
        self._follow(self._partitions)

    def watch(self, partitions: Sequence[TopicPartition]) -> None:
        """Follow the owners and offsets of these partitions as well."""
        self._partitions += partitions
        self._follow(partitions)

    def _follow(self, partitions: Sequence[TopicPartition]) -> None:
        assert self._session is not None, "not started"
        self._tasks += [asyncio.create_task(self._owner(self._session, tp)) for tp in partitions]
        self._tasks += [asyncio.create_task(self._offset(self._session, tp)) for tp in partitions]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, ZooKeeperError):
                raise result
        if self._session is not None:
            await self._session.close()

    async def _owner(self, session: ZooKeeperSession, tp: TopicPartition) -> None:
        path = paths.owner(self.group, tp.topic, tp.partition)
        named: tuple[str, int] | None = None
        while True:
            fired = _Fired()
            try:
                # The watch of exists sees a creation as well as a deletion.
                stat = await session.exists(path, watch=fired)
                data, stat = await session.get(path) if stat is not None else (b"", None)
            except NoNode:
                continue
            now = (data.decode("utf-8", "replace"), stat.czxid) if stat is not None else None
            if named is not None and named != now:
                self._emit("authority_cleared", tp, named, reason="gone")
            if now is not None and stat is not None and named != now:
                self._emit("authority_named", tp, now, session=session_name(stat.ephemeral_owner))
            named = now
            await self._until(fired)

    async def _offset(self, session: ZooKeeperSession, tp: TopicPartition) -> None:
        path = paths.offset(self.group, tp.topic, tp.partition)
        while True:
            fired = _Fired()
            try:
                if await session.exists(path, watch=fired) is not None:
                    data, stat = await session.get(path)
                    self._saw(tp, data, stat)
            except NoNode:
                continue
            await self._until(fired)

    async def see_offsets(self) -> None:
        """Read every offset once more, for a complete count. Raises what reading raises."""
        assert self._session is not None, "not started"
        for tp in self._partitions:
            try:
                data, stat = await self._session.get(paths.offset(self.group, tp.topic, tp.partition))
            except NoNode:
                continue
            self._saw(tp, data, stat)

    def _saw(self, tp: TopicPartition, data: bytes, stat: ZnodeStat) -> None:
        offset = signed_decimal(data.decode("utf-8", "replace"))
        if offset is not None:
            self.seen.append(
                SeenWrite(
                    partition=tp,
                    offset=offset,
                    zxid=stat.mzxid,
                    version=stat.version,
                    mtime_ms=stat.mtime_ms,
                    received_ns=self._runtime.clock.monotonic_ns(),
                )
            )

    def _emit(self, kind: str, tp: TopicPartition, named: tuple[str, int], **fields: str) -> None:
        owner, zxid = named
        self._tracer.emit(
            kind,
            cause=f"zxid:{zxid}",
            group=self.group,
            topic=tp.topic,
            partition=tp.partition,
            owner=owner,
            epoch=zxid,
            **fields,  # type: ignore[arg-type]  # none of them is member or stream
        )

    async def _members(self, session: ZooKeeperSession) -> None:
        known: set[str] = set()
        while True:
            fired = _Fired()
            try:
                now = set(await session.children(paths.member_ids(self.group), watch=fired))
            except NoNode:
                await asyncio.sleep(_ABSENT_S)
                continue
            for member in sorted(now - known):
                self._tracer.emit("group_member_joined", group=self.group, id=member)
            for member in sorted(known - now):
                self._tracer.emit("group_member_left", group=self.group, id=member, reason="gone")
            known = now
            await self._until(fired)

    async def _until(self, fired: _Fired) -> None:
        await fired.wait()
        if fired.lost:
            # The current state is read again, but changes in between may have been missed.
            self._blind = "lost its connection for a while"


class _Fired(asyncio.Event):
    """A watch's callback as an event; `lost` if the watch ended without a change."""

    lost = False

    def __call__(self, fired: WatchFired) -> None:
        self.lost = fired.event == "none"
        self.set()
