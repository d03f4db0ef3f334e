"""Conflicts, failed attempts, and the result when all have failed: a member that is registered and idle.

On the originals: an exception after 4 tries; id node and threads stay; 8 s after the obstacle was removed nothing was
owned yet, and the next join repaired it.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from kernel.errors import RebalanceFailed
from kernel.values import TopicPartition
from kernel.waiting import WaitTimeout, until
from kernel.zookeeper import paths
from tests.support.consumers.weak_members import (
    VISITOR,
    attempts,
    begins,
    claims,
    failure,
    joined,
    joining,
    lapse,
    mend,
    outcomes,
    polling,
    sever,
)
from tests.support.consumers.zookeeper import member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened

QUICK = {"rebalance_max_retries": "3", "rebalance_backoff_ms": "50"}
BOTH = shared("t", ("g_c1-0", [0]), ("g_c2-0", [1]))


async def test_claim_before_the_owners_release_conflicts_and_succeeds_after_it(chroot, tmp_path, link):
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        slow = link.pause_at(begins)
        async with joining(chroot, "c2", {"t": 1}) as (c2, join):
            await slow.reached()
            await attempts(c2, 1, "conflict")
            assert await owners(session) == shared("t", ("g_c1-0", range(2)))
            slow.release()
            await asyncio.wait_for(join, 60)
            await settled(session, BOTH)
            assert outcomes(c2)[-1] == "ok"
            assert set(outcomes(c2)[:-1]) == {"conflict"}
            await attempts(c1, 2)
            assert outcomes(c1) == ["ok", "ok"]
            # No member watches an owner node: the backoff helped, not the release.
            assert not [e for e in c2.tracer.of("zk_notified") if "/owners/" in str(e["path"])]


async def test_conflict_releases_the_attempts_claims(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 3}), opened(chroot) as ghost:
        await ghost.create(paths.owner("g", "t", 1), b"g_ghost-0", ephemeral=True, makepath=True)
        async with joining(chroot, "c1", {"t": 1}, **QUICK | {"rebalance_max_retries": "1"}) as (c1, join):
            await failure(join)
            assert await owners(ghost) == {TopicPartition("t", 1): "g_ghost-0"}
            made = [(op, path[-1]) for step, op, path in c1.operations() if step == "R11" and "/owners/t/" in path]
            # It goes on after the conflict, and reads the node once.
            assert made[-6:] == [("create", "0"), ("create", "1"), ("getData", "1"), ("create", "2"),
                                 ("delete", "0"), ("delete", "2")]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "recovers"),
    [pytest.param({}, False, id="default"), pytest.param({"fix_retry_when_free": "true"}, True, id="looks again")],
)
async def test_member_that_gave_up_stays_registered_and_idle(chroot, tmp_path, settings, recovers):
    async with running_broker(chroot, tmp_path, {"t": 4}) as broker, opened(chroot) as ghost:
        await ghost.create(paths.owner("g", "t", 0), b"g_ghost-0", ephemeral=True, makepath=True)
        async with joining(chroot, "c1", {"t": 1}, **QUICK, **settings) as (c1, join):
            error = await failure(join)
            assert isinstance(error, RebalanceFailed)
            assert "g_c1 can't rebalance after 3 retries" in str(error)
            assert set(outcomes(c1)[:3]) == {"conflict"}
            assert await ghost.children(paths.member_ids("g")) == ["g_c1"]
            assert await owners(ghost) == {TopicPartition("t", 0): "g_ghost-0"}
            before = len(c1.operations())
            await ghost.delete(paths.owner("g", "t", 0))
            if not recovers:
                with pytest.raises(WaitTimeout):  # many times the backoff
                    await c1.read_until(1, timeout_s=1)
                assert c1.operations()[before:] == []
                assert await owners(ghost) == {}
                async with member(chroot, "c2", {"t": 1}):
                    await settled(ghost, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
            else:
                await settled(ghost, shared("t", ("g_c1-0", range(4))))
                await produce(broker, "t", 4, range(2))
                await c1.read_until(8)


@pytest.mark.parametrize(
    ("settings", "recovers"),
    [pytest.param({}, False, id="default"), pytest.param({"fix_retry_when_free": "true"}, True, id="looks again")],
)
async def test_partitions_of_an_idle_member_stay_unowned(chroot, tmp_path, settings, recovers, link):
    """The slow owner of a failed start: once it reacts, it takes only its share, and the rest has no owner."""
    async with (
        running_broker(chroot, tmp_path, {"t": 4}),
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}) as c1,
    ):
        slow = link.pause_at(begins)
        async with joining(chroot, "c2", {"t": 1}, **QUICK, **settings) as (c2, join):
            await slow.reached()
            assert "t-2, t-3" in str(await failure(join))
            slow.release()
            await attempts(c1, 2)
            if recovers:
                await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
            else:
                assert await owners(session) == shared("t", ("g_c1-0", range(2)))
                assert set(outcomes(c2)) == {"conflict"}
                assert c2.consumer.assignment() == {0: frozenset()}


async def test_a_dead_owner_whose_session_outlives_all_attempts_fails_the_start(chroot, tmp_path, link):
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        joined(link.connect_string, "c1", {"t": 1}, zookeeper_session_timeout_ms="30000") as dead,
    ):
        sever(link)
        async with joining(chroot, "c2", {"t": 1}, **QUICK) as (c2, join):
            # By the registrations c2 gets one partition; the other one is the dead member's.
            assert "t-1" in str(await failure(join))
            assert await owners(session) == shared("t", ("g_c1-0", range(2)))
            # The expiry is a change of the members, so this case repairs itself.
            await lapse(chroot, dead)
            await settled(session, shared("t", ("g_c2-0", range(2))))
            assert c2.rebalances("failed") == 1
        mend(link)  # so that the dead member can be closed


async def test_a_rebalance_that_fails_while_the_member_runs_is_only_logged(chroot, tmp_path, caplog):
    with caplog.at_level(logging.INFO), ZooKeeperProxy(chroot) as link:
        async with (
            running_broker(chroot, tmp_path, {"t": 1}) as broker,
            opened(chroot) as other,
            joined(link.connect_string, "c1", {"t": 1}, **QUICK) as c1,
            polling(c1),
        ):
            claim = link.pause_at(claims)
            visitor = paths.member_id("g", "g_visitor")
            await other.create(visitor, VISITOR, ephemeral=True)
            await claim.reached()
            await other.create(paths.owner("g", "t", 0), b"g_ghost-0", ephemeral=True)
            claim.release()
            await until(lambda: c1.rebalances("failed") == 1, 10, "c1 to give up")
            await produce(broker, "t", 1, range(3))
            assert await c1.consumer.getmany(timeout_ms=100) == ()  # no exception, no records
            assert "g_c1 can't rebalance after 3 retries" in caplog.text
            assert c1.consumer.member_ids == ("g_c1",)


@pytest.mark.parametrize(
    ("look", "expected"),
    [(1, ["error", "ok"]), (2, ["ok"])],
    ids=["the cluster of R1", "the brokers of R3, where it is tolerated"],
)
async def test_broker_that_vanishes_during_the_first_read_fails_the_attempt(chroot, tmp_path, look, expected, link):
    async with running_broker(chroot, tmp_path, {"t": 1}), opened(chroot) as other:
        ghost = paths.broker(9)
        await other.create(ghost, b'{"host":"127.0.0.1","port":1,"version":1}', ephemeral=True)
        reads = []

        def is_that_look(op):
            if op.op == "getData" and op.path == ghost:
                reads.append(op)
            return len(reads) == look

        vanishing = link.pause_at(is_that_look)
        async with joining(link.connect_string, "c1", {"t": 1}, **QUICK) as (c1, join):
            await vanishing.reached()
            await other.delete(ghost)
            vanishing.release()
            await asyncio.wait_for(join, 60)
            assert outcomes(c1) == expected
            await settled(other, shared("t", ("g_c1-0", [0])))


async def test_round_robin_of_1_1_accepts_members_with_different_topics(chroot, tmp_path):
    given = {"partition_assignment_strategy": "roundrobin", "roundrobin_release": "1.1"}
    async with (
        running_broker(chroot, tmp_path, {"t": 2, "u": 2}),
        opened(chroot) as session,
        joined(chroot, "c1", {"t": 1}, **given),
        joined(chroot, "c2", {"t": 1, "u": 1}, **given),
    ):

        async def all_owned():
            found = await owners(session)
            return len(found) == 4 and {found[tp] for tp in found if tp.topic == "u"} == {"g_c2-0"}

        await until(all_owned, 10, "every partition to have an owner")


async def test_round_robin_refuses_members_with_different_topics_and_nothing_is_owned(chroot, tmp_path):
    given = QUICK | {"partition_assignment_strategy": "roundrobin"}
    async with (
        running_broker(chroot, tmp_path, {"t": 2, "u": 2}),
        opened(chroot) as session,
        joined(chroot, "c1", {"t": 1}, **given) as c1,
        joining(chroot, "c2", {"t": 1, "u": 1}, **given) as (_, join),
    ):
        assert isinstance(await failure(join), RebalanceFailed)
        await until(lambda: c1.rebalances("failed") == 1, 10, "c1 to give up as well")
        assert await owners(session) == {}
