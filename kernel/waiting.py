"""Wait for a condition with a timeout: the only way to wait for something that happens elsewhere.

Messages complete the sentence "timed out after 60 s waiting for ...": "the group to settle", "a leader of t-0".

Of each pause between two looks, at most ten times its intended length counts, or a fifth of a second: when this process
is stopped for longer, what it waits for may need it, or be stopped as well. What a look takes counts in full.
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
#: A pause between two looks counts for at most this many times its length, or this long.
_LATE_MAX = 10
_LATE_MAX_S = 0.2


class WaitTimeout(Unavailable):
    """The condition did not become true in time."""


def _described(message: str | Callable[[], str], timeout_s: float) -> str:
    return f"timed out after {timeout_s:g} s waiting for {message() if callable(message) else message}"


class _Waited:
    """How long has been waited, without what a pause took longer than it was to."""

    def __init__(self, every_s: float, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._late_max_s = max(every_s * _LATE_MAX, _LATE_MAX_S)
        self._looking_since_s = self._now_s()
        self._paused_since_s = self._looking_since_s
        self.seconds = 0.0

    def looked(self) -> None:
        self._paused_since_s = self._now_s()
        self.seconds += self._paused_since_s - self._looking_since_s

    def paused(self) -> None:
        self._looking_since_s = self._now_s()
        self.seconds += min(self._looking_since_s - self._paused_since_s, self._late_max_s)


def wait_until(
    condition: Callable[[], T], timeout_s: float, message: str | Callable[[], str], *, every_s: float = 0.02
) -> T:
    """Poll `condition` until it returns a true value, and return that. Raises `WaitTimeout` after `timeout_s`."""
    waited = _Waited(every_s, time.monotonic)
    while True:
        result = condition()
        if result:
            return result
        waited.looked()
        if waited.seconds >= timeout_s:
            raise WaitTimeout(_described(message, timeout_s))
        time.sleep(every_s)
        waited.paused()


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
    waited = _Waited(every_s, asyncio.get_running_loop().time)
    while True:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        waited.looked()
        if waited.seconds >= timeout_s:
            raise WaitTimeout(_described(message, timeout_s))
        await asyncio.sleep(every_s)
        waited.paused()
