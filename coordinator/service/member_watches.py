"""Watches on the ids of groups of the server design: one ZooKeeper session, with one child watch per group.

A group's ids are read with the watch; the data of an id is read once when it is new, and again when the machine asks.
Each report has all ids. ZooKeeper's watches are one-shot and end with the connection, so each notification and each
disconnect leads to another read, which sets the watch again. Operations are retried across disconnects and the
session's end; a new session reads everything again.

A watch is never removed: one that is no longer needed stays until it fires or the connection ends, at most one per
group however often the group comes and goes.

The session is opened for the first group: a broker without groups of this design has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.effects import ForgetIds, ReadAgain, WatchIds
from coordinator.protocol.server.member_znode import subscribed_topics
from coordinator.protocol.server.messages import ID_BYTES_MAX
from kernel.errors import Unavailable
from kernel.zookeeper import paths
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import NoNode, OperationRefused, SessionClosed, Unanswered, ZooKeeperError
from kernel.zookeeper.operations import WatchEvent
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.groups.effects import WatchEffect
    from kernel.broker.services import BrokerServices
    from kernel.zookeeper.operations import WatchFired

log = logging.getLogger(__name__)

_STEP = "server-ids"
#: Before retrying to open the session, or a read that ZooKeeper refused or did not answer.
_AGAIN_S = 1.0

#: {member id: its topics, sorted}
Ids = Mapping[str, tuple[str, ...]]
Report = Callable[[Ids], None]


@dataclass(eq=False)
class _Watched:
    """One group's ids. `known` has the topics read for each, None for an id that is not of this design."""

    group_id: str
    known: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    is_stale: bool = True  #: the children have to be read again
    cause: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def fired(self, fired: WatchFired) -> None:
        """Only mark it; the group's task reads."""
        is_break = fired.event is WatchEvent.NONE
        if is_break:
            self.known.clear()  # an id may have been recreated with another subscription
        self.is_stale = True
        self.cause = "" if is_break or fired.zxid is None else f"zxid:{fired.zxid}"
        self.changed.set()

    def members(self) -> dict[str, tuple[str, ...]]:
        return {name: topics for name, topics in self.known.items() if topics is not None}


@dataclass(frozen=True)
class _Notice:
    """The callback of a group's watch. All callbacks of a group compare equal, so that only one is set."""

    watches: MemberWatches
    group_id: str

    def __call__(self, fired: WatchFired) -> None:
        self.watches.notified(self.group_id, fired)


