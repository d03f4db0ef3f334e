"""Several things at once, none of which goes on when one of them has failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def together(*parts: Coroutine[object, object, object]) -> None:
    """Return when all have; raise what the first one raised, once the others have been cancelled and have ended.

    `asyncio.gather` leaves the others running, and a `TaskGroup` raises a group, which hides from `except` what
    kind of error it was.
    """
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def all_ended(*parts: Coroutine[object, object, object]) -> None:
    """Return when all have ended, whatever becomes of the others; then raise the first one's error, if any."""
    for result in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
