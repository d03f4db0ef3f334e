"""Measures how fast this machine's ZooKeeper is without load, as the reference for the seconds in a report."""

from __future__ import annotations

import asyncio
from statistics import median
from typing import TYPE_CHECKING

from kernel.zookeeper.session import ZooKeeperSession, untraced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kernel.runtime import Runtime
    from kernel.zookeeper.operations import WatchFired

_NOTIFIED_S = 10.0
_SAMPLES = 15
#: A top-level node of its own keeps these operations out of the other namespaces' counters.
_ROOT = "/rebalance-lab-baseline"


async def measure_baseline(connect_string: str, runtime: Runtime) -> dict[str, float]:
    """Medians in milliseconds of a create, a read, and the time from a write to its watch's notification.

    Leaves nothing behind. Raises `Unavailable`.
    """
    now_ns = runtime.clock.monotonic_ns
    async with await untraced(connect_string, "baseline", runtime=runtime) as session:
        await session.ensure_path(_ROOT)
        paths = [f"{_ROOT}/{number}" for number in range(_SAMPLES)]
        creates = [await _timed(session.create(path, b"x" * 64), now_ns) for path in paths]
        gets = [await _timed(session.get(path), now_ns) for path in paths]
        notifications = [await _notified(session, path, now_ns) for path in paths]
        for path in (*paths, _ROOT):
            await session.delete(path)
    return {
        "create_ms": round(median(creates), 3),
        "get_ms": round(median(gets), 3),
        "notify_ms": round(median(notifications), 3),
    }


async def _timed(operation: Awaitable[object], now_ns: Callable[[], int]) -> float:
    """Milliseconds of an operation. A coroutine starts when it is awaited, so this is all of its time."""
    begun = now_ns()
    await operation
    return (now_ns() - begun) / 1e6


async def _notified(session: ZooKeeperSession, path: str, now_ns: Callable[[], int]) -> float:
    notified: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def fired(_: WatchFired) -> None:
        if not notified.done():
            notified.set_result(now_ns())

    await session.get(path, watch=fired)
    begun = now_ns()
    await session.set(path, b"y")
    return (await asyncio.wait_for(notified, _NOTIFIED_S) - begun) / 1e6
