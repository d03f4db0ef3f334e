"""Sessions that break, move, expire and return: what is read again, and which changes members are notified of."""

from __future__ import annotations

import asyncio

from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.consumers.weak_members import VISITOR, is_cut_off, mend, sever
from tests.support.consumers.wildcards import add_broker, add_topic, operations, rebalanced
from tests.support.consumers.zookeeper import Member, member, new_member, settled, shared
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import Op
from tests.support.zookeeper.sessions import end_session, expire, opened
from zkconsumer.member.registration import register

IDS = paths.member_ids("g")

REARMED = [
    "re-arm getChildren /consumers/g/ids",
    "re-arm exists /consumers/g/ids",
    "re-arm exists /brokers/topics/t",
]


def reads_ids(op: Op) -> bool:
    return op.op == "getChildren" and op.path == IDS


def asks_for_ids(op: Op) -> bool:
    return op.op == "exists" and op.path == IDS


async def armed_again(who: Member, since: int) -> None:
    await until(
        lambda: [line for line in operations(who, since) if line.startswith("re-arm")] == REARMED,
        60,
        lambda: f"the watches to be armed again: {operations(who, since)}",
    )


async def test_change_that_a_rebalance_has_read_is_not_notified_again_after_a_reconnect(chroot, link):
    """The second visitor arrives between the two reads that answer the first: the rebalance sees it, though no read
    that set a watch did. Java's setWatches compares zxids, and so do we.
    """
    await prepare(chroot)
    async with (
        opened(chroot) as session,
        member(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        between = link.pause_at(reads_ids)
        await session.create(paths.member_id("g", "g_first"), VISITOR, ephemeral=True)
        await between.reached()
        await session.create(paths.member_id("g", "g_second"), VISITOR, ephemeral=True)
        between.release()
        await rebalanced(c1, 2)
        since = len(c1.tracer.events)
        sever(link)
        await is_cut_off(c1)
        mend(link)
        await armed_again(c1, since)
        # The next change is notified once: nothing was queued before it.
        await session.delete(paths.member_id("g", "g_second"))
        await rebalanced(c1, 3)
        assert [e["kind"] for e in c1.tracer.events[since:]].count("rebalance_triggered") == 1


async def prepare(connect_string: str) -> None:
    """A topic of two partitions and a broker, for groups that own but do not read."""
    async with opened(connect_string) as session:
        await add_broker(session)
        await add_topic(session, "t", 2)


async def test_disconnection_while_watches_are_registered_again_loses_none(chroot, link):
    """The connection breaks again between the read that sets the watch and the second read."""
    await prepare(chroot)
    async with (
        opened(chroot) as session,
        member(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        sever(link)
        await is_cut_off(c1)
        half_armed = link.pause_at(asks_for_ids)
        mend(link)
        await half_armed.reached()
        link.refuse()
        link.cut()
        await is_cut_off(c1)
        await session.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
        link.refuse(False)
        await rebalanced(c1, 2)
        await session.delete(paths.member_id("g", "g_visitor"))
        await rebalanced(c1, 3)


async def test_a_topic_that_changes_during_a_disconnection_is_notified_as_by_zookeeper(chroot, caplog, link):
    """A deletion only logs a warning, a creation rebalances, as ZkClient does with the events of setWatches."""
    await prepare(chroot)
    async with (
        opened(chroot) as session,
        member(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        for behind, rebalances in (
            (lambda: session.delete(paths.topic("t")), 1),
            (lambda: add_topic(session, "t", 1), 2),
        ):
            since = len(c1.tracer.events)
            sever(link)
            await is_cut_off(c1)
            await behind()
            mend(link)
            await armed_again(c1, since)
            await rebalanced(c1, rebalances)
        await settled(session, shared("t", ("g_c1-0", [0])))
        assert c1.rebalances() == 2
        assert "/brokers/topics/t was deleted while it had a listener" in caplog.text


def test_a_session_moves_to_another_server_of_an_ensemble_without_a_rebalance(tmp_path):
    with EmbeddedZooKeeper(tmp_path, servers=3) as ensemble:
        asyncio.run(prepare(ensemble.connect_string))

        async def story():
            async with member(ensemble.connect_string, "c1", {"t": 1}) as c1:
                old, since = c1.session.session_id, len(c1.tracer.events)
                await asyncio.to_thread(ensemble.servers[0].kill)
                await armed_again(c1, since)
                assert c1.session.session_id == old
                assert c1.rebalances() == 1
                rest = ",".join(server.address for server in ensemble.servers[1:])
                async with opened(rest) as session, member(rest, "c2", {"t": 1}):
                    await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))

        asyncio.run(story())


async def test_expiry_before_the_subscription_is_ignored(chroot):
    await prepare(chroot)
    c1 = new_member(chroot, "c1")
    await c1.consumer.start()
    try:
        await expire(c1.session)
        await c1.session.wait_connected()
        await c1.consumer.subscribe({"t": 1})
        async with opened(chroot) as session:
            await settled(session, shared("t", ("g_c1-0", range(2))))
            await session.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
            await rebalanced(c1, 2)
        assert [e["trigger"] for e in c1.tracer.of("rebalance_started")][:2] == ["start", "members"]
    finally:
        await c1.consumer.close()


async def test_member_expired_again_while_it_returns_still_returns(chroot, link):
    """Between the registration in the second session and its rebalance, where the original waits for its own expiry."""
    await prepare(chroot)
    async with (
        opened(chroot) as session,
        member(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        first = c1.session.session_id
        registered = link.pause_at(lambda op: op.op == "create" and op.path.endswith("/g_c1"))
        await expire(c1.session)
        await registered.reached()
        second = c1.session.session_id
        sever(link)
        await is_cut_off(c1)
        await asyncio.to_thread(end_session, chroot, c1.session.credentials)
        mend(link)
        await until(lambda: c1.session.connected and c1.session.session_id != second, 60, "a third session")
        await settled(session, shared("t", ("g_c1-0", range(2))))
        await until(lambda: has_returned_twice(c1), 60, "its listeners to be notified")
        stat = (await session.get(paths.member_id("g", "g_c1")))[1]
        assert stat.ephemeral_owner == c1.session.session_id not in (first, second)


def has_returned_twice(who: Member) -> bool:
    """Whether the topic's listener, the last one to be notified, has been notified of both returns."""
    return operations(who).count("delivery getData /brokers/topics/t") >= 2


async def test_node_of_our_own_session_is_ours_at_any_timestamp(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer) as session:
        payload = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"2"}'
        before = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'
        await session.create(paths.member_id("g", "g_c1"), before, ephemeral=True, makepath=True)
        since = len(tracer.of("zk_op"))
        await register(session, "g", "g_c1", payload, conflict_backoff_ms=3_600_000, fail_on_conflict=False)
        assert [e["op"] for e in tracer.of("zk_op")[since:]] == ["create", "getData"]


async def test_member_that_cannot_return_because_its_id_is_taken_says_so_and_stays(chroot, caplog, link):
    await prepare(chroot)
    async with opened(chroot) as session:
        async with member(link.connect_string, "c1", {"t": 1}, registration_conflict="fail") as c1:
            path = paths.member_id("g", "g_c1")
            link.refuse()
            await expire_cut_off(c1, chroot)
            await session.create(path, VISITOR, ephemeral=True)
            mend(link)
            await until(lambda: "g_c1 is registered by session" in caplog.text, 60, "the conflict in the log")
            assert await c1.consumer.getmany(timeout_ms=1) == ()
            # The listeners are notified all the same, and the rebalance reads the other member's registration.
            await until(lambda: c1.rebalances() >= 2, 60, "a rebalance")
            assert c1.consumer.assignment() == {0: frozenset()}
        assert await session.exists(path) is not None


async def expire_cut_off(who: Member, chroot: str) -> None:
    await asyncio.to_thread(end_session, chroot, who.session.credentials)
    await is_cut_off(who)
