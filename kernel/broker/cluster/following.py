"""Reads something in ZooKeeper again whenever a watch on it fires, and until no error keeps it from doing so."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.storage.internal_errors import log_stopped
from kernel.errors import RebalanceLabError, Retriable
from kernel.tasks import cancel_and_wait
from kernel.zookeeper.errors import SessionClosed, ZooKeeperError
from kernel.zookeeper.operations import WatchEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kernel.zookeeper.operations import WatchFired
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

_ERROR_RETRY_S = 1.0


class Follower:
    """`read` reads once and passes `fired` as the watch; it calls `begin` first."""

    def __init__(
        self,
        node_id: int,
        what: str,
        session: Callable[[], ZooKeeperSession],
        read: Callable[[], Awaitable[None]],
        on_failed: Callable[[RebalanceLabError], None] | None = None,
    ) -> None:
        """`on_failed` is called when an internal error ends the following."""
        self._node_id = node_id
        self._what = what
        self._session = session
        self._read = read
        self._on_failed = on_failed
        self.missed = False  #: the connection was lost: changes may have been missed
        self._dirty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, *, at_once: bool = False) -> None:
        """Follow from now on; `at_once`: read without waiting for a watch."""
        if at_once:
            self._dirty.set()
        self._task = asyncio.create_task(self._follow(), name=f"broker-{self._node_id}-{self._what.replace(' ', '-')}")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_and_wait(task)

    def begin(self) -> bool:
        """Before reading: what fires from now on is news. Returns whether changes may have been missed."""
        self._dirty.clear()
        missed, self.missed = self.missed, False
        return missed

    def fired(self, fired: WatchFired) -> None:
        self.missed = self.missed or fired.event is WatchEvent.NONE
        self._dirty.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bug: nothing would ever be read again.
            failure = log_stopped(f"broker {self._node_id}: following changes of {self._what}", error)
            if self._on_failed is not None:
                self._on_failed(failure)

    async def _follow(self) -> None:
        while True:
            await self._dirty.wait()
            try:
                await self._read()
            except SessionClosed:
                return
            except Retriable as error:
                log.info("broker %d could not follow changes of %s: %s", self._node_id, self._what, error)
                self._dirty.set()
                await self._session().wait_connected()
            except ZooKeeperError as error:
                log.error("broker %d cannot follow changes of %s: %s", self._node_id, self._what, error)  # noqa: TRY400
                self._dirty.set()
                await asyncio.sleep(_ERROR_RETRY_S)
