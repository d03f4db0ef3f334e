"""Offsets in ZooKeeper: the requests of a commit, in the original's order, and when there are none."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from kernel.values import NO_OFFSET
from kernel.waiting import until
from kernel.zookeeper import errors, paths
from tests.support.consumers.zookeeper import member, produce, running_broker
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened
from tests.zkconsumer.offsets.offset_keepers import keeper, stored, t

OFFSETS = "/consumers/g/offsets"


def of_the_original(name: str, who: str) -> list[str]:
    """The requests about offsets of one member in one of the recorded sequences."""
    recorded = json.loads((Path(__file__).parents[1] / "sequences-0.8.2.2.json").read_text(encoding="utf-8"))
    return [line for line in recorded[name][who] if OFFSETS in line and not line.startswith("getData")]


async def test_first_commit_of_a_new_topic_sends_the_requests_of_the_original(chroot):
    async with keeper(chroot) as one:
        await one.session.ensure_path(paths.group("g"))
        one.own(-1, -1, -1, -1)
        one.move(0, 0, 0, 0)  # an empty topic: the reset is committed
        outcome = await one.commit("R4", explicit=False)
        assert outcome.accepted == {t(n): 0 for n in range(4)}
        made = [line for line in one.requests() if OFFSETS in line]
        assert made == of_the_original("join without conflict", "g_c1")


async def test_a_position_is_written_once_and_an_unresolved_one_never(chroot):
    async with keeper(chroot) as one:
        await one.session.ensure_path(paths.topic_offsets("g", "t"))
        one.own(-1, 5, 7)
        one.move(-1, 5, 9)
        since = len(one.requests())
        outcome = await one.commit()
        assert outcome.accepted == {t(1): 5, t(2): 9}  # ZooKeeper's offsets, whichever member wrote them
        first = [f"setData {OFFSETS}/t/2 NoNode", f"create {OFFSETS}/t NodeExists", f"create {OFFSETS}/t/2 ok"]
        assert one.requests()[since:] == first
        await one.commit()
        assert one.requests()[since:] == first
        one.move(-1, 5, 12)
        await one.commit()
        assert one.requests()[since:] == [*first, f"setData {OFFSETS}/t/2 ok"]
        assert one.answered() == [("zookeeper", 2, 9, "accepted"), ("zookeeper", 2, 12, "accepted")]
        assert one.registry.infos()[0].checkpointed == NO_OFFSET


async def test_slow_commit_writes_the_positions_at_its_start(chroot):
    """So a member that was cut off writes positions as old as the cut, like the original."""
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(chroot) as other, keeper(proxy.connect_string) as one:
            one.own(0, 0)
            one.move(1, 1)
            pause = proxy.pause_at(lambda op: op.op == "setData" and op.path == f"{OFFSETS}/t/0")
            committing = asyncio.ensure_future(one.commit())
            await pause.reached()
            one.move(5, 5)
            pause.release()
            assert (await committing).accepted == {t(0): 1, t(1): 1}
            assert (await stored(other, 0), await stored(other, 1)) == (1, 1)
            await one.commit()
            assert (await stored(other, 0), await stored(other, 1)) == (5, 5)


async def test_node_created_meanwhile_is_overwritten(chroot):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(chroot) as other, keeper(proxy.connect_string) as one:
            await other.create(paths.topic_offsets("g", "t"), None, makepath=True)
            one.own(-1)
            one.move(3)
            pause = proxy.pause_at(lambda op: op.op == "create" and op.path == f"{OFFSETS}/t/0")
            committing = asyncio.ensure_future(one.commit())
            await pause.reached()
            await other.create(f"{OFFSETS}/t/0", b"99")
            pause.release()
            await committing
            assert one.requests()[-2:] == [f"create {OFFSETS}/t/0 NodeExists", f"setData {OFFSETS}/t/0 ok"]
            assert await stored(other) == 3


async def test_commit_overwrites_another_owners_offset(chroot):
    async with opened(chroot) as other, keeper(chroot) as one:
        one.own(-1)
        one.move(3)
        await one.commit()
        await other.set(f"{OFFSETS}/t/0", b"99")
        one.move(4)
        await one.commit()
        assert await stored(other) == 4  # setData with any version: there is no fence


async def test_concurrent_commits_write_a_position_once(chroot):
    async with keeper(chroot) as one:
        one.own(5)
        one.move(6)
        both = await asyncio.gather(one.commit(), one.commit("auto-commit", explicit=False))
        assert [outcome.accepted for outcome in both] == [{t(0): 6}, {t(0): 6}]
        assert one.answered() == [("zookeeper", 0, 6, "accepted")]


async def test_refused_commit_raises_and_keeps_earlier_writes(chroot):
    async with opened(chroot) as other, keeper(chroot) as one:
        await other.create(f"{OFFSETS}/a/0", makepath=True)
        await other.create(f"{OFFSETS}/t", ephemeral=True)  # an ephemeral node cannot have children
        one.own(1, topic="a")
        one.own(1)
        one.move(2, 2)
        with pytest.raises(errors.NoChildrenForEphemerals):
            await one.commit()
        assert one.answered() == [("zookeeper", 0, 2, "accepted"), ("zookeeper", 0, 2, "unknown")]
        await other.delete(f"{OFFSETS}/t")
        await one.commit()
        assert one.answered()[2:] == [("zookeeper", 0, 2, "accepted")]


async def test_failed_commit_of_the_timer_is_only_logged(chroot, tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as other:
        await produce(broker, "t", 1, range(10))
        await other.ensure_path(paths.group("g"))
        await other.create(OFFSETS, ephemeral=True)
        async with member(chroot, "c1", {"t": 1}, auto_commit_interval_ms="100") as c1:
            await c1.read_until(10)
            await until(lambda: "automatic commit failed" in caplog.text, 60, "the timer's commit to fail")
            await other.delete(OFFSETS)

            async def committed() -> bool:
                return await other.exists(f"{OFFSETS}/t/0") is not None

            await until(committed, 60, "the timer to commit after all")
            assert await stored(other) == 10


@pytest.mark.parametrize(("reset", "start"), [("smallest", 0), ("largest", 10)])
@pytest.mark.parametrize("committed", [None, 99])
async def test_a_reset_sets_both_positions_and_is_committed(chroot, tmp_path, reset, start, committed):
    """Both without an offset and with one that is out of range."""
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as other:
        await produce(broker, "t", 1, range(10))
        if committed is not None:
            await other.create(f"{OFFSETS}/t/0", b"%d" % committed, makepath=True)
        async with member(chroot, "c1", {"t": 1}, auto_offset_reset=reset) as c1:
            await until(lambda: c1.tracer.of("position_reset"), 60, "the reset")
            (event,) = c1.tracer.of("position_reset")
            assert (event["offset"], event["reset"]) == (start, reset)
            assert c1.consumer.position(t(0)) == start  # the consumed position, before anything is delivered
            assert (await c1.consumer.commit()).accepted == {t(0): start}
            assert await stored(other) == start
            if reset == "smallest":  # fetching starts there as well
                await c1.read_until(10)
                assert c1.records[t(0)] == list(range(10))


async def test_shutdown_does_not_interrupt_the_timers_last_commit(chroot, tmp_path):
    with ZooKeeperProxy(chroot) as proxy:
        async with running_broker(chroot, tmp_path, {"t": 1}) as broker, opened(chroot) as other:
            await produce(broker, "t", 1, range(10))
            await other.ensure_path(f"{OFFSETS}/t/0")
            await other.set(f"{OFFSETS}/t/0", b"0")  # so the timer has no reset to commit
            pause = proxy.pause_at(lambda op: op.op == "setData" and op.path == f"{OFFSETS}/t/0")
            async with member(proxy.connect_string, "c1", {"t": 1}, auto_commit_interval_ms="200") as c1:
                await c1.read_until(10)
                await pause.reached()
                closing = asyncio.ensure_future(c1.consumer.close())
                await until(lambda: not any(c1.consumer.assignment().values()), 60, "the shutdown to begin")
                pause.release()
                await closing
            written = [op for op in proxy.operations() if op.path == f"{OFFSETS}/t/0" and op.op != "getData"]
            # By the timer; the shutdown does not commit again.
            assert [(op.op, op.data) for op in written] == [("setData", b"10")]
