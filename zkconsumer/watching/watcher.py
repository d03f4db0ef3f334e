"""Who listens to what in ZooKeeper, and how a change reaches them: the rules of ZkClient 0.3, on raw watches.

1. Every read of a path that somebody listens to leaves a watch, whoever reads it and why.
2. Listening to children costs `exists` and `getChildren`, listening to data one `exists`.
3. A notification is answered with `exists` and `getChildren` (children) or `exists` and `getData` (data), which
   arm the watch again, and then the listener is told. One after the other: what takes long delays the next.
   With `one_read` (not ZkClient's way) no `exists` comes before another read in 2 and 3, unless the node is not there:
   N reads less a join.
4. A new session tells the application first, then every listener, as if everything had changed: those of children
   before those of data.
5. After a break of the connection in the same session every watch is armed again. Here we differ: Java's client
   sends its watches in one request (setWatches), with the last zxid that it had seen, and the server tells which of
   them would have fired meanwhile. kazoo does not, so reads stand for it, in the step `re-arm`: `getChildren` and
   `exists` for children, `exists` for data. The same comparison is made here with what `exists` says, so an id
   that left and came back does not go unnoticed, and nothing that had been seen is told again.

Callbacks only enqueue; `deliver` is the one task that reads, the counterpart of ZkClient's event thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kernel.zookeeper.errors import NoNode, SessionClosed, ZooKeeperError
from kernel.zookeeper.operations import SessionState, WatchEvent, WatchFired

if TYPE_CHECKING:
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


#: Told of a change, with its cause for the trace; what it returns is waited for before anything else is answered.
Told = Callable[[str], Awaitable[None] | None]


@dataclass(slots=True)
class Listener:
    """One path's listener, told after the watch is armed again. `there`: whether the node was, the last time."""

    path: str
    what: Listening
    told: Told
    there: bool = False

    async def tell(self, cause: str) -> None:
        waiting = self.told(cause)
        if waiting is not None:
            await waiting


