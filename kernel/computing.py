"""Computations on a thread of their own, so that the event loop goes on while they last.

A strategy may take longer than the session of the member that runs it: its heartbeats, or all of a broker's, must not
wait for it. Kafka's consumer sends heartbeats from a second thread (AbstractCoordinator.HeartbeatThread) and decides on
the application's; here the loop sends them, so it is the decision that moves. Python code gives the interpreter's lock
away every `sys.getswitchinterval()`; a function in C that holds it for longer stops the loop all the same.
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
    """What `work` returns or raises. Cancelling stops the waiting, not the work; its result is dropped then.

    `work` may read what nobody changes meanwhile, and changes nothing itself. It keeps no process from ending: the
    thread is a daemon, unlike those of asyncio.to_thread, which are waited for.
    """
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            errors.append(error)
        with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name=name, daemon=True).start()
    await done.wait()
    if errors:
        raise errors[0]
    return results[0]
