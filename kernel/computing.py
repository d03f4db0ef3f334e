"""Run computations in a separate thread, so that the event loop continues meanwhile.

A strategy may run longer than its member's session timeout, and must not delay the member's heartbeats, or all of a
broker's. Kafka's consumer sends heartbeats from a second thread (AbstractCoordinator.HeartbeatThread) and computes
assignments in the application's. Here the loop sends heartbeats, so the computation moves. Python releases the GIL
every `sys.getswitchinterval()`; a C function that holds it longer still blocks the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def computed(work: Callable[[], T], name: str) -> T:
    """Return or raise what `work` does. Cancellation ends the waiting, not the work, whose result is then dropped.

    `work` must change nothing, and read only what does not change meanwhile. Its thread is a daemon, so it does not
    keep the process from ending, unlike those of asyncio.to_thread.
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
