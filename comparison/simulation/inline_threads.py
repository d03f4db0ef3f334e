"""In place of threads: work is done at once, and a worker's in the next turn of its node."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

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
    """Handles what was put since its last turn; an item that was put before `start` waits for it."""

    def __init__(self, handle: Callable[[list[Item]], bool], name: str) -> None:
        self._handle = handle
        self._put: list[Item] = []
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
        self._turn()

    def _wake(self) -> None:
        if self._is_started and not self._is_due and self._put:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        while self._put and self._goes_on:
            items, self._put = self._put, []
            self._goes_on = self._handle(items)


class InlineThreads(Threads):
    """All threads of a node; for the time that they would take, no time passes."""

    def run(self, work: Callable[..., T], *arguments: Any, **named: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments, **named))

    async def compute(self, work: Callable[[], T], name: str) -> T:
        return work()

    def pool(self, size: int, name: str) -> Pool:
        return InlinePool()

    def worker(self, handle: Callable[[list[Item]], bool], name: str) -> Worker[Any]:
        return InlineWorker(handle, name)
