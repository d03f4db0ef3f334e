"""Our KIP-848 consumer when links, members and brokers fail, on live brokers of ours."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from comparison.scenarios.testbed.link import Way
from comparison.scenarios.testbed.proxy import TcpProxy
from coordinator.client.errors import GroupRefused
from coordinator.groups.placement import partition_of
from coordinator.membership.consumer.member import STATIC_LEAVE_EPOCH
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.client.connection import BrokerConnection
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, create_topics, running_broker, running_cluster
from tests.support.consumers.consuming import Running, committed_all, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of
from tests.support.consumers.reconciling import QUICK_GROUPS, reconciling, reconciling_group
from tests.support.trace.tracers import ListTracer

EVERYTHING = partitions_of("t", 4)
SHORT_SESSION = {"group.consumer.session.timeout.ms": "10000"}


def removed(member: Running) -> int:
    """How often it gave partitions up."""
    return sum(len(member.tracer.of(kind)) for kind in ("partitions_revoked", "partitions_lost"))


def heartbeats(member: Running) -> Counter[str]:
    """The answers to its heartbeats, by error."""
    answers = member.tracer.of("request_answered")
    return Counter(str(event["error"]) for event in answers if event["api"] == "ConsumerGroupHeartbeat")


async def positioned(member: Running) -> None:
    """Wait until it knows where its partitions begin, which it asks the coordinator."""
    await until(lambda: len(member.tracer.of("position_started")) == len(EVERYTHING), 30, "its positions")


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> TcpProxy:
    """Between the coordinator and the members whose client.id begins with `behind`; start it."""
    made = TcpProxy("to the coordinator", ListTracer())

    class Routed(BrokerConnection):
        @classmethod
        async def open(cls, host: str, port: int, client_id: str, **options: Any) -> BrokerConnection:
            chosen = made.port if client_id.startswith("behind") else port
            return await BrokerConnection.open(host, chosen, client_id, **options)

    monkeypatch.setattr("coordinator.client.link.BrokerConnection", Routed)
    return made


BEHIND = {"client.id": "behind", "request.timeout.ms": "1000", "enable.auto.commit": "false"}


async def test_silent_member_is_replaced_after_its_session_and_joins_again_when_the_link_is_back(
    chroot: str, tmp_path: Path, proxy: TcpProxy
) -> None:
    """Cut off from its coordinator alone, a member delivers what it owns, as Kafka's does: it has no session timer."""
    async with reconciling_group(chroot, tmp_path, broker_settings=SHORT_SESSION) as (broker, _):
        await proxy.start(broker.address.port)
        victim = await reconciling(bootstrap_of(broker), settings=BEHIND).begin({"t": 1})
        other = await reconciling(bootstrap_of(broker)).begin({"t": 1})
        await shared_out([victim, other], EVERYTHING)
        kept = victim.owned
        proxy.cut()
        await shared_out([other], EVERYTHING)
        assert victim.owned == kept
        proxy.heal()
        await shared_out([victim, other], EVERYTHING)
        assert victim.listener.of("lost") == [kept]
        assert heartbeats(victim)["UNKNOWN_MEMBER_ID"] == 1
        await victim.close()
        await other.close()
        await proxy.stop()


async def test_link_that_is_back_within_the_session_costs_nothing(chroot: str, tmp_path: Path, proxy: TcpProxy) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        await proxy.start(broker.address.port)
        member = await reconciling(bootstrap_of(broker), settings=BEHIND).begin({"t": 1})
        await shared_out([member], EVERYTHING)
        await positioned(member)
        proxy.cut()
        await producer.send("t", 5)
        await until(lambda: len(member.records) == 20, 30, "records without the coordinator")
        commit = asyncio.create_task(member.consumer.commit())
        timed_out = "TIMED_OUT", "DISCONNECTED"
        await until(lambda: sum(heartbeats(member)[error] for error in timed_out), 30, "a heartbeat without answer")
        proxy.heal()
        assert len((await commit).accepted) == 4
        assert (member.owned, removed(member)) == (EVERYTHING, 0)
        assert len(member.tracer.of("member_started")) == 1
        await member.close()
        await proxy.stop()


