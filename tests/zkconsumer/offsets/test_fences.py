"""fix.commit.fence: which stale commits move an offset back, which fence stops them, and what each costs."""

from __future__ import annotations

import asyncio

import pytest

from kernel.zookeeper import paths
from kernel.zookeeper.operations import SessionState
from tests.support.consumers.zookeeper import member, produce, running_broker
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, end_session, opened
from tests.zkconsumer.offsets.offset_keepers import Keeper, keeper, stored, t

EPOCH = paths.epoch("g", "t", 0)
REFUSAL = {"session": "SessionExpired", "epoch": "BadVersion"}


async def claimed(one: Keeper, offset: int) -> None:
    """Claim t-0 as a rebalance does: each owner bumps the epoch's version and remembers it."""
    await one.session.ensure_path(EPOCH)
    one.own(offset, epoch=(await one.session.set(EPOCH, b"")).version)


@pytest.mark.parametrize("fence", ["none", "session", "epoch"])
async def test_commit_interrupted_by_an_expiry_moves_the_offset_back_unless_fenced(chroot, fence):
    """The frozen member: its commit waits for a connection, and gets one in its next session."""
    with ZooKeeperProxy(chroot) as proxy:
        async with (
            keeper(proxy.connect_string, fix_commit_fence=fence) as frozen,
            keeper(chroot, fix_commit_fence=fence) as successor,
        ):
            await claimed(frozen, -1)
            frozen.move(5)
            await frozen.commit()
            frozen.move(10)
            proxy.refuse(True)
            proxy.cut()
            await become(frozen.session, SessionState.SUSPENDED)
            stale = asyncio.ensure_future(frozen.commit("auto-commit", explicit=False))
            await asyncio.to_thread(end_session, chroot, frozen.session.credentials)
            await claimed(successor, 5)
            successor.move(20)
            assert (await successor.commit()).accepted == {t(0): 20}
            proxy.refuse(False)
            outcome = await stale
            at_last = await stored(successor.session)
            if fence == "none":
                assert (outcome.accepted, at_last) == ({t(0): 10}, 10)
                assert frozen.answered()[-1] == ("zookeeper", 0, 10, "accepted")
            else:
                assert (outcome.refused, at_last) == ({t(0): REFUSAL[fence]}, 20)
                assert frozen.answered()[-1] == ("zookeeper", 0, 10, "refused")


@pytest.mark.parametrize("fence", ["none", "session", "epoch"])
async def test_disconnected_member_moves_the_offset_back_unless_fenced(chroot, tmp_path, fence):
    """The same with members: the one that was cut off commits as soon as it has a session again."""
    topics = {"t": 1}
    given = {"fix_commit_fence": fence}
    with ZooKeeperProxy(chroot) as proxy:
        async with running_broker(chroot, tmp_path, topics) as broker, opened(chroot) as other:
            await produce(broker, "t", 1, range(10))
            async with member(proxy.connect_string, "c1", topics, **given) as c1:
                await c1.read_until(10)
                proxy.refuse(True)
                proxy.cut()
                await become(c1.session, SessionState.SUSPENDED)
                stale = asyncio.ensure_future(c1.consumer.commit())
                await asyncio.to_thread(end_session, chroot, c1.session.credentials)
                await produce(broker, "t", 1, range(10, 20))
                async with member(chroot, "c2", topics, **given) as c2:
                    await c2.read_until(20)
                    assert (await c2.consumer.commit()).accepted == {t(0): 20}
                    proxy.refuse(False)
                    outcome = await stale
                    assert outcome.refused == ({} if fence == "none" else {t(0): REFUSAL[fence]})
                    assert await stored(other) == (10 if fence == "none" else 20)


@pytest.mark.parametrize(("fence", "requests"), [("none", 1), ("session", 0), ("epoch", 1)])
async def test_a_commit_called_in_the_next_session_is_stopped_by_either_fence(chroot, fence, requests):
    """Each refused commit costs a transaction (epoch) or no request (session)."""
    async with keeper(chroot, fix_commit_fence=fence) as frozen, keeper(chroot, fix_commit_fence=fence) as successor:
        await claimed(frozen, -1)
        frozen.move(5)
        await frozen.commit()
        old = frozen.session.session_id
        await asyncio.to_thread(end_session, chroot, frozen.session.credentials)
        await claimed(successor, 5)
        successor.move(20)
        await successor.commit()
        while frozen.session.session_id == old:
            await frozen.session.states.get()
        frozen.move(10)
        since = len(frozen.requests())
        outcome = await frozen.commit()
        assert outcome.refused == ({} if fence == "none" else {t(0): REFUSAL[fence]})
        assert len(frozen.requests()) - since == requests
        assert await stored(successor.session) == (10 if fence == "none" else 20)


def test_only_the_epoch_fences_against_a_second_owner_in_the_same_session(chroot):
    """The owner node of a living member was deleted by another one (R5 deletes whatever is there)."""

    async def conversation(fence: str) -> int:
        group = {"fix_commit_fence": fence}
        async with keeper(chroot, **group) as robbed, keeper(chroot, **group) as successor:
            await claimed(robbed, -1)
            await claimed(successor, -1)
            successor.move(20)
            await successor.commit()
            robbed.move(10)
            await robbed.commit()
            return await stored(successor.session)

    assert asyncio.run(conversation("session")) == 10
    assert asyncio.run(conversation("epoch")) == 20


async def test_epoch_accepts_an_owner_without_a_successor(chroot):
    async with keeper(chroot, fix_commit_fence="epoch") as one:
        await claimed(one, -1)
        old = one.session.session_id
        await asyncio.to_thread(end_session, chroot, one.session.credentials)
        while one.session.session_id == old:
            await one.session.states.get()
        one.move(10)
        assert (await one.commit()).accepted == {t(0): 10}


async def test_deleted_epoch_refuses_all_commits(chroot):
    async with keeper(chroot, fix_commit_fence="epoch") as one:
        await claimed(one, -1)
        await one.session.delete(EPOCH)
        one.move(10)
        assert (await one.commit()).refused == {t(0): "BadVersion"}


@pytest.mark.parametrize(
    ("fence", "first", "later"),
    [
        ("none", ["setData NoNode", "create NodeExists", "create ok"], ["setData ok"]),
        ("session", ["setData NoNode", "create NodeExists", "create ok"], ["setData ok"]),
        ("epoch", ["multi NoNode", "create NodeExists", "multi ok"], ["multi ok"]),
    ],
)
async def test_a_fenced_commit_costs_as_many_requests_as_one_without(chroot, fence, first, later):
    async with keeper(chroot, fix_commit_fence=fence) as one:
        await one.session.ensure_path(paths.topic_offsets("g", "t"))
        await claimed(one, -1)
        for consumed, expected in ((3, first), (4, later), (4, [])):
            one.move(consumed)
            since = len(one.requests())
            await one.commit()
            assert [f"{op} {result}" for op, _, result in map(str.split, one.requests()[since:])] == expected


async def test_node_created_meanwhile_is_overwritten_inside_the_fence(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(chroot) as other, keeper(proxy.connect_string, fix_commit_fence="epoch") as one:
            await one.session.ensure_path(paths.topic_offsets("g", "t"))
            await claimed(one, -1)
            one.move(3)
            pause = proxy.pause_at(lambda op: op.op == "create" and op.path == paths.topic_offsets("g", "t"))
            committing = asyncio.ensure_future(one.commit())
            await pause.reached()
            await other.create(paths.offset("g", "t", 0), b"99")
            pause.release()
            assert (await committing).accepted == {t(0): 3}
            assert await stored(other) == 3