class Watching:
    """Reads that obey rule 1, and the task that answers notifications."""

    def __init__(
        self, session: ZooKeeperSession, renewed: Callable[[], Awaitable[None]], *, one_read: bool = False
    ) -> None:
        self.session = session
        self._renewed = renewed  #: told of a new session before any listener is
        self._one_read = one_read
        self._listeners: dict[str, Listener] = {}
        self._waiting: asyncio.Queue[WatchFired | SessionChange] = asyncio.Queue()
        #: paths whose watches went with the connection, and the last zxid that had been seen then
        self._broken: dict[str, int] = {}
        self._states: asyncio.Queue[SessionChange] | None = None

    def begin(self) -> None:
        """Sessions that are renewed from now on are told; before, nobody has anything in them."""
        self._states = self.session.subscribe()

    def forget_listeners(self) -> None:
        """Nobody is told any more; watches that are armed still fire (ZkClient.unsubscribeAll)."""
        self._listeners.clear()

    async def listen(self, path: str, what: Listening, told: Told) -> None:
        """From now on, `told` hears of changes. Costs two reads for children (or one), one for data, each time."""
        listener = self._listeners[path] = Listener(path, what, told)
        await self._arm(listener, step="subscribe", data=False)

    async def get(self, path: str, *, step: str, cause: str = "") -> bytes:
        """Data; raises `NoNode`. Leaves a watch where somebody listens."""
        return (await self.read(path, step=step, cause=cause))[0]

    async def read(self, path: str, *, step: str, cause: str = "") -> tuple[bytes, ZnodeStat]:
        """Data and metadata; raises `NoNode`. Leaves a watch where somebody listens."""
        return await self.session.get(path, watch=self._watch(path), step=step, cause=cause)

    async def children(self, path: str, *, step: str, cause: str = "") -> list[str]:
        """Names of children; raises `NoNode`. Leaves a watch where somebody listens."""
        return await self.session.children(path, watch=self._watch(path), step=step, cause=cause)

    async def deliver(self) -> None:
        """Answer notifications and new sessions for ever, one after the other, in the order of their coming."""
        assert self._states is not None, "begin comes first"
        states = asyncio.create_task(self._forward_states(self._states))
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

    async def _forward_states(self, states: asyncio.Queue[SessionChange]) -> None:
        while True:
            self._waiting.put_nowait(await states.get())

    def _watch(self, path: str) -> WatchCallback | None:
        return self._enqueue if path in self._listeners else None

    def _enqueue(self, fired: WatchFired) -> None:
        if fired.event is WatchEvent.NONE:
            assert fired.zxid is not None
            self._broken.setdefault(fired.path, fired.zxid)
        else:
            self._waiting.put_nowait(fired)

    async def _fired(self, fired: WatchFired) -> None:
        listener = self._listeners.get(fired.path)
        if listener is None:
            return
        await self._arm(listener, cause=_cause(fired))
        await self._tell(listener, fired.event, _cause(fired))

    async def _tell(self, listener: Listener, event: WatchEvent, cause: str = "") -> None:
        if event in _TOLD[listener.what]:
            await listener.tell(cause)
        elif event is WatchEvent.DELETED:
            log.warning("%s was deleted while it was listened to", listener.path)

    async def _new_session(self) -> None:
        self._broken.clear()
        await self._renewed()
        for what in Listening:
            for listener in [listener for listener in self._listeners.values() if listener.what is what]:
                await self._arm(listener)
                await listener.tell("")

    async def _connected_again(self) -> None:
        while self._broken:
            # Taken out first: a break while it is armed again puts it back, for the next connection.
            path = next(iter(self._broken))
            seen_zxid = self._broken.pop(path)
            listener = self._listeners.get(path)
            if listener is None:
                continue
            event = await self._arm_again(listener, seen_zxid)
            if event is not None:
                await self._tell(listener, event)

    async def _arm(self, listener: Listener, *, step: str = "delivery", cause: str = "", data: bool = True) -> None:
        path = listener.path
        reads_more = listener.what is Listening.CHILDREN or data
        if not (self._one_read and reads_more):
            await self._look_for(listener, step, cause)
        try:
            if listener.what is Listening.CHILDREN:
                await self.session.children(path, watch=self._enqueue, step=step, cause=cause)
            elif data:
                await self.session.get(path, watch=self._enqueue, step=step, cause=cause)
        except NoNode:
            log.debug("%s does not exist: its creation is watched for", path)
            if self._one_read:
                await self._look_for(listener, step, cause)  # only `exists` leaves a watch on what is not there
        else:
            listener.there = listener.there or reads_more

    async def _look_for(self, listener: Listener, step: str, cause: str) -> None:
        stat = await self.session.exists(listener.path, watch=self._enqueue, step=step, cause=cause)
        listener.there = stat is not None

    async def _arm_again(self, listener: Listener, seen_zxid: int) -> WatchEvent | None:
        """What the watch would have told; the server's own rules for setWatches (DataTree.setWatches)."""
        path, was_there = listener.path, listener.there
        if listener.what is Listening.CHILDREN:
            # First, so that whatever happens after `exists` has answered finds the watch armed.
            with contextlib.suppress(NoNode):
                await self.session.children(path, watch=self._enqueue, step="re-arm")
        stat = await self.session.exists(path, watch=self._enqueue, step="re-arm")
        listener.there = stat is not None
        if stat is None:
            return WatchEvent.DELETED if was_there else None
        if not was_there:
            return WatchEvent.CREATED
        if listener.what is Listening.CHILDREN:
            return WatchEvent.CHILDREN if stat.pzxid > seen_zxid else None
        return WatchEvent.CHANGED if stat.mzxid > seen_zxid else None


def _cause(fired: WatchFired) -> str:
    return f"zxid:{fired.zxid}" if fired.zxid is not None else ""
