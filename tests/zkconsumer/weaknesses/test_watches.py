"""What a one-shot watch can miss, and what a busy event thread delays; kazoo's pitfalls, which do not occur."""

from __future__ import annotations

from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.operations import SessionState
from tests.support.consumers.weak_members import (
    VISITOR,
    attempts,
    claims,
    is_cut_off,
    joined,
    joining,
    mend,
    outcomes,
    reads_after_notification,
    sever,
)
from tests.support.consumers.zookeeper import member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import expire, opened


def notified(who, path="/consumers/g/ids"):
    return [e for e in who.tracer.of("zk_notified") if e["path"] == path]


async def test_change_between_two_watches_is_not_notified_but_seen(chroot, tmp_path, link):
    """It would be lost only if the member used an older read; the rebalance reads the members after setting a watch."""
    async with (
        running_broker(chroot, tmp_path, {"t": 3}),
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        unwatched = link.pause_at(reads_after_notification)
        async with joining(chroot, "c2", {"t": 1}), joining(chroot, "c3", {"t": 1}) as (c3, _):
            await unwatched.reached()

            async def all_registered():
                return len(await session.children(paths.member_ids("g"))) == 3

            await until(all_registered, 60, "three members")
            unwatched.release()
            every = shared("t", ("g_c1-0", [0]), ("g_c2-0", [1]), ("g_c3-0", [2]))
            await settled(session, every)
            await attempts(c1, 2)  # its claims exist before its attempt is over
            assert len(notified(c1)) == 1  # two joins, one notification
            assert c1.rebalances() == 2
            assert c3.id == "g_c3"


async def test_an_id_that_left_and_came_back_while_disconnected_is_noticed(chroot, tmp_path, link):
    """kazoo drops raw watches on a disconnect, and its ChildrenWatch is silent when the list is equal afterwards."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as other,
        joined(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        ghost = paths.member_id("g", "g_ghost")
        await other.create(ghost, VISITOR, ephemeral=True)
        await attempts(c1, 2)
        sever(link)
        await is_cut_off(c1)
        await other.delete(ghost)
        await other.create(ghost, b'{"pattern":"static","subscription":{"t":1}}', ephemeral=True)
        mend(link)
        await attempts(c1, 3)
        assert c1.session.state is SessionState.CONNECTED
        assert await owners(other) == shared("t", ("g_c1-0", [0]))  # the other member's share is not claimed


async def test_a_change_of_a_topics_partitions_while_disconnected_is_noticed(chroot, tmp_path, link):
    async with (
        running_broker(chroot, tmp_path, {"t": 1}) as broker,
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        sever(link)
        await is_cut_off(c1)
        await broker.cluster.grow_topic("t", partitions=3)
        mend(link)
        await settled(session, shared("t", ("g_c1-0", range(3))))
        await attempts(c1, 2)
        assert outcomes(c1) == ["ok", "ok"]


async def test_new_session_opened_by_kazoo_gets_the_registration_and_watches(chroot, tmp_path):
    """kazoo treats an expiry as a reconnect and does not notify the application; its nodes would be lost for good."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        joined(chroot, "c1", {"t": 1}) as c1,
    ):
        old = c1.session.session_id
        await expire(c1.session)
        await attempts(c1, 2)
        stat = (await session.get(paths.member_id("g", "g_c1")))[1]
        assert stat.ephemeral_owner == c1.session.session_id != old
        async with member(chroot, "c2", {"t": 1}):
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))


async def test_no_other_change_is_handled_during_a_new_sessions_rebalance(chroot, tmp_path, link):
    """One event thread: it rebalances for up to retries x backoff; meanwhile changes wait, without a new watch."""
    patient = {"rebalance_max_retries": "1000", "rebalance_backoff_ms": "20"}
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as other,
        joined(link.connect_string, "c1", {"t": 1}, **patient) as c1,
    ):
        claim = link.pause_at(claims)
        await expire(c1.session)
        await claim.reached()  # in the new session
        await other.create(paths.owner("g", "t", 0), b"g_ghost-0", ephemeral=True)
        claim.release()
        await attempts(c1, 1, "conflict")
        before = len(c1.operations())
        conflicts = len(outcomes(c1, "conflict"))
        await broker.cluster.grow_topic("t", partitions=3)
        await other.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
        await attempts(c1, conflicts + 5, "conflict")  # read again and again, and no notification handled
        assert not [op for op in c1.operations()[before:] if op[0] == "delivery"]
        await other.delete(paths.owner("g", "t", 0))
        await settled(other, shared("t", ("g_c1-0", range(3))))
        await until(
            lambda: [op for op in c1.operations()[before:] if op[0] == "delivery"], 10, "the changes to be answered"
        )


async def test_without_a_broker_a_start_succeeds_and_the_first_broker_makes_it_claim(chroot, tmp_path):
    """KAFKA-969: it used to fail; now it owns nothing and watches /brokers/ids."""
    async with opened(chroot) as session, member(chroot, "c1", {"t": 1}) as c1:
        assert outcomes(c1) == ["unavailable"]
        assert await owners(session) == {}
        async with running_broker(chroot, tmp_path, {"t": 2}) as broker:
            await settled(session, shared("t", ("g_c1-0", range(2))))
            assert notified(c1, paths.BROKER_IDS)
            await produce(broker, "t", 2, range(2))
            await c1.read_until(4)
