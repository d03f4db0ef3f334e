"""Wait for a condition with a timeout: the only way to wait for something that happens elsewhere.

Messages complete the sentence "timed out after 60 s waiting for ...": "the group to settle", "a leader of t-0".
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kernel.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


T = TypeVar("T")


class WaitTimeout(Unavailable):
    """The condition did not become true in time."""


def _described(message: str | Callable[[], str], timeout_s: float) -> str:
    return f"timed out after {timeout_s:g} s waiting for {message() if callable(message) else message}"


def wait_until(
    condition: Callable[[], T], timeout_s: float, message: str | Callable[[], str], *, every_s: float = 0.02
) -> T:
    """Poll `condition` until it returns a true value, and return that. Raises `WaitTimeout` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise WaitTimeout(_described(message, timeout_s))
        time.sleep(every_s)


@overload
async def until(
    condition: Callable[[], Awaitable[T]],
    timeout_s: float,
    message: str | Callable[[], str],
    *,
    every_s: float = 0.02,
) -> T: ...


@overload
async def until(
    condition: Callable[[], T], timeout_s: float, message: str | Callable[[], str], *, every_s: float = 0.02
) -> T: ...


async def until(
    condition: Callable[[], Any], timeout_s: float, message: str | Callable[[], str], *, every_s: float = 0.02
) -> Any:
    """`wait_until` for the event loop; `condition` may be a coroutine function."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        if time.monotonic() >= deadline:
            raise WaitTimeout(_described(message, timeout_s))
        await asyncio.sleep(every_s)
