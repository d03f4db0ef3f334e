"""The ZooKeeper consumer on a cut link: what it misses, what it delivers twice, what it overwrites.

The cut holds bytes back, as a network does; data and the other member bypass it. The tests expect what the original
does, including its faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from comparison.scenarios.testbed.proxy import TcpProxy
from kernel.tasks import cancel_and_wait
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.operations import SessionState
from tests.support.consumers.weak_members import lapse
from tests.support.consumers.zookeeper import Member, member, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened

#: Longer than any cut and any pause of a busy machine: sessions end only when a test ends them.
OUTLIVES = {"zookeeper_session_timeout_ms": "30000"}


@asynccontextmanager
async def proxied(chroot: str) -> AsyncIterator[tuple[TcpProxy, str]]:
    """A proxy in front of ZooKeeper, and the connect string that goes through it."""
    address, _, folder = chroot.partition("/")
    proxy = TcpProxy("zookeeper", SilentTracer())
    port = await proxy.start(int(address.rsplit(":", 1)[1]))
    try:
        yield proxy, f"127.0.0.1:{port}/{folder}"
    finally:
        proxy.heal()
        await proxy.stop()


async def cut_and_noticed(proxy: TcpProxy, who: Member) -> None:
    """Hold all traffic of the proxy, and let the member reconnect, as it would when no ping is answered."""
    proxy.cut()
    who.session._bridge.break_connection()
    await until(lambda: who.session.state is SessionState.SUSPENDED, 60, "the break to be noticed")


async def poll_forever(who: Member) -> None:
    while True:
        await who.read()


async def test_id_that_came_and_went_during_a_short_cut_is_noticed_after_it(chroot, tmp_path):
    """The list of members is equal before and after, and kazoo has dropped the watch: only the version differs."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as other,
        proxied(chroot) as (proxy, through),
        member(through, "c1", {"t": 1}, **OUTLIVES) as c1,
    ):
        session = c1.session.session_id
        await cut_and_noticed(proxy, c1)
        visitor = paths.member_id("g", "g_visitor")
        await other.create(visitor, b'{"pattern":"static","subscription":{"t":1}}', ephemeral=True)
        await other.delete(visitor)
        proxy.heal()
        await until(lambda: c1.rebalances() == 2, 60, lambda: f"a rebalance of c1: {c1.tracer.events[-5:]}")
        assert c1.session.session_id == session
        # The watches are set again.
        async with member(chroot, "c2", {"t": 1}):
            await settled(other, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))


async def test_a_short_cut_without_a_change_makes_no_rebalance(chroot, tmp_path):
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        proxied(chroot) as (proxy, through),
        member(through, "c1", {"t": 1}, **OUTLIVES) as c1,
    ):
        await until(lambda: len(c1.tracer.of("position_started")) == 2, 60, "the fetchers to be running")
        before = len(c1.operations())
        await cut_and_noticed(proxy, c1)
        proxy.heal()
        # Where Java's client sends one setWatches, reads set the watches: two for the ids, one for the topic.
        await until(lambda: len(c1.operations()) - before >= 3, 60, "the watches to be set again")
        assert c1.operations()[before:] == [
            ("re-arm", "getChildren", "/consumers/g/ids"),
            ("re-arm", "exists", "/consumers/g/ids"),
            ("re-arm", "exists", "/brokers/topics/t"),
        ]
        assert c1.rebalances() == 1


async def test_cut_off_member_goes_on_delivering_and_moves_offsets_back_when_it_returns(chroot, tmp_path):
    """Nothing stops the fetchers before the rebalance in the new session, and nothing fences the commit before it."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        proxied(chroot) as (proxy, through),
        member(chroot, "c2", {"t": 1}) as c2,
        member(through, "c1", {"t": 1}, **OUTLIVES) as c1,
    ):
        await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
        polls = [asyncio.create_task(poll_forever(who)) for who in (c1, c2)]
        try:
            await produce(broker, "t", 1, range(10))
            cut_off = TopicPartition("t", 0)
            await until(lambda: len(c1.records.get(cut_off, ())) == 10, 60, "ten records at c1")
            proxy.cut()
            committing = asyncio.create_task(c1.consumer.commit())
            await lapse(chroot, c1)
            await settled(session, shared("t", ("g_c2-0", range(2))))
            await produce(broker, "t", 1, range(10, 30))
            await until(lambda: len(c2.records.get(cut_off, ())) == 30, 60, "all thirty records at c2")
            await until(lambda: len(c1.records[cut_off]) == 30, 60, "the records at c1, which owns nothing")
            assert (await c2.consumer.commit()).accepted[cut_off] == 30
            assert not committing.done()
            proxy.heal()
            assert (await asyncio.wait_for(committing, 60)).accepted == {cut_off: 10}
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
            # Both delivered 10 to 29; the offset moved from 30 to 10, so the next owner delivers them once more.
            await until(lambda: len(c1.records[cut_off]) == 50, 60, lambda: f"the repetition: {c1.records}")
            assert c1.records[cut_off][30:] == list(range(10, 30))
        finally:
            await cancel_and_wait(*polls)
