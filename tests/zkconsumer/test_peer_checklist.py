"""Cases of the peers' test suites that no other module has: Kafka 0.8.2, pykafka, wvanbergen/kafka, kazoo.

`docs/peer-test-checklist.md` has all of them, with the test here that covers each, or the reason why none does.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from kernel.errors import ConfigurationError, StreamsExist
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.brokers.live import client_of, create_topics, running_cluster
from tests.support.consumers.weak_members import (
    claims,
    fetches,
    joined,
    joining,
    mend,
    outcomes,
    partitions,
    polling,
    sever,
)
from tests.support.consumers.zookeeper import member, new_member, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import expire, opened


async def test_owners_follow_joins_and_a_member_without_topics_changes_nothing(chroot, tmp_path):
    """ZookeeperConsumerConnectorTest.testBasic."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "c0", {"t": 1}) as c0,
    ):
        assert await c0.consumer.getmany(timeout_ms=20) == ()  # there are no records, and the next call works as well
        assert await c0.consumer.getmany(timeout_ms=20) == ()
        await settled(session, shared("t", ("g_c0-0", range(2))))
        await produce(broker, "t", 2, range(3))
        await c0.read_until(6)
        await c0.consumer.commit()  # or c1 may read the offset before c0 commits it
        async with joined(chroot, "c1", {"t": 1}) as c1:
            both = shared("t", ("g_c0-0", [0]), ("g_c1-0", [1]))
            await settled(session, both)
            await produce(broker, "t", 2, range(3, 6))
            await asyncio.gather(c0.read_until(9), c1.read_until(3))
            assert c1.records == {TopicPartition("t", 1): [3, 4, 5]}
            async with member(chroot, "c2", {}) as c2:
                await until(lambda: c1.rebalances() >= 2, 60, "c1 to see c2")
                await settled(session, both)
                await produce(broker, "t", 2, range(6, 9))
                await asyncio.gather(c0.read_until(12), c1.read_until(6))
                assert await c2.consumer.getmany(timeout_ms=20) == ()
                with pytest.raises(StreamsExist):
                    await c2.consumer.subscribe({"t": 1}, c2)


async def test_each_partition_is_fetched_from_its_leader(chroot, tmp_path):
    """testLeaderSelectionForPartition."""
    async with running_cluster(2, chroot, tmp_path) as brokers:
        await create_topics(brokers[0], {"t": 4})
        async with client_of(brokers[0]) as client, joined(chroot, "c0", {"t": 1}) as c0:
            every = partitions("t", 0, 1, 2, 3)
            await client.refresh(["t"])
            leaders = {tp: client.leader_of(tp) for tp in every}
            assert set(leaders.values()) == {1, 2}
            await produce(brokers[0], "t", 4, range(3))
            await c0.read_until(12)
            assert c0.records == {tp: [0, 1, 2] for tp in every}
            fetches_of = [e["broker"] for e in c0.tracer.of("request_answered") if e["api"] == "Fetch"]
            assert set(fetches_of) == {1, 2}


async def test_registration_whose_response_was_lost_is_our_own(chroot, tmp_path, link):
    """ZKEphemeralTest.testSameSession: the node exists, and this session has created it."""
    async with running_broker(chroot, tmp_path, {"t": 1}), opened(chroot) as session:
        await session.create(paths.member_ids("g"), makepath=True)
        lost = link.pause_at(lambda op: op.path == paths.member_id("g", "g_c0") and op.ephemeral, at_reply=True)
        async with joining(link.connect_string, "c0", {"t": 1}) as (c0, join):
            await lost.reached()
            sever(link)
            mend(link)
            await asyncio.wait_for(join, 60)
            await settled(session, shared("t", ("g_c0-0", [0])))
            tries = [op for op in c0.operations() if op[2] == paths.member_id("g", "g_c0")]
            assert ("register", "getData", paths.member_id("g", "g_c0")) in tries
            assert outcomes(c0) == ["ok"]


def test_a_group_id_in_unicode_is_refused(chroot):
    """pykafka's test_unicode_consumer_group allows it; Kafka's validateGroupId, which we follow, does not."""
    with pytest.raises(ConfigurationError, match=r"group\.id.*letters, digits"):
        new_member(chroot, "c0", group="γκρουπ")


async def test_waiting_poll_ends_with_the_consumer(chroot, tmp_path):
    """pykafka's test_consume_graceful_stop."""
    async with running_broker(chroot, tmp_path, {"t": 1}), joined(chroot, "c0", {"t": 1}) as c0:
        waiting = asyncio.create_task(c0.consumer.getmany(timeout_ms=600_000))
        await until(lambda: c0.consumer._filled._waiters, 60, "the poll to wait")
        await c0.consumer.close()
        assert await asyncio.wait_for(waiting, 60) == ()


