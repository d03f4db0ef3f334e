"""The ZooKeeper consumer on a real ZooKeeper and our broker: joins, leaves, crashes, expiries, bad znodes."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack

import pytest

from kernel.consumer import SilentListener
from kernel.errors import RebalanceFailed, StreamsExist, Unavailable, UserError
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.errors import NoNode, SessionFailed
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.servers import Limits
from tests.support.consumers.weak_members import VISITOR
from tests.support.consumers.zookeeper import (
    SETTINGS,
    Member,
    member,
    new_member,
    owners,
    produce,
    running_broker,
    settled,
    shared,
    wait_for_id,
)
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import expire, fail, opened
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig


def serials(*members: Member) -> list[tuple[str, int]]:
    """(partition, serial) of everything that was delivered."""
    return sorted((str(tp), s) for who in members for tp, got in who.records.items() for s in got)


def every(partitions: int, count: int) -> list[tuple[str, int]]:
    return sorted((f"t-{p}", s) for p in range(partitions) for s in range(count))


async def test_partitions_are_shared_by_threads_and_nothing_is_lost_or_repeated_over_join_and_leave(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 5}) as broker, opened(chroot) as session:
        await produce(broker, "t", 5, range(20))
        async with member(chroot, "c1", {"t": 2}) as c1:
            await c1.read_until(100)
            await c1.consumer.commit()  # or c2 may read the offset before c1 commits it
            async with member(chroot, "c2", {"t": 2}) as c2:
                threads = ("g_c1-0", range(2)), ("g_c1-1", [2]), ("g_c2-0", [3]), ("g_c2-1", [4])
                await settled(session, shared("t", *threads))
                assert c2.consumer.assignment() == {
                    0: frozenset({TopicPartition("t", 3)}),
                    1: frozenset({TopicPartition("t", 4)}),
                }
                await produce(broker, "t", 5, range(20, 40))
                await asyncio.gather(c1.read_until(160), c2.read_until(40))
            await settled(session, shared("t", ("g_c1-0", range(3)), ("g_c1-1", range(3, 5))))
            await produce(broker, "t", 5, range(40, 60))
            await c1.read_until(260)
            assert serials(c1, c2) == every(5, 60)
            assert c1.calls[:4] == [
                ("assigned", 0, frozenset(TopicPartition("t", p) for p in range(3))),
                ("assigned", 1, frozenset(TopicPartition("t", p) for p in range(3, 5))),
                ("revoked", 0, frozenset(TopicPartition("t", p) for p in range(3))),
                ("revoked", 1, frozenset(TopicPartition("t", p) for p in range(3, 5))),
            ]
            assert c1.consumer.position(TopicPartition("t", 0)) == 60
            assert c2.consumer.position(TopicPartition("t", 0)) is None


async def test_uncommitted_records_of_a_crashed_member_are_delivered_again_and_none_is_lost(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker, opened(chroot) as session:
        await produce(broker, "t", 2, range(10))
        async with member(chroot, "c1", {"t": 1}) as c1, member(chroot, "c2", {"t": 1}) as c2:
            await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
            await asyncio.gather(c1.read_until(10), c2.read_until(10))
            outcome = await c1.consumer.commit()
            assert outcome.accepted == {TopicPartition("t", 0): 10}
            await c2.session.close()  # as abrupt as a kill: nothing is committed, all its nodes disappear at once
            await settled(session, shared("t", ("g_c1-0", range(2))))
            await c1.read_until(20)
        assert serials(c1) == every(2, 10)
        assert serials(c2) == [("t-1", s) for s in range(10)]


async def test_an_expired_session_returns_under_the_same_id_without_releasing_anything(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 4}) as broker, opened(chroot) as session:
        await produce(broker, "t", 4, range(5))
        async with member(chroot, "c1", {"t": 1}) as c1, member(chroot, "c2", {"t": 1}) as c2:
            both = shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4)))
            await settled(session, both)
            await until(lambda: c2.rebalances() >= 1, 60, "c2's first rebalance")
            await c2.read_until(10)
            before, old = len(c2.tracer.events), c2.session.session_id
            await expire(c2.session)
            await until(lambda: c2.rebalances() >= 3, 60, lambda: f"two rebalances of c2: {c2.tracer.events}")
            await settled(session, both)
            assert c2.session.session_id != old
            events = c2.tracer.events[before:]
            started = [e["trigger"] for e in events if e["kind"] == "rebalance_started"]
            assert started[0] == "session"
            assert 2 <= len(started) <= 3  # up to 2 + T; notifications of T and of the ids may merge
            first = next(i for i, e in enumerate(events) if e["kind"] == "rebalance_ended")
            assert not [e for e in events[:first] if e["kind"] == "zk_op" and e["step"] == "R5"]

            async def owns_again() -> bool:
                with contextlib.suppress(NoNode):  # in a third rebalance
                    data, stat = await session.get(paths.owner("g", "t", 3))
                    return (data, stat.ephemeral_owner) == (b"g_c2-0", c2.session.session_id)
                return False

            await until(owns_again, 60, "c2 to own t-3 in its new session")
            # Nothing had been committed: all of it is delivered again, to the current owners.
            await c2.read_until(20)
            await c1.read_until(10)


async def test_claim_that_is_never_released_fails_the_start_and_the_next_change_recovers(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}), opened(chroot) as ghost:
        await ghost.create(paths.owner("g", "t", 1), b"g_ghost-0", ephemeral=True, makepath=True)
        config, _ = ZkConsumerConfig.from_settings(
            {**SETTINGS, "zookeeper.connect": chroot, "group.id": "g", "consumer.id": "c1",
             "rebalance.max.retries": "2", "rebalance.backoff.ms": "50"}
        )  # fmt: skip
        consumer = ZooKeeperConsumer(config, tracer=SilentTracer(), process="c1")
        await consumer.start()
        try:
            with pytest.raises(RebalanceFailed, match=r"g_c1 can't rebalance after 2 retries.*t-1"):
                await consumer.subscribe({"t": 1})
            assert await ghost.exists(paths.member_id("g", "g_c1")) is not None
            assert await owners(ghost) == {TopicPartition("t", 1): "g_ghost-0"}
            assert consumer.assignment() == {0: frozenset()}
            await ghost.delete(paths.owner("g", "t", 1))
            assert await owners(ghost) == {}  # no member watches owner nodes
            await ghost.create(paths.member_id("g", "g_other"), VISITOR)
            await settled(ghost, shared("t", ("g_c1-0", range(2))))
        finally:
            await consumer.close()


@pytest.mark.parametrize(
    ("path", "data", "complaint"),
    [
        (paths.member_id("g", "g_broken"), b"nonsense", "/consumers/g/ids/g_broken: not JSON"),
        (paths.member_id("g", "g_broken"), b"", "/consumers/g/ids/g_broken: not JSON"),
        (
            paths.offset("g", "t", 0),
            b"many",
            "/consumers/g/offsets/t/0: an offset must be a 64-bit decimal number",
        ),
        (paths.broker(99), b'{"host":1}', "/brokers/ids/99: a broker needs"),
    ],
)
async def test_an_unreadable_znode_fails_the_rebalance_and_is_named(chroot, tmp_path, path, data, complaint):
    async with running_broker(chroot, tmp_path, {"t": 1}), opened(chroot) as session:
        await session.create(path, data, makepath=True)
        with pytest.raises(RebalanceFailed, match=complaint):
            async with member(chroot, "c1", {"t": 1}, rebalance_max_retries="1", rebalance_backoff_ms="1"):
                pass


async def test_a_listener_that_raises_reaches_the_application_and_the_member_can_still_be_closed(chroot, tmp_path):
    class Raising(SilentListener):
        async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            raise ValueError("the application's own mistake")

    async with running_broker(chroot, tmp_path, {"t": 1}), opened(chroot) as session:
        config, _ = ZkConsumerConfig.from_settings({**SETTINGS, "zookeeper.connect": chroot, "group.id": "g"})
        tracer = ListTracer()
        consumer = ZooKeeperConsumer(config, tracer=tracer, process="p")
        await consumer.start()
        with pytest.raises(ValueError, match="own mistake"):
            await consumer.subscribe({"t": 1}, Raising())
        with pytest.raises(ValueError, match="own mistake"):
            await consumer.getmany(timeout_ms=1)
        await consumer.close()
        assert [e["kind"] for e in tracer.of("partitions_assigned", "partitions_revoked", "member_closed")] == [
            "partitions_assigned",
            "partitions_revoked",
            "member_closed",
        ]
        assert await owners(session) == {}


async def test_a_session_that_fails_by_a_bug_ends_the_member_and_every_poll_says_so(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 1}) as broker, member(chroot, "c1", {"t": 1}) as c1:
        await produce(broker, "t", 1, range(3))
        await c1.read_until(3)
        await fail(c1.session)
        await until(lambda: c1.session.state is SessionState.CLOSED, 60, "the member to close")
        await produce(broker, "t", 1, range(3, 6))
        for _ in range(2):
            with pytest.raises(SessionFailed, match="ZeroDivisionError: a bug"):
                await c1.read()
        assert serials(c1) == every(1, 3)
        assert "ZeroDivisionError: a bug" in c1.tracer.of("member_failed")[0]["error"]


async def test_a_broker_that_comes_back_elsewhere_is_found_without_a_rebalance(chroot, tmp_path):
    async with opened(chroot) as session, AsyncExitStack() as leaving:
        async with running_broker(chroot, tmp_path, {"t": 2}) as broker:
            await produce(broker, "t", 2, range(5))
            c1 = await leaving.enter_async_context(member(chroot, "c1", {"t": 1}, num_consumer_fetchers="2"))
            await c1.read_until(10)
        async with running_broker(chroot, tmp_path, {}) as broker:
            await produce(broker, "t", 2, range(5, 10))
            await c1.read_until(20)
            assert c1.rebalances() == 1
            assert serials(c1) == every(2, 10)
            await settled(session, shared("t", ("g_c1-0", range(2))))


async def test_without_a_broker_a_member_waits_and_starts_when_one_comes(chroot, tmp_path):
    async with opened(chroot) as session, member(chroot, "c1", {"t": 1}) as c1:
        reads = [op for _, op, _ in c1.operations() if op in ("exists", "getData", "getChildren")]
        assert len(reads) == 8
        assert await owners(session) == {}
        async with running_broker(chroot, tmp_path, {"t": 2}) as broker:
            await settled(session, shared("t", ("g_c1-0", range(2))))
            await produce(broker, "t", 2, range(3))
            await c1.read_until(6)


async def test_a_second_member_of_the_same_id_waits_until_the_first_is_gone(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 1}), opened(chroot) as session:
        async with member(chroot, "c1", {"t": 1}) as first:
            second = new_member(chroot, "c1")
            await second.consumer.start()
            wait_for_id(second, 500)
            joining = asyncio.create_task(second.consumer.subscribe({"t": 1}))
            # It tries, reads the node twice and sleeps, more than once.
            await until(lambda: [op for _, op, _ in second.operations()].count("create") >= 3, 60, "a few attempts")
            assert not joining.done()
            assert second.consumer.member_ids == ()
            assert (await session.exists(paths.member_id("g", "g_c1"))).ephemeral_owner == first.session.session_id
        await asyncio.wait_for(joining, 60)
        await settled(session, shared("t", ("g_c1-0", [0])))
        await second.consumer.close()


async def test_positions_start_where_auto_offset_reset_says_and_out_of_range_is_reset_too(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker, opened(chroot) as session:
        await produce(broker, "t", 2, range(5))
        await session.create(paths.offset("g", "t", 1), b"9999", makepath=True)
        async with member(chroot, "c1", {"t": 1}, auto_offset_reset="largest") as c1:
            await until(lambda: len(c1.tracer.of("position_reset")) == 2, 60, "both positions to be reset")
            await produce(broker, "t", 2, range(5, 8))
            await c1.read_until(6)
        assert serials(c1) == sorted((f"t-{p}", s) for p in range(2) for s in range(5, 8))
        assert (await session.get(paths.offset("g", "t", 1)))[0] == b"8"
        async with member(chroot, "c2", {"t": 1}, auto_offset_reset="smallest") as c2:
            assert await c2.read(timeout_ms=200) == 0  # both are committed by now
        async with member(chroot, "c3", {"t": 1}, group="fresh") as c3:
            await c3.read_until(16)
        assert serials(c3) == every(2, 8)


async def test_auto_commit_writes_what_changed_and_nothing_else(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker, opened(chroot) as session:
        await produce(broker, "t", 1, range(3))
        async with member(chroot, "c1", {"t": 1}, auto_commit_interval_ms="50") as c1:
            await c1.read_until(3)

            async def committed() -> bool:
                path = paths.offset("g", "t", 0)
                return await session.exists(path) is not None and (await session.get(path))[0] == b"3"

            await until(committed, 60, "the timer's commit")
            await until(
                lambda: {(e["partition"], e["offset"]) for e in c1.tracer.of("commit_answered")} >= {(0, 3), (1, 0)},
                60,
                "the reset's commit",
            )
            count = len(c1.tracer.of("commit_answered"))
            await c1.read(timeout_ms=200)
            assert len(c1.tracer.of("commit_answered")) == count


async def test_unread_stream_blocks_its_fetcher_but_no_rebalance(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": 2}) as broker, opened(chroot) as session:
        async with member(chroot, "c1", {"t": 1}, fetch_message_max_bytes="100") as c1:
            for first in range(5):  # five batches per partition: five chunks, of which the queue holds two
                await produce(broker, "t", 2, range(first, first + 1))
            stream = c1.consumer._streams[0]
            await until(stream._chunks.full, 60, "the queue to fill")
            async with member(chroot, "c2", {"t": 1}) as c2:
                await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
                await asyncio.gather(c1.read_until(5), c2.read_until(5))
        assert serials(c1, c2) == every(2, 5)


def test_an_unreachable_zookeeper_stops_neither_delivery_nor_a_close(tmp_path):
    """Fetchers are not notified of SUSPENDED; a close without a response ends after a session timeout."""
    with EmbeddedZooKeeper(tmp_path / "zookeeper", limits=Limits(tick_ms=100)) as zookeeper:

        async def story():
            async with (
                running_broker(zookeeper.connect_string, tmp_path / "broker", {"t": 1}) as broker,
                member(zookeeper.connect_string, "c1", {"t": 1}) as c1,
            ):
                await produce(broker, "t", 1, range(3))
                await c1.read_until(3)
                await asyncio.to_thread(zookeeper.servers[0].kill)
                await until(lambda: not c1.session.connected, 60, "the connection to break")
                await produce(broker, "t", 1, range(3, 6))
                await c1.read_until(6)
                wait_for_id(c1, 1000)  # the close waits for a session timeout by the same setting
                await asyncio.wait_for(c1.consumer.close(), 60)

        asyncio.run(story())


async def test_misuse_is_refused_with_a_reason(chroot, unused_port):
    config, _ = ZkConsumerConfig.from_settings({**SETTINGS, "zookeeper.connect": chroot, "group.id": "g"})
    consumer = ZooKeeperConsumer(config, tracer=SilentTracer(), process="p")
    with pytest.raises(UserError, match="not started"):
        await consumer.subscribe({"t": 1})
    with pytest.raises(UserError, match="not started"):
        await consumer.commit()
    await consumer.start()
    with pytest.raises(UserError, match="at least one stream"):
        await consumer.subscribe({"t": 0})
    await consumer.subscribe({})
    assert consumer.member_ids[0].startswith("g_")
    with pytest.raises(StreamsExist):
        await consumer.subscribe({"t": 1})
    with pytest.raises(UserError, match="without offsets"):
        await consumer.commit({TopicPartition("t", 0): 1})
    assert not await consumer.getmany(timeout_ms=1)
    await consumer.close()
    await consumer.close()
    assert await consumer.getmany(timeout_ms=10_000) == ()

    lost, _ = ZkConsumerConfig.from_settings(
        {"zookeeper.connect": f"127.0.0.1:{unused_port}", "group.id": "g", "zookeeper.connection.timeout.ms": "300"}
    )
    consumer = ZooKeeperConsumer(lost, tracer=SilentTracer(), process="p")
    with pytest.raises(Unavailable, match="no ZooKeeper"):
        await consumer.start()
    await consumer.close()
