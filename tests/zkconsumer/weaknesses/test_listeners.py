"""1.1's listener inside the attempt: if it raises, other members suffer.

On the original (1.1.1): the attempt fails before the release, its member keeps its nodes, and the innocent joiner gets
the exception. 0.8.2 has no listener; ours is called outside the attempt there.
"""

from __future__ import annotations

import asyncio

import pytest

from kernel.errors import RebalanceFailed
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.weak_members import attempts, failure, fetches, joining, outcomes
from tests.support.consumers.zookeeper import new_member, owners, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened

IN_ATTEMPT = {"rebalance_listener_in_attempt": "true"}
QUICK = {"rebalance_max_retries": "3", "rebalance_backoff_ms": "50"}


class RaisesWhenRevoked:
    """An application whose listener fails when it must give up its partitions."""

    def __init__(self) -> None:
        self.asked = 0

    async def on_assigned(self, stream, partitions):
        pass

    async def on_revoked(self, stream, partitions):
        if not partitions:  # 1.1 also calls it at the first start
            return
        self.asked += 1
        raise ValueError("the application's own mistake")

    async def on_lost(self, stream, partitions):
        raise AssertionError("the 0.8 consumer never knows of a loss")


async def test_listener_that_raises_in_the_attempt_keeps_its_nodes_and_fails_the_joiner(chroot, tmp_path):
    listener = RaisesWhenRevoked()
    c1 = new_member(chroot, "c1", **QUICK, **IN_ATTEMPT)
    async with running_broker(chroot, tmp_path, {"t": 4}), opened(chroot) as session:
        try:
            await c1.consumer.start()
            await c1.consumer.subscribe({"t": 1}, listener)
            await fetches(c1)
            async with joining(chroot, "c2", {"t": 1}, **QUICK) as (c2, join):
                assert isinstance(await failure(join), RebalanceFailed)
                assert set(outcomes(c2)) == {"conflict"}
                await attempts(c1, 3, "error")
                assert listener.asked >= 1
                assert await owners(session) == shared("t", ("g_c1-0", range(4)))
                # The application is not notified: the failed rebalance is only in the log.
                assert await c1.consumer.getmany(timeout_ms=1) == ()
        finally:
            await c1.consumer.close()


async def test_listener_that_raises_outside_the_attempt_fails_only_its_own_application(chroot, tmp_path):
    """Its member leaves the group by itself; the application learns of it at its next call, however late that is."""
    listener = RaisesWhenRevoked()
    c1 = new_member(chroot, "c1", **QUICK)
    async with running_broker(chroot, tmp_path, {"t": 4}), opened(chroot) as session:
        try:
            await c1.consumer.start()
            await c1.consumer.subscribe({"t": 1}, listener)
            await fetches(c1)
            async with joining(chroot, "c2", {"t": 1}) as (_, join):
                await until(lambda: listener.asked == 1, 60, "c1's listener to be called")
                await asyncio.wait_for(join, 60)
                await settled(session, shared("t", ("g_c2-0", range(4))))
                assert await session.children(paths.member_ids("g")) == ["g_c2"]
                assert c1.consumer.assignment() == {0: frozenset()}
                with pytest.raises(ValueError, match="own mistake"):
                    await c1.consumer.getmany(timeout_ms=5000)
                assert len(c1.tracer.of("member_failed")) == len(c1.tracer.of("member_closed")) == 1
        finally:
            await c1.consumer.close()
