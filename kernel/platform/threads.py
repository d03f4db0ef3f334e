"""Work off the event loop: what blocks, what computes for long, and what one thread does in order.

A strategy may run longer than its member's session timeout, and must not delay the member's heartbeats, or all of a
broker's. Kafka's consumer sends heartbeats from a second thread (AbstractCoordinator.HeartbeatThread) and computes
assignments in the application's. Here the loop sends heartbeats, so the computation moves. Python releases the GIL
every `sys.getswitchinterval()`; a C function that holds it longer still blocks the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Item = TypeVar("Item")


class Pool:
    """A few threads of one owner."""

    def __init__(self, size: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=name)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What `work` returns or raises."""
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Block until running work is done; what waits is cancelled."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class Worker(Generic[Item]):
    """A daemon thread that handles what is put, in order, from `start` until `handle` returns False.

    `handle` gets all that has been put since its last call.
    """

    def __init__(self, handle: Callable[[list[Item]], bool], name: str) -> None:
        self._handle = handle
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, item: Item) -> None:
        self._items.put(item)

    def join(self) -> None:
        """Block until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            items = [self._items.get()]
            while not self._items.empty():
                items.append(self._items.get())
            goes_on = self._handle(items)


class Threads:
    """All threads of the running parts; those of kazoo end at `kernel.zookeeper.bridge`."""

    def run(self, work: Callable[..., T], *arguments: Any, **named: Any) -> asyncio.Future[T]:
        """Run what blocks for a moment in the event loop's own pool. The end of the process waits for it."""
        return asyncio.get_running_loop().run_in_executor(None, functools.partial(work, *arguments, **named))

    async def compute(self, work: Callable[[], T], name: str) -> T:
        """Return or raise what `work` does. Cancellation ends the waiting, not the work, whose result is then dropped.

        `work` must change nothing, and read only what does not change meanwhile. Its thread is a daemon, so it does not
        keep the process from ending.
        """
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised in the waiting coroutine
                errors.append(error)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=run, name=name, daemon=True).start()
        await done.wait()
        if errors:
            raise errors[0]
        return results[0]

    def pool(self, size: int, name: str) -> Pool:
        return Pool(size, name)

    def worker(self, handle: Callable[[list[Item]], bool], name: str) -> Worker[Item]:
        return Worker(handle, name)
