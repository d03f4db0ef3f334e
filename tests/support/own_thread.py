"""An asynchronous context that is held open on an event loop of its own, in a thread, for a test that blocks.

with held_open(serving(game)) as (served, loop): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def held_open(
    context: AbstractAsyncContextManager[T], *, wait_s: float = 30
) -> Iterator[tuple[T, asyncio.AbstractEventLoop]]:
    """What the context gives, and its loop. Raises what it raises; leaving it takes `wait_s` at most."""
    entered: Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def hold() -> None:
        over = asyncio.Event()
        async with context as given:
            entered.set_result((given, asyncio.get_running_loop(), over))
            await over.wait()

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, hold())
        wait([entered, running], return_when=FIRST_COMPLETED)
        if not entered.done():
            running.result()
        given, loop, over = entered.result()
        try:
            yield given, loop
        finally:
            loop.call_soon_threadsafe(over.set)
            running.result(wait_s)
