"""A member that joins or leaves notifies and stops every other; and how long many that leave at once take.

On the originals: a join notifies N-1 members, a leave N; 50 members that leave at once take 22 to 51 s with 0.8.2.2,
which does not check its shutdown flag between attempts, and half a second with 1.1.1.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.weak_members import (
    VISITOR,
    at_rest,
    attempts,
    begins,
    fetches,
    gives_up_soon,
    joined,
    outcomes,
)
from tests.support.consumers.zookeeper import member, running_broker, settled, shared
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened


def notified(who):
    return len([e for e in who.tracer.of("zk_notified") if e["path"] == "/consumers/g/ids"])


async def test_one_join_stops_every_member_and_everything_is_claimed_again(chroot, tmp_path):
    """Even for members for which nothing changes: here the new one has another topic."""
    async with running_broker(chroot, tmp_path, {"t": 8, "u": 1}), opened(chroot) as session, AsyncExitStack() as stack:
        members = [await stack.enter_async_context(joined(chroot, f"c{n}", {"t": 1})) for n in range(4)]
        shares = [(f"g_c{n}-0", range(2 * n, 2 * n + 2)) for n in range(4)]
        await settled(session, shared("t", *shares))
        await at_rest(*members)
        before = [(len(who.operations()), notified(who), who.rebalances()) for who in members]
        async with member(chroot, "other", {"u": 1}):
            for who, (_, _, rebalances) in zip(members, before, strict=True):
                await until(lambda w=who, r=rebalances: w.rebalances() > r, 60, "all members to rebalance")
            await settled(session, shared("t", *shares) | shared("u", ("g_other-0", [0])))
            for who, (operations, notifications, _) in zip(members, before, strict=True):
                assert notified(who) == notifications + 1
                writes = [op for _, op, path in who.operations()[operations:] if "/owners/" in path]
                assert writes[:2] == ["delete"] * 2
                assert writes.count("create") >= 2
                assert [what for what, _, _ in who.calls[-2:]] == ["revoked", "assigned"]


async def test_ring_of_subscriptions_is_woken_by_any_member_but_by_a_topics_partitions_only_its_readers(
    chroot, tmp_path
):
    """Article 004's ring: C1 reads t1 and t2, C2 t1 and t3, C3 t2 and t3."""
    ring = {"c1": {"t1": 1, "t2": 1}, "c2": {"t1": 1, "t3": 1}, "c3": {"t2": 1, "t3": 1}}
    async with (
        running_broker(chroot, tmp_path, {"t1": 2, "t2": 2, "t3": 2}) as broker,
        opened(chroot) as session,
        AsyncExitStack() as stack,
    ):
        members = [await stack.enter_async_context(joined(chroot, name, topics)) for name, topics in ring.items()]
        shares = [
            shared(topic, *((f"g_{name}-0", [n]) for n, name in enumerate(c for c in ring if topic in ring[c])))
            for topic in ("t1", "t2", "t3")
        ]
        await settled(session, shares[0] | shares[1] | shares[2])
        await at_rest(*members)
        before = [who.rebalances() for who in members]
        await broker.cluster.grow_topic("t1", partitions=4)
        grown = shared("t1", ("g_c1-0", [0, 1]), ("g_c2-0", [2, 3]))
        await settled(session, grown | shares[1] | shares[2])
        await at_rest(*members)
        assert [who.rebalances() > was for who, was in zip(members, before, strict=True)] == [True, True, False]
        woken = [notified(who) for who in members]
        async with member(chroot, "c4", {"t1": 1}):
            for who, was in zip(members, woken, strict=True):
                await until(lambda w=who, n=was: notified(w) > n, 60, "all members to be notified")
            three = shared("t1", ("g_c1-0", [0, 1]), ("g_c2-0", [2]), ("g_c4-0", [3]))
            await settled(session, three | shares[1] | shares[2])


@pytest.mark.parametrize(
    ("settings", "rebalances"),
    [pytest.param({}, 5, id="default"), pytest.param({"fix_quiet_ms": "3000"}, 1, id="waits for quiet")],
)
async def test_five_successive_changes_cause_five_rebalances(chroot, tmp_path, settings, rebalances):
    async def answers(who, number):
        """Wait until the watch is set again, so that the next change is not merged with this one."""
        await until(
            lambda: len([op for op in who.operations() if op[:2] == ("delivery", "getChildren")]) >= number,
            60,
            "the notification to be answered",
        )

    async with (
        running_broker(chroot, tmp_path, {"t": 1}),
        opened(chroot) as other,
        joined(chroot, "c1", {"t": 1}, **settings) as c1,
    ):
        for number in range(5):
            await other.create(paths.member_id("g", f"g_visitor{number}"), VISITOR, ephemeral=True)
            answered = number + 1
            if settings:
                await until(lambda n=answered: notified(c1) >= n, 60, "c1 to be notified")
                await answers(c1, answered)
            else:
                await attempts(c1, 1 + answered)
        await attempts(c1, 1 + rebalances)
        assert outcomes(c1) == ["ok"] * (1 + rebalances)
        await settled(other, shared("t", ("g_c1-0", [0])))


@pytest.mark.parametrize(("looks_again", "tries"), [("true", 4), ("false", 1)])
async def test_leaving_members_finish_all_attempts_first_unless_they_check_the_flag(
    chroot, tmp_path, looks_again, tries
):
    links = [ZooKeeperProxy(chroot) for _ in range(4)]
    try:
        async with running_broker(chroot, tmp_path, {"t": 4}), opened(chroot) as other, AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(
                    joined(link.connect_string, f"c{n}", {"t": 1}, rebalance_retries_while_closing=looks_again)
                )
                for n, link in enumerate(links)
            ]
            await settled(other, shared("t", *((f"g_c{n}-0", [n]) for n in range(4))))
            await at_rest(*members)
            for who in members:
                await fetches(who)
                gives_up_soon(who, attempts=4, backoff_ms=100)
            before = [len(outcomes(who)) for who in members]
            held = [link.pause_at(begins) for link in links]
            await other.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
            for pause in held:
                await pause.reached()
            leaving = asyncio.gather(*(who.consumer.close() for who in members))
            await until(lambda: all(who.consumer._executor.machine.closing for who in members), 60, "all to be closing")
            for pause in held:
                pause.release()
            await asyncio.wait_for(leaving, 60)
            for who, number in zip(members, before, strict=True):
                assert outcomes(who)[number:] == ["error"] * tries
    finally:
        for link in links:
            link.close()
