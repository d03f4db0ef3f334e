"""Variants of `asyncio.gather` that leave nothing running when a part fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def gather_or_cancel(*parts: Coroutine[object, object, object]) -> None:
    """Run all parts; when one fails, cancel the others, wait for their end and raise the first error.

    `asyncio.gather` would leave the others running. A `TaskGroup` would raise an exception group, which hides the
    type of the error from `except`.
    """
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel_and_wait(*tasks)


async def gather_all(*parts: Coroutine[object, object, object]) -> None:
    """Run all parts to their end, even if some fail; then raise the first error, if any."""
    for result in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
