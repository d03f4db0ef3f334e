"""The event loop of a command, and what signals do to it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from comparison.interrupts import Interrupted, end_now, interrupts_wait, reacting

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from comparison.screen.progress import RunProgress

T = TypeVar("T")


def run_reacting(main: Coroutine[Any, Any, T], *, loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """`asyncio.run` for a `main` that says itself what signals do; before it begins, they raise `Interrupted`.

    No signal finds a loop half made, or leaves `main` behind unawaited: Python would complain of both.
    """
    runner = asyncio.Runner(loop_factory=loop)
    try:
        with interrupts_wait():
            runner.get_loop()
        return runner.run(main)
    finally:
        try:
            runner.close()
        finally:
            main.close()


def run(main: Coroutine[Any, Any, T], *, loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """`asyncio.run` for a command: a signal cancels `main`, and `Interrupted` is raised when that has ended.

    A `main` that ends in order when it is cancelled returns its result.
    """
    interrupted = False

    async def supervised() -> T | None:
        nonlocal interrupted
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            if not task.cancelling():  # a second one would cancel the cleanup
                task.cancel()

        with calling_on_signals(cancel):
            try:
                return await main
            except asyncio.CancelledError:
                interrupted = True
                return None

    try:
        result = run_reacting(supervised(), loop=loop)
    finally:
        main.close()
    if interrupted:
        raise Interrupted
    return result  # type: ignore[return-value]  # None only after an interrupt


@contextmanager
def calling_on_signals(callback: Callable[[], object]) -> Iterator[None]:
    """Signals inside the block call this in the running event loop."""
    running = asyncio.get_running_loop()
    with reacting(lambda: running.call_soon_threadsafe(callback)):
        yield


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """An event that signals inside the block set: for a command that Ctrl-C ends in order."""
    stopping = asyncio.Event()
    with calling_on_signals(stopping.set):
        yield stopping


@contextmanager
def interrupted_by_signals(progress: RunProgress) -> Iterator[asyncio.Event]:
    """The first signal sets the event. The second one exits at once; all children then die with the fork server."""
    interrupted = asyncio.Event()

    def on_signal() -> None:
        if interrupted.is_set():
            progress.leave()
            end_now()
        interrupted.set()
        progress.say("interrupted: stopping")

    with calling_on_signals(on_signal):
        yield interrupted
