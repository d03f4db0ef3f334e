"""Who listens to what in ZooKeeper, and how a change reaches them: the rules of ZkClient 0.3, on raw watches.

1. Every read of a path that somebody listens to leaves a watch, whoever reads it and why.
2. Listening to children costs `exists` and `getChildren`, listening to data one `exists`.
3. A notification is answered with `exists` and `getChildren` (children) or `exists` and `getData` (data), which
   arm the watch again, and then the listener is told. One after the other: what takes long delays the next.
4. A new session tells the application first, then every listener, as if everything had changed.
5. After a break of the connection in the same session every watch is armed again, by the same two reads.
   Here we differ: Java's client sends its watches again in one request and the server tells what was
   missed; kazoo does not, so reads stand for it, and a change is told when the children's version (or the
   data's zxid) is not the one that was seen last. An id that left and came back does not go unnoticed.

Callbacks only enqueue; `deliver` is the one task that reads, the counterpart of ZkClient's event thread.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kernel.zookeeper.errors import NoNode, SessionClosed, ZooKeeperError
from kernel.zookeeper.operations import SessionState, WatchEvent, WatchFired

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kernel.zookeeper.operations import SessionChange, WatchCallback, ZnodeStat
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)


class Listening(Enum):
    """What of a path is listened to."""

    CHILDREN = "children"
    DATA = "data"


#: Which events reach which listeners; the others only ask for a new watch.
_TOLD = {
    Listening.CHILDREN: frozenset({WatchEvent.CHILDREN, WatchEvent.CREATED, WatchEvent.DELETED}),
    Listening.DATA: frozenset({WatchEvent.CHANGED, WatchEvent.CREATED}),
}


@dataclass(slots=True)
class Listener:
    """One path's listener: `told(cause)` after the watch is armed again. `seen` is the version read last."""

    path: str
    what: Listening
    told: Callable[[str], None]
    seen: int = -1


class Watching:
    """Reads that obey rule 1, and the task that answers notifications."""

    def __init__(self, session: ZooKeeperSession, renewed: Callable[[], Awaitable[None]]) -> None:
        self._session = session
        self._renewed = renewed  #: told of a new session before any listener is
        self._listeners: dict[str, Listener] = {}
        self._waiting: asyncio.Queue[WatchFired | SessionChange] = asyncio.Queue()
        self._broken: set[str] = set()  #: paths whose watches went with the connection
        self._states = session.subscribe()

    async def listen(self, path: str, what: Listening, told: Callable[[str], None]) -> None:
        """From now on, `told` hears of changes. Costs two reads for children, one for data."""
        listener = self._listeners[path] = Listener(path, what, told)
        await self._arm_again(listener, first=True)

    async def get(self, path: str, *, step: str, cause: str = "") -> bytes:
        """Data; raises `NoNode`. Leaves a watch where somebody listens."""
        data, _ = await self._session.get(path, watch=self._watch(path), step=step, cause=cause)
        return data

    async def children(self, path: str, *, step: str, cause: str = "") -> list[str]:
        """Names of children; raises `NoNode`. Leaves a watch where somebody listens."""
        return await self._session.children(path, watch=self._watch(path), step=step, cause=cause)

    async def deliver(self) -> None:
        """Answer notifications and new sessions for ever, one after the other, in the order of their coming."""
        states = asyncio.create_task(self._forward_states())
        try:
            while True:
                happened = await self._waiting.get()
                try:
                    await self._answer(happened)
                except SessionClosed:
                    return
                except ZooKeeperError:
                    # As ZkClient's event thread: one event that cannot be answered does not end the others.
                    log.exception("could not answer %s", happened)
        finally:
            states.cancel()

    async def _answer(self, happened: WatchFired | SessionChange) -> None:
        if isinstance(happened, WatchFired):
            await self._fired(happened)
        elif happened.new_session:
            await self._new_session()
        elif happened.state is SessionState.CONNECTED:
            await self._connected_again()

    async def _forward_states(self) -> None:
        while True:
            self._waiting.put_nowait(await self._states.get())

    def _watch(self, path: str) -> WatchCallback | None:
        return self._enqueue if path in self._listeners else None

    def _enqueue(self, fired: WatchFired) -> None:
        if fired.event is WatchEvent.NONE:
            self._broken.add(fired.path)
        else:
            self._waiting.put_nowait(fired)

    async def _fired(self, fired: WatchFired) -> None:
        listener = self._listeners[fired.path]
        await self._arm_again(listener, cause=_cause(fired))
        if fired.event in _TOLD[listener.what]:
            listener.told(_cause(fired))
        elif fired.event is WatchEvent.DELETED:
            log.warning("%s was deleted while it was listened to", fired.path)

    async def _new_session(self) -> None:
        self._broken.clear()
        await self._renewed()
        for listener in list(self._listeners.values()):
            await self._arm_again(listener)
            listener.told("")

    async def _connected_again(self) -> None:
        broken, self._broken = self._broken, set()
        for listener in [listener for path, listener in self._listeners.items() if path in broken]:
            seen = listener.seen
            await self._arm_again(listener)
            if listener.seen != seen:
                listener.told("")

    async def _arm_again(self, listener: Listener, *, first: bool = False, cause: str = "") -> None:
        path, step = listener.path, "subscribe" if first else "delivery"
        stat = await self._session.exists(path, watch=self._enqueue, step=step, cause=cause)
        listener.seen = _version(listener.what, stat)
        try:
            if listener.what is Listening.CHILDREN:
                await self._session.children(path, watch=self._enqueue, step=step, cause=cause)
            elif not first:
                await self._session.get(path, watch=self._enqueue, step=step, cause=cause)
        except NoNode:
            log.debug("%s does not exist: its creation is watched for", path)


def _version(what: Listening, stat: ZnodeStat | None) -> int:
    """What changes with every change: -1 for a node that is not there."""
    if stat is None:
        return -1
    return stat.cversion if what is Listening.CHILDREN else stat.mzxid


def _cause(fired: WatchFired) -> str:
    return f"zxid:{fired.zxid}" if fired.zxid is not None else ""
