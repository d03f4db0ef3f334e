"""Listeners on ZooKeeper paths and the delivery of changes to them: the rules of ZkClient 0.3, on raw watches.

1. Every read of a path with a listener leaves a watch, whatever the read is for.
2. Listening to children costs `exists` and `getChildren`, listening to data one `exists`.
3. A notification is handled by `exists` and `getChildren` (children) or `exists` and `getData` (data), which register
   the watch again; then the listener is called. Notifications are handled one after the other, so a slow one delays
   the next. With `one_read` (not ZkClient's way), 2 and 3 omit an `exists` in front of another read, unless the node
   does not exist: N reads fewer per join.
4. A new session notifies the application first, then every listener, as if everything had changed: listeners of
   children before listeners of data. What the application sends then goes before every operation that waited for the
   connection, unless an earlier notification is still being handled.
5. After a lost connection in the same session every watch is registered again. Here we differ: Java's client sends its
   watches in one request (setWatches), with the last zxid that it has seen, and the server reports which of them would
   have fired meanwhile. kazoo does not, so reads replace the request, in the step `re-arm`: `getChildren` and `exists`
   for children, `exists` for data. We make the server's comparison with the result of `exists`, so an id that left and
   returned is noticed, and no change is notified twice.

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
    """What is listened to: the children of a path, or its data."""

    CHILDREN = "children"
    DATA = "data"


#: The events that reach each kind of listener; other events only register the watch again.
_RELEVANT = {
    Listening.CHILDREN: frozenset({WatchEvent.CHILDREN, WatchEvent.CREATED, WatchEvent.DELETED}),
    Listening.DATA: frozenset({WatchEvent.CHANGED, WatchEvent.CREATED}),
}


#: Called on a change, with its cause for the trace. Its awaitable, if any, is awaited before the next notification.
OnChange = Callable[[str], Awaitable[None] | None]


@dataclass(slots=True)
class Listener:
    """The listener of one path. `exists`: whether its node existed when it was last read."""

    path: str
    what: Listening
    on_change: OnChange
    exists: bool = False

    async def notify(self, cause: str) -> None:
        waiting = self.on_change(cause)
        if waiting is not None:
            await waiting


class Watcher:
    """Reads that obey rule 1, and the task that handles notifications."""

    def __init__(
        self, session: ZooKeeperSession, renewed: Callable[[], Awaitable[None]], *, one_read: bool = False
    ) -> None:
        self.session = session
        self._renewed = renewed  #: called in a new session before any listener
        self._one_read = one_read
        self._listeners: dict[str, Listener] = {}
        self._waiting: asyncio.Queue[WatchFired | SessionChange] = asyncio.Queue()
        #: paths whose watches were lost with the connection, and the last zxid seen by then
        self._broken: dict[str, int] = {}
        self._states: asyncio.Queue[SessionChange] | None = None
        self._delivering = False
        self._handling = False

    def begin(self) -> None:
        """Handle renewed sessions from now on; an earlier one has nothing to restore."""
        self._states = self.session.subscribe()
        self.session.let_new_operations_go_first(lambda: self._delivering and not self._handling)

    def forget_listeners(self) -> None:
        """Stop notifying listeners; watches that are registered still fire (ZkClient.unsubscribeAll)."""
        self._listeners.clear()

    async def listen(self, path: str, what: Listening, on_change: OnChange) -> None:
        """Call `on_change` on every change from now on. Costs two reads for children (or one), one for data."""
        listener = self._listeners[path] = Listener(path, what, on_change)
        await self._arm(listener, step="subscribe", data=False)

    async def get(self, path: str, *, step: str, cause: str = "") -> bytes:
        """Data; raises `NoNode`. Leaves a watch if the path has a listener."""
        return (await self.read(path, step=step, cause=cause))[0]

    async def read(self, path: str, *, step: str, cause: str = "") -> tuple[bytes, ZnodeStat]:
        """Data and metadata; raises `NoNode`. Leaves a watch if the path has a listener."""
        return await self.session.get(path, watch=self._watch(path), step=step, cause=cause)

    async def children(self, path: str, *, step: str, cause: str = "") -> list[str]:
        """Names of children; raises `NoNode`. Leaves a watch if the path has a listener."""
        return await self.session.children(path, watch=self._watch(path), step=step, cause=cause)

    async def deliver(self) -> None:
        """Handle notifications and new sessions forever, one after the other, in order of arrival."""
        assert self._states is not None, "begin comes first"
        states = asyncio.create_task(self._forward_states(self._states))
        self._delivering = True
        try:
            while True:
                self._handling = False
                happened = await self._waiting.get()
                self._handling = True
                try:
                    await self._handle(happened)
                except SessionClosed:
                    return
                except ZooKeeperError:
                    # As on ZkClient's event thread: an event that fails does not stop the others.
                    log.exception("could not handle %s", happened)
        finally:
            self._delivering = False
            states.cancel()

    async def _handle(self, happened: WatchFired | SessionChange) -> None:
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
        await self._notify(listener, fired.event, _cause(fired))

    async def _notify(self, listener: Listener, event: WatchEvent, cause: str = "") -> None:
        if event in _RELEVANT[listener.what]:
            await listener.notify(cause)
        elif event is WatchEvent.DELETED:
            log.warning("%s was deleted while it had a listener", listener.path)

    async def _new_session(self) -> None:
        self._broken.clear()
        await self._renewed()
        for what in Listening:
            for listener in [listener for listener in self._listeners.values() if listener.what is what]:
                await self._arm(listener)
                await listener.notify("")

    async def _connected_again(self) -> None:
        while self._broken:
            # Removed first: if the connection breaks during the reads, it is put back for the next connection.
            path = next(iter(self._broken))
            seen_zxid = self._broken.pop(path)
            listener = self._listeners.get(path)
            if listener is None:
                continue
            event = await self._arm_again(listener, seen_zxid)
            if event is not None:
                await self._notify(listener, event)

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
            log.debug("%s does not exist: watching for its creation", path)
            if self._one_read:
                await self._look_for(listener, step, cause)  # only `exists` leaves a watch on a missing node
        else:
            listener.exists = listener.exists or reads_more

    async def _look_for(self, listener: Listener, step: str, cause: str) -> None:
        stat = await self.session.exists(listener.path, watch=self._enqueue, step=step, cause=cause)
        listener.exists = stat is not None

    async def _arm_again(self, listener: Listener, seen_zxid: int) -> WatchEvent | None:
        """The event that was missed, if any, by the server's own rules for setWatches (DataTree.setWatches)."""
        path, existed = listener.path, listener.exists
        if listener.what is Listening.CHILDREN:
            # First, so that a change after the response to `exists` finds the watch registered.
            with contextlib.suppress(NoNode):
                await self.session.children(path, watch=self._enqueue, step="re-arm")
        stat = await self.session.exists(path, watch=self._enqueue, step="re-arm")
        listener.exists = stat is not None
        if stat is None:
            return WatchEvent.DELETED if existed else None
        if not existed:
            return WatchEvent.CREATED
        if listener.what is Listening.CHILDREN:
            return WatchEvent.CHILDREN if stat.pzxid > seen_zxid else None
        return WatchEvent.CHANGED if stat.mzxid > seen_zxid else None


def _cause(fired: WatchFired) -> str:
    return f"zxid:{fired.zxid}" if fired.zxid is not None else ""
