"""Waiting for a condition, with a limit and a message; the only way to wait for something that happens elsewhere."""

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
    """The condition did not come true in time."""


def _described(message: str | Callable[[], str]) -> str:
    return message() if callable(message) else message


def wait_until(
    condition: Callable[[], T], timeout_s: float, message: str | Callable[[], str], *, every_s: float = 0.02
) -> T:
    """Call `condition` until it returns something true, and return that; `WaitTimeout` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"not within {timeout_s:g} s: {_described(message)}")
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
    """As `wait_until`, on the event loop; `condition` may be a coroutine function."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"not within {timeout_s:g} s: {_described(message)}")
        await asyncio.sleep(every_s)