async def test_long_poll_does_not_delay_a_rebalance(chroot, tmp_path):
    """pykafka's test_a_rebalance_unblock_event and #701: there a consume() that waited held the rebalance lock."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "c0", {"t": 1}) as c0,
    ):
        waiting = asyncio.create_task(c0.consumer.getmany(timeout_ms=600_000))
        await until(lambda: c0.consumer._filled._waiters, 60, "the poll to wait")
        async with joined(chroot, "c1", {"t": 1}):
            await settled(session, shared("t", ("g_c0-0", [0]), ("g_c1-0", [1])))
            await produce(broker, "t", 1, range(1))
            (batch,) = await asyncio.wait_for(waiting, 60)
            assert batch.topic_partition == TopicPartition("t", 0)


async def test_extra_member_has_no_partition_until_one_leaves(chroot, tmp_path):
    """pykafka's test_extra_consumer, kazoo's test_more_members_than_set_items."""
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        joined(chroot, "c0", {"t": 1}),
        AsyncExitStack() as leaving,
    ):
        await leaving.enter_async_context(joined(chroot, "c1", {"t": 1}))
        async with member(chroot, "c2", {"t": 1}) as extra:
            await settled(session, shared("t", ("g_c0-0", [0]), ("g_c1-0", [1])))
            assert extra.consumer.assignment() == {0: frozenset()}
            await leaving.aclose()
            await settled(session, shared("t", ("g_c0-0", [0]), ("g_c2-0", [1])))
            await fetches(extra)


async def test_missing_topic_has_no_partitions_and_is_assigned_once_created(chroot, tmp_path):
    """pykafka's test_no_partitions."""
    async with (
        running_broker(chroot, tmp_path, {}) as broker,
        opened(chroot) as session,
        member(chroot, "c0", {"t": 1}) as c0,
    ):
        assert outcomes(c0) == ["ok"]
        assert c0.consumer.assignment() == {0: frozenset()}
        await broker.cluster.create_topic("t", partitions=2, replication_factor=1)
        await settled(session, shared("t", ("g_c0-0", range(2))))


async def test_one_member_consumes_several_topics(chroot, tmp_path):
    """wvanbergen's TestIntegrationMultipleTopicsSingleConsumer, with other numbers of streams."""
    topics = {"a": 1, "b": 2, "c": 3}
    async with running_broker(chroot, tmp_path, dict.fromkeys(topics, 2)) as broker, joined(chroot, "c0", topics) as c0:
        for topic in topics:
            await produce(broker, topic, 2, range(5))
        await c0.read_until(30)
        assert c0.records == {tp: list(range(5)) for topic in topics for tp in partitions(topic, 0, 1)}


async def test_member_joins_while_another_one_claims(chroot, tmp_path, link):
    """kazoo's test_race_condition_new_partitioner_during_the_lock and .._steals_the_lock."""
    async with running_broker(chroot, tmp_path, {"t": 4}) as broker, opened(chroot) as session:
        seen = []

        def second_claim(op):
            if claims(op):
                seen.append(op)
            return len({op.path for op in seen}) == 2

        between = link.pause_at(second_claim)
        async with joining(link.connect_string, "c0", {"t": 1}) as (c0, first):
            await between.reached()
            async with joining(chroot, "c1", {"t": 1}) as (c1, second):
                await until(lambda: c1.consumer.member_ids, 60, "c1 to be registered")
                between.release()
                await asyncio.wait_for(asyncio.gather(first, second), 15)
                await settled(session, shared("t", ("g_c0-0", range(2)), ("g_c1-0", range(2, 4))))
                async with polling(c0, c1):
                    await produce(broker, "t", 4, range(3))
                    await until(
                        lambda: sum(len(got) for who in (c0, c1) for got in who.records.values()) == 12,
                        60,
                        "every record once",
                    )


async def test_a_topics_growth_after_an_expiry_is_noticed(chroot, tmp_path):
    """kazoo's test_datawatch_across_session_expire."""
    async with (
        running_broker(chroot, tmp_path, {"t": 1}) as broker,
        opened(chroot) as session,
        joined(chroot, "c0", {"t": 1}) as c0,
    ):
        await expire(c0.session)
        await until(lambda: len(outcomes(c0, "ok")) >= 2, 60, "c0 to return")
        await broker.cluster.grow_topic("t", partitions=3)
        await settled(session, shared("t", ("g_c0-0", range(3))))


async def test_listener_of_1_1_is_notified_before_the_release_and_before_the_start(chroot, tmp_path):
    """testConsumerRebalanceListener (0.9 and later): also for an empty assignment, before the first claim."""
    given = {"rebalance_listener_in_attempt": "true"}
    both, first = frozenset(partitions("t", 0, 1)), frozenset(partitions("t", 0))
    async with (
        running_broker(chroot, tmp_path, {"t": 2}),
        opened(chroot) as session,
        joined(chroot, "c0", {"t": 1}, **given) as c0,
    ):
        assert c0.calls == [("revoked", 0, frozenset()), ("assigned", 0, both)]
        async with joined(chroot, "c1", {"t": 1}, **given) as c1:
            await settled(session, shared("t", ("g_c0-0", [0]), ("g_c1-0", [1])))
            assert c0.calls[2:4] == [("revoked", 0, both), ("assigned", 0, first)]
            assert c1.calls[-1] == ("assigned", 0, frozenset(partitions("t", 1)))
