"""A member of the server design with a real ZooKeeper and a real broker, whose coordinator is scripted by the test."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from coordinator.client.errors import GroupRefused
from coordinator.client.server import stream as member_stream
from coordinator.client.server.consumer import ServerConsumer
from coordinator.protocol.server.commands import Command, OwnedOffset
from coordinator.protocol.server.errors import ServerError
from kernel.broker.broker import Broker
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import SessionFailed
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.commander import Commander, commanded
from tests.support.consumers.consuming import Running, partitions_of, producing
from tests.support.consumers.eager import bootstrap_of
from tests.support.zookeeper.sessions import expire, fail, opened

P0, P1 = (TopicPartition("t", n) for n in range(2))
GROUP = "/consumers/g/ids"


@asynccontextmanager
async def laboratory(
    chroot: str, data_dir: Path, settings: dict[str, str] | None = None
) -> AsyncIterator[tuple[Commander, Broker, Running]]:
    """A commander on a broker with topic t of two partitions of ten records each, and a member that polls."""
    commander = Commander()
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, data_dir, mount=(commander.mount,)))
        await create_topics(broker, {"t": 2})
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 10)
        member = commanded(bootstrap_of(broker), chroot, settings=settings)
        stack.push_async_callback(member.close)
        yield commander, broker, await member.begin({"t": 1})


def session_of(member: Running) -> ServerConsumer:
    assert isinstance(member.consumer, ServerConsumer)
    return member.consumer


async def test_member_registers_asks_starts_at_the_commanded_offsets_and_stops_in_order(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        commander, _, member = await stack.enter_async_context(laboratory(chroot, tmp_path))
        zookeeper = await stack.enter_async_context(opened(chroot))
        first = await commander.asked(lambda question: True)
        assert (first.generation, first.stopped, first.topics, first.strategy) == (-1, -1, ("t",), "")
        (member_id,) = member.consumer.member_ids
        data, stat = await zookeeper.get(paths.member_id("g", member_id))
        registration = json.loads(data)
        assert registration.pop("timestamp").isdigit()
        assert registration == {"version": 1, "subscription": {"t": 1}, "pattern": "static", "design": "server"}
        assert stat.ephemeral_owner == session_of(member).session.session_id

        commander.says(Command.START, 5, {P0: 7, P1: -1})
        await commander.asked(lambda question: (question.generation, question.stopped) == (5, -1))
        await until(lambda: len(member.records) == 13, 60, "3 records and 10")
        assert min(record.offset for record in member.records if record.partition == 0) == 7
        assert member.listener.of("assigned") == [partitions_of("t", 2)]
        assert (await member.consumer.commit({P0: 9})).accepted == {P0: 9}
        assert (commander.commits[-1].member_id, commander.commits[-1].generation) == (member_id, 5)

        await member.pause()  # background tasks obey all the same
        commander.says(Command.STOP, 5)
        await commander.asked(lambda question: question.stopped == 5)
        assert commander.commits[-1].offsets == (OwnedOffset("t", 0, 10), OwnedOffset("t", 1, 10))
        assert member.listener.of("revoked") == [partitions_of("t", 2)]
        assert member.owned == frozenset()
        assert (await member.consumer.commit({P0: 3})).refused == {P0: "DROPPED"}

        operations = [(event["op"], event["ok"]) for event in member.tracer.of("zk_op")]
        # The group is new, so its parent znodes are created: two creates fail, and nothing reads or watches.
        assert {op for op, _ in operations} == {"create"}
        assert not member.tracer.of("zk_notified")
        await member.close()
        assert await zookeeper.children(GROUP) == []
        assert member.tracer.of("member_closed")


async def test_expired_session_loses_the_partitions_and_member_returns_under_a_new_id(
    chroot: str, tmp_path: Path
) -> None:
    async with laboratory(chroot, tmp_path) as (commander, _, member):
        commander.says(Command.START, 5, {P0: 0})
        await commander.asked(lambda question: question.generation == 5)
        (old,) = member.consumer.member_ids
        await expire(session_of(member).session)
        question = await commander.asked(lambda question: question.member_id != old)
        assert (question.generation, question.stopped) == (-1, -1)
        assert member.consumer.member_ids == (question.member_id,)
        await until(lambda: member.listener.of("lost") == [{P0}], 60, "the loss to be reported")
        assert not member.listener.of("revoked")
        assert [event["member"] for event in member.tracer.of("partitions_lost")] == [old]
        assert (await member.consumer.commit({P0: 3})).refused == {P0: "DROPPED"}
        commander.says(Command.START, 6, {P0: 4})
        await commander.asked(lambda question: question.generation == 6)
        assert member.owned == {P0}


async def test_member_whose_session_fails_by_a_bug_stops_delivering_and_every_poll_says_so(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        commander, _, member = await stack.enter_async_context(laboratory(chroot, tmp_path))
        await commander.asked(lambda question: True)
        commander.says(Command.START, 5, {P0: 0})
        await until(lambda: len(member.records) == 10, 60, "the records")
        await fail(session_of(member).session)
        await until(lambda: not member.consumer.assignment().get(0), 60, "the partitions to be lost")
        await until(lambda: member.failure is not None, 60, "the poll under way to fail")
        with pytest.raises(SessionFailed):
            await member.pause()
        for _ in range(2):
            with pytest.raises(SessionFailed, match="ZeroDivisionError: a bug"):
                await asyncio.wait_for(member.consumer.getmany(timeout_ms=60_000), 60)


async def test_member_with_a_fixed_id_waits_for_its_dead_predecessors_znode(chroot: str, tmp_path: Path) -> None:
    settings = {"consumer.id": "one", "zookeeper.session.timeout.ms": "1000"}
    settings["zookeeper.connection.timeout.ms"] = "30000"  # which otherwise is the session's
    async with AsyncExitStack() as stack:
        predecessor = await stack.enter_async_context(opened(chroot))
        await predecessor.create(f"{GROUP}/g_one", b"", ephemeral=True, makepath=True)
        commander, _, member = await stack.enter_async_context(laboratory(chroot, tmp_path, settings))
        looks = member.tracer.of
        await until(lambda: sum(event["op"] == "exists" for event in looks("zk_op")) > 1, 60, "two lookups")
        assert not commander.questions
        assert member.consumer.member_ids == ()
        await predecessor.close()
        assert (await commander.asked(lambda question: True)).member_id == "g_one"
        assert member.consumer.member_ids == ("g_one",)
        old = session_of(member).session.session_id
        await expire(session_of(member).session)  # and after its own session expires it is the same again
        await until(lambda: session_of(member).session.session_id != old, 60, "another session")
        await until(lambda: len(commander.questions) > 1, 60, "the request of the next incarnation")
        assert commander.questions[-1].member_id == "g_one"


async def test_refused_commit_loses_the_partitions(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path) as (commander, _, member):
        commander.says(Command.START, 5, {P0: 0})
        await commander.asked(lambda question: question.generation == 5)
        commander.refuses = ServerError.ILLEGAL_GENERATION
        assert (await member.consumer.commit({P0: 3})).refused == {P0: "ILLEGAL_GENERATION"}
        assert member.owned == frozenset()
        question = await commander.asked(lambda question: question.generation == -1)
        assert question.member_id == member.consumer.member_ids[0]
        await until(lambda: member.listener.of("lost") == [{P0}], 60, "the loss to be reported")


async def test_member_goes_on_delivering_while_its_coordinator_cannot_be_found(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path) as (commander, broker, member):
        commander.says(Command.START, 5, {P0: 0})
        await commander.asked(lambda question: question.generation == 5)
        asked = len(commander.questions)
        for error in (ServerError.NOT_COORDINATOR, ServerError.COORDINATOR_LOAD_IN_PROGRESS):
            commander.refuses_with(error)
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 5)
        await until(lambda: len(member.records) == 15, 60, "the records written meanwhile")
        await until(lambda: len(commander.questions) >= asked + 2, 60, "two more requests")
        assert {(q.generation, q.stopped) for q in commander.questions[asked:]} == {(5, -1)}
        assert [event["api"] for event in member.tracer.of("request_answered")].count("FindCoordinator") == 2
        assert not member.listener.of("lost")


async def test_member_with_another_strategy_fails_with_the_remedy(chroot: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        settings = {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor"}
        commander, _, member = await stack.enter_async_context(laboratory(chroot, tmp_path, settings))
        zookeeper = await stack.enter_async_context(opened(chroot))
        assert (await commander.asked(lambda question: True)).strategy == "sticky"
        commander.refuses_with(ServerError.INCONSISTENT_STRATEGY)
        await until(lambda: isinstance(member.failure, GroupRefused), 60, "the poll to raise")
        with pytest.raises(GroupRefused, match=r"INCONSISTENT_STRATEGY: .*group\.server\.assignment\.strategy"):
            await member.pause()

        async def gone() -> bool:
            return await zookeeper.children(GROUP) == []

        await until(gone, 60, "the id to be removed")


async def test_changed_subscription_is_announced_and_named_in_the_next_request(chroot: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        commander, broker, member = await stack.enter_async_context(laboratory(chroot, tmp_path))
        zookeeper = await stack.enter_async_context(opened(chroot))
        await create_topics(broker, {"u": 1})
        commander.says(Command.START, 5, {P0: 0})
        await commander.asked(lambda question: question.generation == 5)
        await member.consumer.subscribe({"t": 1, "u": 1}, member.listener)
        question = await commander.asked(lambda question: question.topics == ("t", "u"))
        assert (question.generation, question.stopped) == (5, -1)
        data, _ = await zookeeper.get(paths.member_id("g", question.member_id))
        assert json.loads(data)["subscription"] == {"t": 1, "u": 1}
        await member.pause()  # a poll without a subscription raises
        await member.consumer.unsubscribe()
        assert await zookeeper.children(GROUP) == []
        assert member.listener.of("revoked") == [{P0}]


async def test_member_that_is_never_started_warns_that_its_coordinator_may_watch_another_zookeeper(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(member_stream, "SILENCE_MS", 1)

    def warnings() -> list[str]:
        return [each.message for each in caplog.records if each.levelno >= logging.WARNING]

    async with laboratory(chroot, tmp_path) as (commander, _, member):
        await commander.asked(lambda question: True)

        def warned() -> bool:
            commander.says(Command.NOTHING)
            return bool(warnings())

        await until(warned, 60, "a warning")
        (member_id,) = member.consumer.member_ids
        assert warnings()[0].startswith(f"{member_id} has waited")
        assert f"zookeeper.connect={chroot}" in warnings()[0]
        commander.says(Command.START, 1, {P0: 0})
        await until(lambda: member.owned == {P0}, 60, "its partition")
