"""Two owners, or none: unconditional deletes, and owner nodes that belong to no live member.

On the originals: a release that was interrupted by the expiry was repeated in the new session and deleted 3 owner nodes
of another member; that member, held before its release, and the returning one delivered the same 200 messages.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from kernel.errors import RebalanceFailed, RebalanceLabError
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.weak_members import (
    VISITOR,
    at_rest,
    attempts,
    begins,
    failure,
    fetches,
    has,
    is_cut_off,
    joined,
    joining,
    lapse,
    mend,
    outcomes,
    partitions,
    polling,
    releases,
    sever,
)
from tests.support.consumers.zookeeper import owners, produce, running_broker, settled, shared
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened

#: Together b and c own what a, which is away for a while, was about to release.
SHARED_BY_B_AND_C = shared("t", ("g_b-0", range(3)), ("g_c-0", range(3, 6)))
SHARED_BY_ALL = shared("t", ("g_a-0", range(2)), ("g_b-0", range(2, 4)), ("g_c-0", range(4, 6)))


@asynccontextmanager
async def cut_off_in_its_release(chroot, session, link_a, link_b, **settings):
    """a, b and c; a was cut off when it requested its first delete, and has expired since."""
    async with (
        # b is held for a while later, and must not lose its session.
        joined(link_b.connect_string, "b", {"t": 1}, zookeeper_session_timeout_ms="30000", **settings) as b,
        joined(link_a.connect_string, "a", {"t": 1}, zookeeper_session_timeout_ms="30000", **settings) as a,
    ):
        await settled(session, shared("t", ("g_a-0", range(3)), ("g_b-0", range(3, 6))))
        release = link_a.pause_at(releases)
        async with joining(chroot, "c", {"t": 1}, **settings) as (c, _):
            await release.reached()
            sever(link_a)
            await lapse(chroot, a)
            await settled(session, SHARED_BY_B_AND_C)
            await at_rest(b, c)  # c's join and a's expiry may be two rebalances
            await fetches(b)  # its leader finder is done, so that the next read of the brokers is a rebalance's
            yield a, b, c


async def session_is_idle(*members):
    """Wait until no rebalance is running, so that each member's next request reacts to something new."""
    for who in members:
        await until(
            lambda who=who: len(who.tracer.of("rebalance_started")) == len(who.tracer.of("rebalance_ended")),
            60,
            f"{who.session.member} to have no rebalance running",
        )


@pytest.mark.parametrize(
    ("settings", "foreign"),
    [pytest.param({}, 3, id="default"), pytest.param({"fix_checked_release": "true"}, 0, id="checked release")],
)
async def test_release_interrupted_by_an_expiry_is_repeated_and_deletes_anothers_nodes(
    chroot, tmp_path, settings, foreign
):
    with ZooKeeperProxy(chroot) as link_a, ZooKeeperProxy(chroot) as link_b:
        async with (
            running_broker(chroot, tmp_path, {"t": 6}),
            opened(chroot) as session,
            cut_off_in_its_release(chroot, session, link_a, link_b, **settings) as (a, b, _),
        ):
            held = link_b.pause_at(begins)
            old = a.session.session_id
            mend(link_a)
            await held.reached()
            await until(lambda: outcomes_in_new_session(a), 60, "a to end another attempt")
            deleted = [op for op in link_a.operations() if releases(op) and op.session != old and op.result == "ok"]
            assert [op.path for op in deleted[:foreign]] == [paths.owner("g", "t", n) for n in range(foreign)]
            if foreign:
                # Only b may own these, and b has not released them.
                assert all(tp in SHARED_BY_B_AND_C for tp in partitions("t", 0, 1, 2))
            else:
                assert not deleted
                assert (await owners(session)).items() >= shared("t", ("g_b-0", range(3))).items()
            succeeded = len(outcomes(b, "ok"))
            held.release()
            if foreign:
                # b may have deleted what a owned by then; from the next rebalance on, each releases only its own.
                await attempts(b, succeeded + 1)
                await session.create(paths.member_id("g", "g_visitor"), VISITOR, ephemeral=True)
            await settled(session, SHARED_BY_ALL)


