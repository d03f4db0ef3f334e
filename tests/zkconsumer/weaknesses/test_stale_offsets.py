"""Offsets older than what was consumed: read before the claim, or written by a former owner.

On the originals: 400 of 400 records were delivered twice when the joiner was held between R8 and R11, and none when it
was not; the offset of a returning member's partition moved back in 10 of 10 rounds.
"""

from __future__ import annotations

import asyncio

import pytest

from kernel.client.producer import Producer
from kernel.serials import numbered_value, serial_of
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.brokers.live import client_of
from tests.support.consumers.weak_members import (
    attempts,
    begins,
    claims,
    committed,
    has,
    joined,
    joining,
    lapse,
    mend,
    partitions,
    polling,
    sever,
)
from tests.support.consumers.zookeeper import produce, running_broker, settled, shared
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened


@pytest.mark.parametrize(
    ("settings", "twice"),
    [pytest.param({}, 80, id="default"), pytest.param({"fix_claim_before_offsets": "true"}, 0, id="claimed first")],
)
async def test_commit_between_the_joiners_read_and_claim_makes_it_start_too_early(chroot, tmp_path, settings, twice):
    with ZooKeeperProxy(chroot) as first, ZooKeeperProxy(chroot) as second:
        async with (
            running_broker(chroot, tmp_path, {"t": 4}) as broker,
            opened(chroot) as session,
            joined(first.connect_string, "c1", {"t": 1}, **settings) as c1,
        ):
            await produce(broker, "t", 4, range(40))
            await c1.read_until(160)
            holder, joiner = first.pause_at(begins), second.pause_at(claims)
            async with joining(second.connect_string, "c2", {"t": 1}, **settings) as (c2, join):
                await holder.reached()
                await joiner.reached()  # its offsets have been read or, with the fix, will be read later
                holder.release()
                await attempts(c1, 2)  # it has committed, released, and claimed its part again
                assert [await committed(session, tp) for tp in partitions("t", 2, 3)] == [40, 40]
                joiner.release()
                await asyncio.wait_for(join, 60)
                await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
                await produce(broker, "t", 4, range(40, 41))
                await c2.read_until(twice + 2)
                seen = [(tp, serial) for tp in partitions("t", 2, 3) for serial in c2.records[tp]]
                again = set(seen) & {(tp, serial) for tp, serials in c1.records.items() for serial in serials}
                assert len(again) == twice
                assert len(seen) == twice + 2


async def test_nothing_is_delivered_twice_without_a_delay_between_read_and_claim(chroot, tmp_path):
    with ZooKeeperProxy(chroot) as second:
        async with (
            running_broker(chroot, tmp_path, {"t": 4}) as broker,
            opened(chroot) as session,
            joined(chroot, "c1", {"t": 1}) as c1,
        ):
            await produce(broker, "t", 4, range(40))
            await c1.read_until(160)
            joiner = second.pause_at(begins)
            async with joining(second.connect_string, "c2", {"t": 1}) as (c2, join):
                await joiner.reached()
                await attempts(c1, 2)
                joiner.release()
                await asyncio.wait_for(join, 60)
                await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
                await produce(broker, "t", 4, range(40, 41))
                await c2.read_until(2)
                assert c2.records == {tp: [40] for tp in partitions("t", 2, 3)}


@pytest.mark.parametrize(
    ("settings", "moved_back"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"fix_commit_fence": "session"}, False, id="fenced by the session"),
        pytest.param({"fix_commit_fence": "epoch"}, False, id="fenced by an epoch node"),
    ],
)
async def test_commit_waiting_for_a_connection_is_written_in_the_new_session(
    chroot, tmp_path, settings, moved_back, link
):
    cut_off = TopicPartition("t", 0)
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "c2", {"t": 1}, **settings) as c2,
        joined(link.connect_string, "c1", {"t": 1}, zookeeper_session_timeout_ms="30000", **settings) as c1,
        polling(c1, c2),
    ):
        await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
        await produce(broker, "t", 1, range(10))
        await has(c1, cut_off, 10)
        old = c1.session.session_id
        sever(link)
        late = asyncio.create_task(c1.consumer.commit())
        await lapse(chroot, c1)
        await settled(session, shared("t", ("g_c2-0", range(2))))
        await produce(broker, "t", 1, range(10, 30))
        await has(c2, cut_off, 30)
        assert (await c2.consumer.commit()).accepted[cut_off] == 30
        assert not late.done()
        before = link.mark()
        mend(link)
        outcome = await asyncio.wait_for(late, 60)
        written = [op for op in link.operations(before) if op.path == "/consumers/g/offsets/t/0"]
        if moved_back:
            assert outcome.accepted == {cut_off: 10}
            assert [(op.op, op.data, op.result) for op in written[:1]] == [("setData", b"10", "ok")]
            assert written[0].session not in (0, old)
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
            # It went on while it was cut off; and a member that starts from the old offset delivers all of it once
            # more.
            await has(c1, cut_off, 30 + 20)
            assert c1.records[cut_off][30:] == list(range(10, 30))
        else:
            assert cut_off not in outcome.accepted
            assert cut_off in outcome.refused
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
            assert await committed(session, cut_off) == 30
            assert not [op for op in written if op.op == "setData" and op.result == "ok"]


async def test_prefetched_record_survives_the_rebalance_and_is_delivered_by_both(chroot, tmp_path):
    """The original's hasNext() takes it out of what a rebalance clears; no option prevents that."""
    taken_away = TopicPartition("t", 1)

    async def produce_one(broker, tp):
        async with client_of(broker) as client:
            producer = Producer(client)
            await producer.enqueue(tp, numbered_value(7))
            await producer.close()

    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "c1", {"t": 1}) as c1,
    ):
        await session.create(paths.offset("g", "t", 1), b"0", makepath=True)
        (stream,) = c1.consumer.streams()
        await produce_one(broker, taken_away)
        assert await stream.has_next()
        async with joined(chroot, "c2", {"t": 1}) as c2:
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
            await c2.read_until(1)
            assert c2.records == {taken_away: [7]}
            record = await asyncio.wait_for(anext(stream), 60)
            assert serial_of(record.value) == 7
