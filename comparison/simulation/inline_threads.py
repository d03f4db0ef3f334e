"""In place of threads: work is done at once, a worker's in the next turn of its node or after the time it takes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kernel.clock import NS_PER_S
from kernel.platform.threads import Pool, Threads, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Item = TypeVar("Item")


class InlinePool(Pool):
    """The loop does the work of its executors at once."""

    def __init__(self) -> None:
        """Starts nothing."""

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(None, work)

    def close(self) -> None:
        """Nothing is running."""


class InlineWorker(Worker[Item]):
    """Handles what was put since its last turn; an item that was put before `start` waits for it.

    If that takes a while, what is put meanwhile comes after it, all together.
    """

    def __init__(self, handle: Callable[[list[Item]], bool], takes_ns: Callable[[], int] | None) -> None:
        self._handle = handle
        self._takes_ns = takes_ns
        self._put: list[Item] = []
        self._taken: list[Item] = []  #: at work
        self._is_started = False
        self._is_due = False
        self._goes_on = True

    def start(self) -> None:
        self._is_started = True
        self._wake()

    def put(self, item: Item) -> None:
        self._put.append(item)
        self._wake()

    def join(self) -> None:
        """Do what is left now: nobody can wait."""
        self._finish()
        while self._take():
            self._finish()

    def _wake(self) -> None:
        if self._is_started and not self._is_due and self._put:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        while self._take():
            if self._takes_ns is not None:
                self._is_due = True
                asyncio.get_running_loop().call_later(self._takes_ns() / NS_PER_S, self._done)
                return
            self._finish()

    def _done(self) -> None:
        self._finish()
        self._turn()

    def _take(self) -> bool:
        """Begin with what was put; whether there is anything."""
        if not self._taken and self._goes_on:
            self._taken, self._put = self._put, []
        return bool(self._taken)

    def _finish(self) -> None:
        items, self._taken = self._taken, []
        if items:
            self._goes_on = self._handle(items)


class InlineThreads(Threads):
    """All threads of a node; for the time that they would take, no time passes but that of its disk."""

    def __init__(self, disk_ns: Callable[[], int] | None = None) -> None:
        """`disk_ns` draws how long its disk takes for a group of writes; without it, they are stored at once."""
        self._disk_ns = disk_ns

    def run(self, work: Callable[..., T], *arguments: Any, **named: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments, **named))

    async def compute(self, work: Callable[[], T], name: str) -> T:
        return work()

    def pool(self, size: int, name: str) -> Pool:
        return InlinePool()

    def worker(self, handle: Callable[[list[Item]], bool], name: str) -> Worker[Any]:
        return InlineWorker(handle, self._disk_ns)
