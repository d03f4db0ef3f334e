"""The server design's coordinator on real brokers and a real ZooKeeper, with members that use only the codec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.protocol.server.errors import ServerError
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.client.client import ClusterClient
from kernel.client.connection import Disconnected
from kernel.errors import ConfigurationError
from kernel.tasks import cancel_and_wait
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper.counters import four_letter, read_counters
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession
from tests.coordinator.designs.raw_members import GROUP, RawMember, raw_member
from tests.support.brokers.live import broker_of, client_of, create_topics, running_broker
from tests.support.coordinators.child import coordinator_child
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session, opened

T = [TopicPartition("t", number) for number in range(4)]


def address(broker: Broker) -> list[tuple[str, int]]:
    return [(broker.address.host, broker.address.port)]


async def committed(broker: Broker) -> dict[str, int]:
    """By OffsetFetch, as any tool asks for it."""
    async with client_of(broker) as client:
        connection = await client.any_connection()
        answer = await connection.call(Api.OffsetFetch, {"group_id": GROUP, "topics": None}, version=7)
    return {f"{t.name}-{p.partition_index}": p.committed_offset for t in answer.topics for p in t.partitions}


async def create_t(bootstrap: list[tuple[str, int]]) -> None:
    """With a replica on each broker."""
    client = ClusterClient(bootstrap, "test")
    connection = await client.any_connection()

    async def is_created() -> bool:
        topic = {"name": "t", "num_partitions": len(T), "replication_factor": len(bootstrap)}
        answer = await connection.call(Api.CreateTopics, {"topics": [topic], "timeout": 10_000})
        return answer.topics[0].error_code in (ErrorCode.none, ErrorCode.topic_already_exists)

    await until(is_created, 60, "the topic to be created, which needs both brokers")
    await client.close()


def watches(zookeeper: EmbeddedZooKeeper) -> tuple[int, list[str]]:
    """How many child watches the server holds, by its own counters, and the group's paths with data watches.

    Its command `wchp` lists only data watches (DataTree.dumpWatches), its `mntr` counts both.
    """
    host, port = zookeeper.connect_string.split(":")
    by_path = four_letter(host, int(port), "wchp", timeout_s=30).split("\n")
    of_data = [line for line in by_path if line.startswith("\t")]
    of_group = [line for line in by_path if f"/consumers/{GROUP}" in line]
    return read_counters(host, int(port), timeout_s=30).watch_count - len(of_data), of_group


async def test_two_members_share_and_only_the_coordinator_watches(tmp_path: Path) -> None:
    # Of its own: on a shared one, sessions of earlier tests may end meanwhile.
    with EmbeddedZooKeeper(tmp_path / "zookeeper") as zookeeper:
        chroot = zookeeper.connect_string
        tracer = ListTracer(process="broker-1")
        settings = {"group.server.rebalance.timeout.ms": "10000"}
        async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,), tracer=tracer) as broker:
            await create_topics(broker, {"t": 4})
            before, _ = watches(zookeeper)
            async with raw_member(chroot, address(broker), "a") as a:
                await a.running(1)
                assert set(a.offsets) == set(T)
                assert await a.commit({T[0]: 5, T[3]: 7}) == {"t-0": "NONE", "t-3": "NONE"}
                async with raw_member(chroot, address(broker), "b") as b:
                    await asyncio.gather(a.running(2), b.running(2))
                    assert (a.commands, b.offsets) == ([("START", 1), ("STOP", 1), ("START", 2)], {T[2]: -1, T[3]: 7})
                    # Refused: an old generation, another's partition, a stranger, a topic that is not there.
                    assert await a.commit({T[0]: 9}, generation=1) == {"t-0": "ILLEGAL_GENERATION"}
                    mixed = {T[0]: 6, T[2]: 9, TopicPartition("u", 0): 1}
                    assert await a.commit(mixed) == {
                        "t-0": "NONE",
                        "t-2": "PARTITION_NOT_ASSIGNED",
                        "u-0": "UNKNOWN_TOPIC_OR_PARTITION",
                    }
                    assert await committed(broker) == {"t-0": 6, "t-3": 7}
                    await until(lambda: watches(zookeeper) == (before + 1, []), 60, lambda: f"one more than {before}")
                    # One that does not stop is dropped after the rebalance timeout.
                    b.hears.clear()
                    async with raw_member(chroot, address(broker), "c") as c:
                        await asyncio.gather(a.running(3), c.running(3))
                        assert set(a.offsets) | set(c.offsets) == set(T)
                        assert await b.commit({T[3]: 8}) == {"t-3": "UNKNOWN_CONSUMER"}
                        b.hears.set()
                        await asyncio.gather(a.running(4), b.running(4), c.running(4))
                await until(lambda: set(a.offsets) == set(T), 60, lambda: f"a to own all partitions: {a.commands}")
            kinds = [event["kind"] for event in tracer.events]
            assert {"group_member_joined", "group_member_left", "authority_named", "authority_cleared"} < set(kinds)
            reads = [(e["op"], e["path"]) for e in tracer.of("zk_op") if e["step"] == "server-ids"]
            assert reads.count(("getData", f"/consumers/{GROUP}/ids/a")) == 1


async def test_a_killed_coordinators_successor_goes_on_in_the_same_generation(chroot: str, tmp_path: Path) -> None:
    with ZooKeeperProxy(chroot) as one, ZooKeeperProxy(chroot) as other:
        links = (one, other)
        async with (
            coordinator_child(links[0].connect_string, tmp_path, 1, 30_000) as (first, first_port),
            coordinator_child(links[1].connect_string, tmp_path, 2, 30_000) as (second, second_port),
        ):
            bootstrap = [("127.0.0.1", first_port), ("127.0.0.1", second_port)]
            await create_t(bootstrap)
            async with raw_member(chroot, bootstrap, "a", wait_ms=300) as a, raw_member(chroot, bootstrap, "b") as b:
                await until(
                    lambda: bool(a.offsets and b.offsets), 15, lambda: f"both to run: {a.commands}, {b.commands}"
                )
                generation, had = a.generation, dict(a.offsets)
                assert b.generation == generation
                assert set((await a.commit(dict.fromkeys(had, 9))).values()) == {"NONE"}
                doomed = first if (await a.coordinator(Api.CommitOwned)).node_id == 1 else second
                doomed.kill()
                await doomed.wait()
                gone = links[0] if doomed is first else links[1]
                for credentials in gone.all_credentials():
                    await asyncio.to_thread(end_session, chroot, credentials)
                before = len(a.commands), len(b.commands)
                await a.forget_coordinator()
                await until(lambda: len(a.commands) > before[0], 60, "a to be answered by the successor")
                assert set((await b.commit(dict.fromkeys(b.offsets, 4))).values()) == {"NONE"}
                assert (a.generation, b.generation, dict(a.offsets)) == (generation, generation, had)
                assert {command for command, _ in a.commands[before[0] :] + b.commands[before[1] :]} == {"NOTHING"}
                # A newcomer's round starts from what it stored before.
                async with raw_member(chroot, bootstrap[:2], "c") as c:
                    await asyncio.gather(*(member.running(generation + 1) for member in (a, b, c)))
                    offsets = {**a.offsets, **b.offsets, **c.offsets}
                    assert {tp: offsets[tp] for tp in had} == dict.fromkeys(had, 9)


async def test_another_strategy_needs_a_restart_of_the_coordinator(chroot: str, tmp_path: Path) -> None:
    """The drawback of this plan (article 003 §2.2): strategies live in the broker."""
    async with opened(chroot) as session:
        async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
            await create_topics(broker, {"t": 3, "u": 3})
            async with two_members(broker, session) as (a, b):
                await until(lambda: (len(a.offsets), len(b.offsets)) == (4, 2), 60, "shares by range")
                generation = a.generation
                assert (await a.ask(strategy="roundrobin", wait_ms=0)).error is ServerError.INCONSISTENT_STRATEGY
                assert (await a.ask(strategy="of-my-own", wait_ms=0)).error is ServerError.UNKNOWN_STRATEGY
                assert (await a.ask(strategy="range", wait_ms=0)).error is ServerError.NONE
        settings = {"group.server.assignment.strategy": "roundrobin"}
        async with (
            running_broker(chroot, tmp_path, settings=settings, mount=(mount,)) as broker,
            two_members(broker, session) as (a, b),
        ):
            await until(lambda: (len(a.offsets), len(b.offsets)) == (3, 3), 60, "shares by roundrobin")
            assert a.generation == generation + 1, "one round, and the generation goes on"


@asynccontextmanager
async def two_members(broker: Broker, session: ZooKeeperSession) -> AsyncIterator[tuple[RawMember, RawMember]]:
    """Members a and b of two topics, whose ids stay when their connections end."""
    members = [RawMember(name, session, address(broker)) for name in "ab"]
    for member in members:
        member.topics = ("t", "u")
        if await session.exists(member.path) is None:
            await member.register("t", "u")
    tasks = [asyncio.create_task(member.obey_forever(200)) for member in members]
    try:
        yield members[0], members[1]
    finally:
        await cancel_and_wait(*tasks)
        for member in members:
            await member.close()


@pytest.mark.parametrize(("strategy", "says"), [("mine", "no assignment strategy"), ("cooperative-sticky", "sticky")])
def test_a_broker_does_not_start_with_an_unusable_strategy(
    chroot: str, tmp_path: Path, strategy: str, says: str
) -> None:
    broker = broker_of(chroot, tmp_path, settings={"group.server.assignment.strategy": strategy}, mount=(mount,))
    with pytest.raises(ConfigurationError, match=says):
        asyncio.run(broker.start())


async def test_a_group_id_belongs_to_one_design_at_a_time(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 4})
        connection = await client.any_connection()

        async def join() -> tuple[str, str]:
            body = {
                "group_id": GROUP,
                "session_timeout": 10_000,
                "rebalance_timeout": 10_000,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": b""}],
            }
            answer = await connection.call(Api.JoinGroup, body, version=3)
            return answer.error_code.name, answer.member_id

        async with raw_member(chroot, address(broker), "a", wait_ms=300) as a:
            await a.running(1)
            assert (await join())[0] == "inconsistent_group_protocol"
            row = (await connection.call(Api.DescribeGroups, {"groups": [GROUP]}, version=5)).groups[0]
            assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "server", "range")
            assert [member.member_id for member in row.members] == ["a"]
            rows = (await connection.call(Api.ListGroups, {}, version=4)).groups
            assert [(row.group_id, row.protocol_type) for row in rows] == [(GROUP, "server")]
            # The topic grows while all members run: one more round, for all of it.
            body = {"topics": [{"name": "t", "count": 6}], "timeout": 10_000}
            await connection.call(Api.CreatePartitions, body)
            await until(lambda: len(a.offsets) == 6, 60, lambda: f"a to own the new partitions: {a.commands}")
            # A garbled request costs its sender the connection, and affects no other member.
            with pytest.raises(Disconnected):
                await a.ask(wait_ms=-1)
        await until(lambda: join_works(join), 60, "the classic group to be accepted")
        asked = RawMember("b", a.session, address(broker))
        assert (await asked.ask(wait_ms=0)).error is ServerError.INCONSISTENT_GROUP_PROTOCOL
        assert await asked.commit({T[0]: 1}) == {"t-0": "INCONSISTENT_GROUP_PROTOCOL"}
        await asked.close()


async def join_works(join: Callable[[], Awaitable[tuple[str, str]]]) -> bool:
    return (await join())[0] == "none"