class MemberWatches:
    """Serves the machines' requests to ZooKeeper; `watch` never waits."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services
        #: By group, then by partition: a new leadership of a partition may begin before the old one has ended.
        self._watched: dict[str, dict[object, _Watched]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[ZooKeeperSession] | None = None
        self._stopped = False

    def watch(self, watch: WatchEffect, whose: object, report: Report, failed: Callable[[BaseException], None]) -> None:
        """Start, repeat or end watching for the partition `whose`; `report` is called after every read.

        `failed` is called with the exception if a bug ends the watching.
        """
        if self._stopped:
            return  # the partition finished loading too late and is given up at once
        looking = self._watched.setdefault(watch.group_id, {})
        match watch:
            case WatchIds():
                assert whose not in looking, f"the ids of {watch.group_id!r} are watched already"
                watched = looking[whose] = _Watched(watch.group_id)
                watched.task = asyncio.create_task(self._follow(watched, report), name=f"ids-of-{watch.group_id}")
                watched.task.add_done_callback(partial(_report_internal_error, failed))
            case ReadAgain(member_id=member_id):
                watched = looking[whose]
                watched.again.add(member_id)
                watched.changed.set()
            case ForgetIds():
                self._end(looking.pop(whose))
                if not looking:
                    del self._watched[watch.group_id]

    def notified(self, group_id: str, fired: WatchFired) -> None:
        """A watch of the group's ids has fired, or was lost with its connection."""
        for watched in self._watched.get(group_id, {}).values():
            watched.fired(fired)

    def _end(self, watched: _Watched) -> None:
        assert watched.task is not None, "the task starts with the watch"
        watched.task.cancel()
        self._ending.add(watched.task)
        watched.task.add_done_callback(self._ending.discard)

    async def stop(self) -> None:
        """End every watch and the session. Later requests are ignored."""
        self._stopped = True
        for watched in [watched for looking in self._watched.values() for watched in looking.values()]:
            self._end(watched)
        self._watched.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()  # harmless if it has ended
            (session,) = await asyncio.gather(opening, return_exceptions=True)
            if isinstance(session, ZooKeeperSession):
                await session.close()

    # -- reading ----------------------------------------------------------------------------------------------------

    async def _session(self) -> ZooKeeperSession:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="server-groups-session")
        return await asyncio.shield(self._opening)

    async def _open(self) -> ZooKeeperSession:
        services = self._services
        while True:
            try:
                return await ZooKeeperSession.open(
                    services.zookeeper,
                    session_timeout_ms=services.config.number("zookeeper.session.timeout.ms"),
                    connection_timeout_ms=services.config.number("zookeeper.connection.timeout.ms"),
                    tracer=services.tracer,
                    process=f"broker-{services.node_id}",
                    name="server-groups",
                    bridge=services.runtime.edge(Bridge),
                    retry_forever=True,
                )
            except Unavailable as error:
                log.warning("cannot watch groups of the server design: %s", error)
                await asyncio.sleep(_AGAIN_S)

    async def _follow(self, watched: _Watched, report: Report) -> None:
        session = await self._session()
        while True:
            try:
                await self._follow_in(session, watched, report)
            except SessionClosed:
                return
            except (OperationRefused, Unanswered) as error:
                log.warning("cannot read the ids of group %s, retrying: %s", watched.group_id, error)
                watched.is_stale = True
                await asyncio.sleep(_AGAIN_S)

    async def _follow_in(self, session: ZooKeeperSession, watched: _Watched, report: Report) -> None:
        ids: list[str] = []
        while True:
            watched.changed.clear()
            if watched.is_stale:
                watched.is_stale = False
                ids = await self._children(session, watched)
            await self._read(session, watched, ids)
            if not watched.is_stale:  # otherwise the read is outdated already
                report(watched.members())
                await watched.changed.wait()

    async def _children(self, session: ZooKeeperSession, watched: _Watched) -> list[str]:
        """Read the ids and watch for changes, or watch for the creation of their parent."""
        path, notice = paths.member_ids(watched.group_id), _Notice(self, watched.group_id)
        while True:
            try:
                names = await session.children(path, watch=notice, step=_STEP, cause=watched.cause)
            except NoNode:
                if await session.exists(path, watch=notice, step=_STEP, cause=watched.cause) is None:
                    return []
            else:
                # A member with a longer id cannot send AwaitCommand.
                return [name for name in names if len(name.encode()) <= ID_BYTES_MAX]

    async def _read(self, session: ZooKeeperSession, watched: _Watched, ids: Iterable[str]) -> None:
        """Update `known` to these ids. An id deleted since stays unknown; the watch has fired for it."""
        again, watched.again = watched.again, set()
        try:
            if again:
                await session.sync(paths.member_ids(watched.group_id), step=_STEP)
            wanted = [name for name in ids if name not in watched.known or name in again]
            found = await asyncio.gather(*(self._topics(session, watched, name) for name in wanted))
        except ZooKeeperError:
            watched.again |= again
            raise
        known = {name: topics for name, topics in watched.known.items() if name in set(ids)}
        watched.known = known | {name: topics for part in found for name, topics in part.items()}

    async def _topics(
        self, session: ZooKeeperSession, watched: _Watched, name: str
    ) -> dict[str, tuple[str, ...] | None]:
        path = paths.member_id(watched.group_id, name)
        try:
            data, _ = await session.get(path, step=_STEP, cause=watched.cause)
        except NoNode:
            return {}
        topics = subscribed_topics(data)
        if topics is None:
            log.info("ignored %s, which is not a member of the server design", path)
        return {name: topics}


def _report_internal_error(failed: Callable[[BaseException], None], task: asyncio.Task[None]) -> None:
    """The task handles expected errors: an exception that ends it is a bug (`internal_errors`)."""
    if not task.cancelled() and (bug := task.exception()) is not None:
        failed(bug)