def outcomes_in_new_session(who):
    """The outcomes of its attempts since its last session began."""
    began = max(i for i, e in enumerate(who.tracer.events) if e["kind"] == "session_changed")
    return [e["outcome"] for e in who.tracer.events[began:] if e["kind"] == "attempt_ended"]


@pytest.mark.parametrize(
    ("settings", "both"),
    [pytest.param({}, 2 * 20, id="default"), pytest.param({"fix_checked_release": "true"}, 0, id="checked release")],
)
async def test_slow_owner_and_returning_member_deliver_the_same_partitions(chroot, tmp_path, settings, both):
    with ZooKeeperProxy(chroot) as link_a, ZooKeeperProxy(chroot) as link_b:
        async with (
            running_broker(chroot, tmp_path, {"t": 6}) as broker,
            opened(chroot) as session,
            cut_off_in_its_release(chroot, session, link_a, link_b, **settings) as (a, b, c),
            polling(a, b, c),
        ):
            held = link_b.pause_at(begins)
            mend(link_a)
            await held.reached()
            if both:
                # b lost the nodes of these, and still delivers them; 2 and 3 wait for it.
                await settled(session, shared("t", ("g_a-0", range(2)), ("g_c-0", range(4, 6))))
            else:
                await until(lambda: "conflict" in outcomes_in_new_session(a), 60, "a's claims to fail")
            await produce(broker, "t", 2, range(20))
            for tp in partitions("t", 0, 1):
                await has(b, tp, 20)
                if both:
                    await has(a, tp, 20)
            twice = {tp: set(a.records.get(tp, ())) & set(b.records[tp]) for tp in partitions("t", 0, 1)}
            assert sum(map(len, twice.values())) == both
            if both:
                # The slow member's late release deletes the other's nodes: a goes on without owning anything.
                await session_is_idle(a, c)
            held.release()
            left = {tp: thread for tp, thread in SHARED_BY_ALL.items() if not (both and thread == "g_a-0")}
            await settled(session, left)