async def test_closing_without_the_coordinator_ends_in_time(
    chroot: str, tmp_path: Path, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time for the commit, and as long for the heartbeat."""
    monkeypatch.setattr("coordinator.client.member_runner.LEAVE_TIMEOUT_MS", 1_000)
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        await proxy.start(broker.address.port)
        given = {"client.id": "behind", "request.timeout.ms": "60000"}
        member = await reconciling(bootstrap_of(broker), settings=given).begin({"t": 1})
        await shared_out([member], EVERYTHING)
        proxy.cut()
        async with asyncio.timeout(30):
            await member.close()
        assert member.listener.of("revoked") == [EVERYTHING]
        await proxy.stop()


async def test_static_member_returns_to_its_partitions_and_nobody_else_notices(chroot: str, tmp_path: Path) -> None:
    first, second = {"group.instance.id": "a"}, {"group.instance.id": "b"}
    async with reconciling_group(chroot, tmp_path, first, second) as (broker, members):
        await shared_out(members, EVERYTHING)
        had, before = members[0].owned, removed(members[1])
        await members[0].close()
        again = await reconciling(bootstrap_of(broker), settings=first).begin({"t": 1})
        await until(lambda: again.owned == had, 30, lambda: f"{had}, got {again.owned}, {again.failure}")
        assert removed(members[1]) == before
        assert again.consumer.member_ids != members[0].consumer.member_ids
        await again.close()


async def has_left_for_a_while(broker: Broker) -> bool:
    """Whether the only member of group g has, as far as the coordinator knows."""
    async with client_of(broker) as client:
        connection = await client.any_connection()
        body = {"group_ids": ["g"], "include_authorized_operations": False}
        answer = await connection.call(Api.ConsumerGroupDescribe, body)
    return [member.member_epoch for member in answer.groups[0].members] == [STATIC_LEAVE_EPOCH]


async def test_static_member_whose_last_commit_is_not_answered_in_time_says_all_the_same_that_it_leaves(
    chroot: str, tmp_path: Path, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its successor is refused until the session has ended (UNRELEASED_INSTANCE_ID)."""
    monkeypatch.setattr("coordinator.client.member_runner.LEAVE_TIMEOUT_MS", 200)
    named = {"group.instance.id": "a"}
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        await proxy.start(broker.address.port)
        first = await reconciling(bootstrap_of(broker), settings={**named, "client.id": "behind"}).begin({"t": 1})
        await shared_out([first], EVERYTHING)
        await positioned(first)
        proxy.cut(ways=frozenset({Way.TO_CLIENT}))
        await first.close()
        assert {event["outcome"] for event in first.tracer.of("commit_answered")} == {"unknown"}
        await until(lambda: has_left_for_a_while(broker), 30, "the leave request")
        second = await reconciling(bootstrap_of(broker), settings=named).begin({"t": 1})
        await shared_out([second], EVERYTHING)
        await second.close()
        await proxy.stop()


async def test_second_member_with_an_instance_id_is_refused_while_the_first_is_there(
    chroot: str, tmp_path: Path
) -> None:
    named = {"group.instance.id": "a"}
    async with reconciling_group(chroot, tmp_path, named) as (broker, (first,)):
        await shared_out([first], EVERYTHING)
        second = await reconciling(bootstrap_of(broker), settings=named).begin({"t": 1})
        await until(lambda: second.failure, 30, "the refusal")
        with pytest.raises(GroupRefused, match=r"UNRELEASED_INSTANCE_ID.*group\.instance\.id"):
            await second.pause()
        await second.close()
        assert (first.owned, removed(first)) == (EVERYTHING, 0)


async def test_members_keep_their_partitions_while_the_coordinator_moves(chroot: str, tmp_path: Path) -> None:
    async with (
        running_cluster(2, chroot, tmp_path, mount=(mount,), settings=QUICK_GROUPS) as brokers,
        AsyncExitStack() as stack,
    ):
        await create_topics(brokers[0], {"t": 4}, replication_factor=2)
        members = [await reconciling(bootstrap_of(*brokers)).begin({"t": 1}) for _ in range(2)]
        for member in members:
            stack.push_async_callback(member.close)
        await shared_out(members, EVERYTHING)
        before = [removed(member) for member in members]
        place = TopicPartition(OFFSETS_TOPIC, partition_of("g", 4))
        leader = brokers[0].cluster.snapshot.leader_of(place)
        assert leader is not None
        gone = next(broker for broker in brokers if broker.address.node_id == leader.node_id)
        stays = next(broker for broker in brokers if broker is not gone)
        await gone.stop()
        async with producing(bootstrap_of(stays)) as producer:
            await producer.send("t", 5)
            await until(lambda: sum(len(m.records) for m in members) == 20, 60, "the records")
        for member in members:
            await committed_all(member)
        assert [removed(member) for member in members] == before
        joiner = await reconciling(bootstrap_of(stays)).begin({"t": 1})
        stack.push_async_callback(joiner.close)
        await shared_out([*members, joiner], EVERYTHING)


async def test_group_outlives_the_restart_of_its_only_broker(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path, mount=(mount,), settings=QUICK_GROUPS) as broker:
        port = str(broker.address.port)
        await create_topics(broker, {"t": 4})
        members = [await reconciling(bootstrap_of(broker)).begin({"t": 1}) for _ in range(2)]
        await shared_out(members, EVERYTHING)
        before = [(member.owned, removed(member)) for member in members]
    async with running_broker(chroot, tmp_path, mount=(mount,), settings={**QUICK_GROUPS, "port": port}) as broker:
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 5)
        await until(lambda: sum(len(m.records) for m in members) == 20, 60, "the records")
        for member in members:
            await committed_all(member)
        assert [(member.owned, removed(member)) for member in members] == before
        await members[0].close()
        await shared_out(members[1:], EVERYTHING)
        await members[1].close()
