"""Options of the table on a real ZooKeeper and a real broker: all fixes at once, round robin, and hostile znodes."""

from __future__ import annotations

import asyncio
import re

import pytest

from kernel.errors import RebalanceFailed
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.consumers.zookeeper import member, new_member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened

FIXES = {
    "fix_claim_before_offsets": "true",
    "fix_checked_release": "true",
    "fix_checked_claim": "true",
    "fix_commit_fence": "epoch",
    "fix_stop_on_disconnect": "true",
    "fix_sync_before_reads": "true",
    "fix_retry_when_free": "true",
    "fix_quiet_ms": "50",
    "fix_skip_unreadable_members": "true",
}

#: What other programs may leave in the ids of a group.
HOSTILE = {
    "empty": b"",
    "null": None,
    "not-utf-8": b"\xff\xfe{}",
    "not-json": b"10.0.0.7:2181",
    "nested": b"[" * 100_000,
    "huge": b'{"pattern":"static","subscription":{"t":' + b"9" * 900_000 + b"}}",
    "no-object": b"[1]",
    "no-pattern": b'{"subscription":{"t":1}}',
    "no-streams": b'{"subscription":{"t":0},"pattern":"static"}',
    "many-streams": b'{"subscription":{"t":2147483647},"pattern":"static"}',
    "wrong-type": b'{"subscription":["t"],"pattern":"static"}',
    "bad-regex": b'{"subscription":{"*":1},"pattern":"white_list"}',
}
#: Readable registrations for topics that cannot exist.
STRANGE = {
    "strange-1": b'{"subscription":{"":1,"a/b":1,"..":1},"pattern":"static"}',
    "strange-2": b'{"subscription":{"\\ud800":1,"\\u0000":1},"pattern":"static"}',
}


async def test_with_all_fixes_together_nothing_is_lost_or_read_twice_and_each_claim_bumps_its_epoch(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 4}) as broker, opened(chroot) as session:
        await produce(broker, "t", 4, range(5))
        async with member(chroot, "c1", {"t": 1}, **FIXES) as c1:
            await session.create(paths.member_id("g", "g_stranger"), b"{}")
            await c1.read_until(20)
            async with member(chroot, "c2", {"t": 1}, **FIXES) as c2:
                await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
                await produce(broker, "t", 4, range(5, 10))
                await asyncio.gather(c1.read_until(30), c2.read_until(10))
                outcome = await c2.consumer.commit()
                assert set(outcome.accepted.values()) == {10}
                assert not outcome.refused
            await settled(session, shared("t", ("g_c1-0", range(4))))
            await produce(broker, "t", 4, range(10, 15))
            await c1.read_until(50)
            got = {tp.partition: c1.records[tp] + c2.records.get(tp, []) for tp in c1.records}
            assert {number: sorted(serials) for number, serials in got.items()} == {
                number: list(range(15)) for number in range(4)
            }
        versions = [(await session.get(paths.epoch("g", "t", number)))[1].version for number in range(4)]
        # At least two owners, and the first again; a conflict bumps nothing.
        assert all(version >= 2 for version in versions)


@pytest.mark.parametrize("release", ["0.8.2", "1.1"])
async def test_round_robin_assigns_the_partitions_of_all_topics(chroot, tmp_path, release):
    options = {"partition_assignment_strategy": "roundrobin", "roundrobin_release": release}
    async with (
        running_broker(chroot, tmp_path, {"t0": 3, "t1": 3}),
        opened(chroot) as session,
        member(chroot, "c1", {"t0": 1, "t1": 1}, **options),
        member(chroot, "c2", {"t0": 1, "t1": 1}, **options),
    ):
        # RR1 of the reference; the other release's hashes of these six happen to sort alike.
        await settled(
            session,
            {
                TopicPartition("t0", 0): "g_c1-0",
                TopicPartition("t0", 1): "g_c2-0",
                TopicPartition("t0", 2): "g_c1-0",
                TopicPartition("t1", 0): "g_c2-0",
                TopicPartition("t1", 1): "g_c1-0",
                TopicPartition("t1", 2): "g_c2-0",
            },
        )


async def test_round_robin_of_0_8_2_fails_all_members_for_one_unequal_subscription_and_1_1_does_not(chroot, tmp_path):
    def options(release: str) -> dict[str, str]:
        return {
            "partition_assignment_strategy": "roundrobin",
            "roundrobin_release": release,
            "rebalance_max_retries": "1",
            "rebalance_backoff_ms": "50",
        }

    async with running_broker(chroot, tmp_path, {"t0": 2, "t1": 1}), opened(chroot) as session:
        async with member(chroot, "c1", {"t0": 1}, **options("0.8.2")):
            late = new_member(chroot, "c2", **options("0.8.2"))
            await late.consumer.start()
            with pytest.raises(RebalanceFailed, match="the same topics and numbers of streams of every member"):
                await late.consumer.subscribe({"t0": 1, "t1": 1}, late)
            await settled(session, {})
            await late.consumer.close()
        async with (
            member(chroot, "c1", {"t0": 1}, **options("1.1") | {"rebalance_max_retries": "20"}),
            member(chroot, "c2", {"t0": 1, "t1": 1}, **options("1.1") | {"rebalance_max_retries": "20"}),
        ):
            await settled(
                session,
                {
                    TopicPartition("t0", 0): "g_c1-0",
                    TopicPartition("t0", 1): "g_c2-0",
                    TopicPartition("t1", 0): "g_c2-0",
                },
            )


async def test_hostile_ids_fail_the_attempt_by_name_and_are_skipped_on_request(chroot, tmp_path):
    quick = {"rebalance_max_retries": "1", "rebalance_backoff_ms": "0"}
    by_all = {"partition_assignment_strategy": "roundrobin", "roundrobin_release": "1.1"}
    async with running_broker(chroot, tmp_path, {"t": 2}), opened(chroot) as session:
        await session.ensure_path(paths.member_ids("g"))
        for name, data in HOSTILE.items():
            path = paths.member_id("g", name)
            await session.create(path, data)
            failing = new_member(chroot, "c1", **quick)
            await failing.consumer.start()
            with pytest.raises(RebalanceFailed, match=re.escape(path)) as raised:
                await failing.consumer.subscribe({"t": 1}, failing)
            assert len(str(raised.value)) < 500
            await failing.consumer.close()
            await session.delete(path)
        for name, data in {**HOSTILE, **STRANGE}.items():
            await session.create(paths.member_id("g", name), data)
        async with member(chroot, "c1", {"t": 1}, **quick, **by_all, fix_skip_unreadable_members="true") as c1:
            assert await owners(session) == shared("t", ("g_c1-0", range(2)))
            assert c1.rebalances() == 1