@pytest.mark.parametrize(
    ("settings", "own"),
    [pytest.param({}, False, id="default"), pytest.param({"fix_checked_claim": "true"}, True, id="checked claim")],
)
async def test_node_of_a_dying_session_with_our_thread_id_counts_as_ours_and_expires(
    chroot, tmp_path, settings, own, link
):
    """An impatient operator has deleted the dead member's id node, so that its successor need not wait."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}, zookeeper_session_timeout_ms="30000") as dead,
    ):
        sever(link)
        old = dead.session.session_id
        await session.delete(paths.member_id("g", "g_c1"))
        async with joining(chroot, "c1", {"t": 1}, **settings) as (successor, join), polling(successor):
            both = partitions("t", 0, 1)
            if own:
                await attempts(successor, 1, "conflict")
                await lapse(chroot, dead)
            await asyncio.wait_for(join, 15)
            assert successor.consumer.assignment() == {0: frozenset(both)}
            if not own:
                assert outcomes(successor) == ["ok"]
                stats = [(await session.get(paths.owner("g", "t", n)))[1] for n in range(2)]
                assert {stat.ephemeral_owner for stat in stats} == {old}

                await lapse(chroot, dead)

                async def gone() -> bool:
                    return await owners(session) == {}

                await until(gone, 60, "the old session to end")
                # It owns nothing, does not notice, and goes on; the next member's claim succeeds.
                await produce(broker, "t", 2, range(5))
                await successor.read_until(10)
                await session.create(paths.owner("g", "t", 0), b"g_other-0")
                assert successor.consumer.assignment() == {0: frozenset(both)}
            else:
                assert set(outcomes(successor)) == {"conflict", "ok"}
                stats = [(await session.get(paths.owner("g", "t", n)))[1] for n in range(2)]
                assert {stat.ephemeral_owner for stat in stats} == {successor.session.session_id}
        mend(link)  # so that the dead member can be closed


def tries_to_register(who):
    return [op[:2] for op in who.operations()].count(("register", "create"))


@pytest.mark.parametrize(
    ("settings", "waits"),
    [pytest.param({}, True, id="0.8.2"), pytest.param({"registration_conflict": "fail"}, False, id="1.1")],
)
async def test_member_starts_before_its_predecessor_of_the_same_id_has_expired(chroot, tmp_path, settings, waits, link):
    async with (
        running_broker(chroot, tmp_path, {"t": 1}),
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}, zookeeper_session_timeout_ms="30000") as dead,
    ):
        sever(link)
        await is_cut_off(dead)
        async with joining(chroot, "c1", {"t": 1}, waits_ms=500, **settings) as (c1, join):
            if waits:
                await until(lambda: tries_to_register(c1) >= 2, 60, "one attempt each session timeout, without end")
                await lapse(chroot, dead)
                await asyncio.wait_for(join, 15)
                await settled(session, shared("t", ("g_c1-0", [0])))
            else:
                error = await failure(join)
                assert not isinstance(error, RebalanceFailed)
                assert "g_c1" in str(error)
        mend(link)


async def test_claim_that_fails_without_a_conflict_leaks_nodes(chroot, tmp_path):
    """A gap in the rollback: here ZooKeeper refuses the second topic's claim."""
    async with running_broker(chroot, tmp_path, {"t": 2, "u": 1}), opened(chroot) as session:
        await session.create(paths.owners("g"), makepath=True)
        await session.create(paths.topic_owners("g", "u"))
        # An ephemeral parent would work as well: a claim below it is refused, and not by NodeExists.
        await session.delete(paths.topic_owners("g", "u"))
        await session.create(paths.topic_owners("g", "u"), ephemeral=True)
        async with joining(chroot, "c1", {"t": 1, "u": 1}, rebalance_max_retries="1") as (c1, join):
            error = await failure(join)
            assert isinstance(error, RebalanceFailed)
            assert "NoChildrenForEphemerals" in str(error)
            assert c1.consumer.assignment() == {0: frozenset()}
            leaked = shared("t", ("g_c1-0", range(2)))
            assert await owners(session) == leaked
            # The next claim conflicts although c1 releases everything that it knows of.
            given = {"rebalance_max_retries": "2", "rebalance_backoff_ms": "50"}
            async with joining(chroot, "c2", {"t": 1}, **given) as (c2, second):
                assert "t-1" in str(await failure(second))
                assert set(outcomes(c2)) == {"conflict"}
                assert (await owners(session)).keys() >= {TopicPartition("t", 1)}
                before = c2.rebalances()
                await c1.session.close()  # the only thing that removes them
                await until(lambda: c2.rebalances() > before, 60, "c2 to see that c1 has left")
                await settled(session, shared("t", ("g_c2-0", range(2))))


async def test_leaked_node_is_adopted_by_the_same_thread_at_the_next_attempt(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 1, "u": 1}), opened(chroot) as session:
        await session.create(paths.owners("g"), makepath=True)
        await session.create(paths.topic_owners("g", "u"), ephemeral=True)
        async with joining(chroot, "c1", {"t": 1, "u": 1}) as (c1, join):
            await attempts(c1, 1, "error")
            assert await owners(session) == shared("t", ("g_c1-0", [0]))
            await session.delete(paths.topic_owners("g", "u"))
            await asyncio.wait_for(join, 60)
            assert await owners(session) == shared("t", ("g_c1-0", [0])) | shared("u", ("g_c1-0", [0]))
            assert outcomes(c1)[-1] == "ok"


async def test_streams_are_created_once(chroot, tmp_path):
    """KAFKA-242: a second call got wrong offsets; now it is refused, and the first streams go on."""
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, joined(chroot, "c1", {"t": 1}) as c1:
        with pytest.raises(RebalanceLabError, match="exist already"):
            await c1.consumer.subscribe({"t": 2}, c1)
        await produce(broker, "t", 1, range(3))
        await c1.read_until(3)
        assert c1.rebalances() == 1
