"""Subscriptions on a real ZooKeeper: several topics, patterns, and topics that are created, deleted and grown."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from kernel.errors import RebalanceFailed, StreamsExist, UserError
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.weak_members import VISITOR
from tests.support.consumers.wildcards import (
    add_broker,
    add_topic,
    operations,
    reads_of_rebalances,
    rebalanced,
    wildcard,
)
from tests.support.consumers.zookeeper import member, new_member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import expire, opened
from zkconsumer.znodes.filters import TopicFilter

OFFSETS = "__consumer_offsets"


async def test_streams_of_a_pattern_consume_current_and_later_matches(chroot, tmp_path):
    async with (
        running_broker(chroot, tmp_path, {"t": 2, "u": 2, "other": 1}) as broker,
        opened(chroot) as session,
        wildcard(chroot, "w", TopicFilter.white('"t|u, v"'), 2) as w,
    ):
        both = {**shared("t", ("g_w-0", [0]), ("g_w-1", [1])), **shared("u", ("g_w-0", [0]), ("g_w-1", [1]))}
        await settled(session, both)
        registered = json.loads((await session.get(paths.member_id("g", "g_w")))[0])
        assert (registered["pattern"], registered["subscription"]) == ("white_list", {"t|u|v": 2})
        assert w.consumer.assignment() == {
            stream: frozenset({TopicPartition("t", stream), TopicPartition("u", stream)}) for stream in (0, 1)
        }
        await produce(broker, "t", 2, range(3))
        await produce(broker, "u", 2, range(3))
        await w.read_until(12)
        await broker.cluster.create_topic("v", partitions=2, replication_factor=1)
        await settled(session, {**both, **shared("v", ("g_w-0", [0]), ("g_w-1", [1]))})
        await until(lambda: len(w.tracer.of("position_started")) >= 10, 60, "all six to be fetched again")
        await produce(broker, "v", 2, range(3))
        await w.read_until(18)
        assert {(str(tp), tuple(got)) for tp, got in w.records.items()} == {
            (f"{topic}-{p}", (0, 1, 2)) for topic in ("t", "u", "v") for p in (0, 1)
        }
        await broker.cluster.grow_topic("v", partitions=3)
        await settled(session, {**both, **shared("v", ("g_w-0", range(2)), ("g_w-1", [2]))})


async def test_blacklist_excludes_its_matches_and_internal_topics(chroot):
    async with opened(chroot) as session, AsyncExitStack() as leaving:
        await add_broker(session)
        for topic in ("a", "b", OFFSETS):
            await add_topic(session, topic, 1)
        black = TopicFilter.black("a")
        await leaving.enter_async_context(wildcard(chroot, "c1", black))
        assert set(await owners(session)) == {TopicPartition("b", 0)}
        settings = {"exclude_internal_topics": "false"}
        await leaving.enter_async_context(wildcard(chroot, "c2", black, group="all", **settings))
        assert set(await owners(session, "all")) == {TopicPartition("b", 0), TopicPartition(OFFSETS, 0)}


async def test_deleted_topic_is_released_and_its_streams_and_watch_stay(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "t", 1)
        await add_topic(session, "u", 2)
        async with wildcard(chroot, "w", TopicFilter.white(".*")) as w:
            await rebalanced(w, 1)
            await session.delete(paths.topic("u"))
            await settled(session, shared("t", ("g_w-0", [0])))
            await until(lambda: "subscribe exists /brokers/topics/u" in operations(w)[-40:], 60, "u to be watched")
            await add_topic(session, "u", 2)
            await settled(session, {**shared("t", ("g_w-0", [0])), **shared("u", ("g_w-0", range(2)))})


async def test_pattern_without_matches_waits_for_topics_and_its_streams_end_with_it(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        async with wildcard(chroot, "w", TopicFilter.white("t.*"), 2) as w:
            assert (await session.get(paths.BROKER_TOPICS))[0] == b""
            made = [(e["op"], e["path"]) for e in w.tracer.of("zk_op") if e["op"] == "create" and e["ok"]]
            assert made[-1] == ("create", "/brokers/topics")
            assert w.consumer.assignment() == {0: frozenset(), 1: frozenset()}
            await add_topic(session, "other", 1)
            await until(lambda: operations(w)[-1].startswith("delivery"), 60, "the lookup of the topics")
            assert w.rebalances() == 1
            idle = [asyncio.ensure_future(anext(stream, None)) for stream in w.consumer.streams()]
            await w.consumer.close()
            assert await asyncio.wait_for(asyncio.gather(*idle), 60) == [None, None]
        async with wildcard(chroot, "w2", TopicFilter.white("t.*")):
            await add_topic(session, "t1", 1)
            await settled(session, shared("t1", ("g_w2-0", [0])))


async def test_wildcard_and_static_members_share_a_topic_by_one_rule(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "t", 4)
        await add_topic(session, "u", 2)
        async with (
            wildcard(chroot, "c1", TopicFilter.white("t|u"), 2),
            wildcard(chroot, "c2", TopicFilter.black("u")),
            member(chroot, "c3", {"t": 1}),
        ):
            t = shared("t", ("g_c1-0", [0]), ("g_c1-1", [1]), ("g_c2-0", [2]), ("g_c3-0", [3]))
            await settled(session, {**t, **shared("u", ("g_c1-0", [0]), ("g_c1-1", [1]))})


async def test_wildcard_joiner_and_new_topic_cost_the_same_as_in_the_original(chroot):
    """N members with a pattern: N + 2 more reads per attempt, 6 more per joiner; a new topic: N notifications, and each
    member reads r + (N + 2) + 6 + T'. B = 1; the leader finder's reads are left out of r and of the count.
    """
    members = 2
    async with opened(chroot) as session, AsyncExitStack() as leaving:
        await session.ensure_path("/consumers")
        await add_broker(session)
        await add_topic(session, "t", 4)
        white = TopicFilter.white("t|u|v")
        c1 = await leaving.enter_async_context(wildcard(chroot, "c1", white))
        c2 = await leaving.enter_async_context(wildcard(chroot, "c2", white))
        await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))))
        await rebalanced(c1, 2)
        attempts = len(c2.tracer.of("attempt_ended"))
        own = len([line for line in operations(c2) if line.startswith(("subscribe", "delivery"))])
        # A static joiner: two reads for the ids, one for each topic. This one: 6 more.
        assert own == 3 + 6
        if attempts == 1:
            assert reads_of_rebalances(c2) == (members + 1 + 2 + 6) + (members + 2) + 2
        marks = {who.id: len(who.tracer.events) for who in (c1, c2)}
        before = {who.id: who.rebalances() for who in (c1, c2)}
        await add_topic(session, "u", 2)
        await settled(
            session,
            {
                **shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4))),
                **shared("u", ("g_c1-0", [0]), ("g_c2-0", [1])),
            },
        )
        for who in (c1, c2):
            await rebalanced(who, before[who.id] + 1)
            since = marks[who.id]
            notified = [event for event in who.tracer.events[since:] if event["kind"] == "zk_notified"]
            assert [event["path"] for event in notified] == ["/brokers/topics"]
            triggers = [e for e in who.tracer.events[since:] if e["kind"] == "rebalance_started"]
            assert [(e["trigger"], e["cause"]) for e in triggers] == [("topics", f"zxid:{notified[0]['zxid']}")]
            topics = 2
            own_lines = [line for line in operations(who, since) if line.startswith(("subscribe", "delivery"))]
            assert own_lines == [
                "delivery exists /brokers/topics",
                "delivery getChildren /brokers/topics",
                "delivery getChildren /brokers/topics",
                "subscribe getChildren /brokers/topics",
                "subscribe exists /consumers/g/ids",
                "subscribe getChildren /consumers/g/ids",
                "subscribe exists /brokers/topics/t",
                "subscribe exists /brokers/topics/u",
            ]
            ended = [e for e in who.tracer.events[since:] if e["kind"] == "attempt_ended"]
            if [e["outcome"] for e in ended] == ["ok"]:
                assert reads_of_rebalances(who, since) == (members + topics + 2 + 6) + (members + 2) + 3


async def test_no_other_change_is_handled_during_a_new_topics_rebalance(chroot):
    """The original handles the topic event on the thread that delivers all events (KAFKA-1139 did not change it)."""
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "t", 1)
        settings = {"rebalance_max_retries": "3", "rebalance_backoff_ms": "1200"}
        async with wildcard(chroot, "w", TopicFilter.white(".*"), **settings) as w:
            await rebalanced(w, 1)
            await session.create(paths.owner("g", "u", 0), b"g_ghost-0", ephemeral=True, makepath=True)
            await add_topic(session, "u", 1)
            await until(lambda: len(w.tracer.of("rebalance_started")) > 1, 60, "the topic's rebalance")
            since = len(w.tracer.events)
            visitor = paths.member_id("g", "g_visitor")
            await session.create(visitor, VISITOR, ephemeral=True)
            await until(lambda: w.rebalances("failed") == 1, 60, "all its attempts to fail")
            notified = [event["kind"] for event in w.tracer.events[since:] if event["kind"] == "zk_notified"]
            assert notified == ["zk_notified"]
            failed = next(i for i, e in enumerate(w.tracer.events) if e.get("outcome") == "failed")
            answered = [e for e in w.tracer.events[since:failed] if e.get("step") == "delivery"]
            assert answered == []
            # Then it is handled, and the obstacle is gone for good.
            await session.delete(paths.owner("g", "u", 0))
            await settled(session, {**shared("t", ("g_w-0", [0])), **shared("u", ("g_w-0", [0]))})


async def test_pattern_whose_first_rebalance_fails_never_reads_the_topics_again(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        await session.create(paths.member_id("g", "g_broken"), b"nonsense", makepath=True)
        w = new_member(chroot, "w", rebalance_max_retries="1", rebalance_backoff_ms="1")
        await w.consumer.start()
        try:
            with pytest.raises(RebalanceFailed, match="g_broken: not JSON"):
                await w.consumer.subscribe_pattern(TopicFilter.white(".*"), 1)
            await session.delete(paths.member_id("g", "g_broken"))
            await rebalanced(w, 1)
            assert await session.exists(paths.BROKER_TOPICS) is None  # a listener would have created it
            await add_topic(session, "t", 1)
            await session.create(paths.member_id("g", "g_other"), VISITOR, ephemeral=True)
            # A change of the members makes it read the topics in its rebalance, like the original: the stream
            # exists.
            await settled(session, shared("t", ("g_w-0", [0])))
            assert not [e for e in w.tracer.of("rebalance_started") if e["trigger"] == "topics"]
        finally:
            await w.consumer.close()


async def test_expired_wildcard_member_watches_the_topics_again(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "t", 1)
        async with wildcard(chroot, "w", TopicFilter.white(".*")) as w:
            await rebalanced(w, 1)
            since = len(w.tracer.events)
            await expire(w.session)
            notified = "delivery getData /brokers/topics/t"
            await until(lambda: notified in operations(w, since), 60, lambda: f"{operations(w, since)}")
            lines = operations(w, since)
            # While another client has the session and has not closed it yet, the member may reconnect to it once.
            new = [line for line in lines if not line.startswith("re-arm")]
            assert new[0] == "register create /consumers/g/ids/g_w"
            own = [line for line in lines if line.startswith(("subscribe", "delivery"))]
            assert own == [
                # The topic watcher's reaction to a new session, then all listeners: children before data.
                "subscribe exists /brokers/topics",
                "subscribe getChildren /brokers/topics",
                "delivery exists /consumers/g/ids",
                "delivery getChildren /consumers/g/ids",
                "delivery exists /brokers/topics",
                "delivery getChildren /brokers/topics",
                "delivery getChildren /brokers/topics",
                "delivery exists /brokers/topics/t",
                "delivery getData /brokers/topics/t",
            ]
            await add_topic(session, "u", 1)
            await settled(session, {**shared("t", ("g_w-0", [0])), **shared("u", ("g_w-0", [0]))})


async def test_streams_are_created_once_by_name_or_by_pattern(chroot):
    white = TopicFilter.white("t")
    for first in ("name", "pattern"):
        one = new_member(chroot, first)
        with pytest.raises(UserError, match="not started"):
            await one.consumer.subscribe_pattern(white, 1)
        await one.consumer.start()
        try:
            with pytest.raises(UserError, match="at least one stream"):
                await one.consumer.subscribe_pattern(white, 0)
            for name in ("", "..", "a/b", "x\0", "\ud800"):
                with pytest.raises(UserError, match="not a legal topic name"):
                    await one.consumer.subscribe({name: 1})
            with pytest.raises(UserError, match="half a character"):
                await one.consumer.subscribe_pattern(TopicFilter.white("\ud800"), 1)
            if first == "name":
                await one.consumer.subscribe({"t": 1})
            else:
                await one.consumer.subscribe_pattern(white, 1)
            with pytest.raises(StreamsExist):
                await one.consumer.subscribe({"t": 1})
            with pytest.raises(StreamsExist):
                await one.consumer.subscribe_pattern(white, 1)
        finally:
            await one.consumer.close()


async def test_all_requests_to_zookeeper_are_traced_even_for_a_chroot(chroot, link):
    """kazoo's start would read the chroot, its makepath and ensure_path every parent."""
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "t", 1)
    async with wildcard(link.connect_string, "w", TopicFilter.white("t")) as w:
        # The leader finder never stops, because its broker cannot be reached. So the proxy may be ahead.
        traced = [(e["op"], e["path"], e["error"] or "ok") for e in w.tracer.of("zk_op")]
        passed = [(op.op, op.path, op.result) for op in link.operations()]
        assert passed[: 1 + len(traced)] == [("connect", "", "ok"), *traced]
        assert len(traced) > 20


async def test_named_topics_have_their_own_streams(chroot):
    async with opened(chroot) as session:
        await add_broker(session)
        await add_topic(session, "a", 4)
        await add_topic(session, "b", 4)
        async with member(chroot, "c1", {"a": 2, "b": 1}), member(chroot, "c2", {"b": 3}):
            a = shared("a", ("g_c1-0", range(2)), ("g_c1-1", range(2, 4)))
            b = shared("b", ("g_c1-0", [0]), ("g_c2-0", [1]), ("g_c2-1", [2]), ("g_c2-2", [3]))
            await settled(session, {**a, **b})
