"""Our members under a bad leader, and our leader with bad followers; over TCP, on a live broker.

kafka-clients 4.1.1 was tried with the same leader: it does not accept an assignment with a topic that it has not
subscribed to, and rejoins in the next poll; one that cannot be read makes every poll raise, until the application
closes the consumer and it leaves; a partition that does not exist is owned, and no records come from it. One thing is
different: a member that the leader leaves out raises in kafka-clients, and owns nothing here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from coordinator.client.errors import GroupRefused
from coordinator.protocol.consumer_protocol import decode_assignment, encode_assignment
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.coordinator.client.bad_leaders import GROUP, Give, HandmadeLeader, leading
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Running, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of, eager
from tests.support.wire.clients import WireConnection

PROTOCOLS = ("range", "cooperative-sticky")
MINE = partitions_of("t", 3)
GOOD = encode_assignment(MINE)


class Story:
    """A broker with the topics t (4 partitions) and u; what a test opens is closed with `stack`."""

    def __init__(self, broker: Broker, stack: AsyncExitStack) -> None:
        self.broker = broker
        self._stack = stack

    async def leader(self, protocol: str, give: Give, *, rebalance_timeout_ms: int = 10_000) -> HandmadeLeader:
        manager = leading(self.broker, protocol=protocol, give=give, rebalance_timeout_ms=rebalance_timeout_ms)
        return await self._stack.enter_async_context(manager)

    async def member(self, protocol: str, **settings: str) -> Running:
        given = {"partition.assignment.strategy": protocol, **settings}
        member = await eager(bootstrap_of(self.broker), settings=given).begin({"t": 1})
        self._stack.push_async_callback(member.consumer.close)
        self._stack.push_async_callback(self._paused, member)
        return member

    @staticmethod
    async def _paused(member: Running) -> None:
        if member.failure is None:
            await member.pause()

    async def connection(self) -> WireConnection:
        connection = await WireConnection.open(self.broker.address.host, self.broker.address.port, "by-hand-too")
        self._stack.callback(connection.close)
        return connection


@asynccontextmanager
async def story(chroot: str, tmp_path: Path) -> AsyncIterator[Story]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 4, "u": 1})
        yield Story(broker, stack)


def to_the_other(*rounds: bytes | None) -> Give:
    """What the second member gets in each round with two members; the last value is repeated. None leaves it out."""
    left = list(rounds)

    def give(_: int, members: object) -> dict[str, bytes]:
        data = left.pop(0) if len(left) > 1 else left[0]
        return {} if data is None else {members[1]: data}  # type: ignore[index]

    return give


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_unsubscribed_topic_in_an_assignment_is_ignored_and_the_member_rejoins(
    chroot: str, tmp_path: Path, protocol: str
) -> None:
    async with story(chroot, tmp_path) as world:
        strange = encode_assignment([TopicPartition("u", 0), TopicPartition("t", 1)])
        await world.leader(protocol, to_the_other(strange, strange, GOOD))
        member = await world.member(protocol)
        await until(lambda: member.owned == member.listener.has == MINE, 60, "a third round")
        assert member.failure is None
        assert member.listener.of("assigned") == [MINE]


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "delayed"])
async def test_unreadable_assignment_is_raised_and_does_not_stall_the_group(
    chroot: str, tmp_path: Path, protocol: str
) -> None:
    junk = encode_assignment(MINE, user_data=b"soon") if protocol == "delayed" else GOOD[:-7]
    async with story(chroot, tmp_path) as world:
        leader = await world.leader(protocol, to_the_other(junk, GOOD))
        member = await world.member(protocol)
        await until(lambda: member.failure is not None, 60, "the poll to fail")
        assert isinstance(member.failure, GroupRefused)
        assert "assignment: " in str(member.failure)
        assert member.owned == frozenset()
        await until(
            lambda: leader.sizes == [1, 2, 1], 15, "the member to leave, which takes less than a session timeout"
        )
        other = await world.member(protocol)
        await until(lambda: other.owned == MINE, 60, "the next member to get its share")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_member_left_out_of_an_assignment_owns_nothing_and_goes_on(
    chroot: str, tmp_path: Path, protocol: str
) -> None:
    async with story(chroot, tmp_path) as world:
        leader = await world.leader(protocol, to_the_other(None, GOOD))
        member = await world.member(protocol)
        await until(lambda: leader.sizes == [1, 2] and bool(member.listener.heard), 60, "an empty assignment")
        assert member.owned == frozenset()
        third = await world.member(protocol)
        await until(lambda: third.owned | member.owned == MINE, 60, "the next round")
        assert member.failure is None


async def test_partition_assigned_twice_is_delivered_by_both_and_a_nonexistent_one_by_none(
    chroot: str, tmp_path: Path
) -> None:
    async with story(chroot, tmp_path) as world, producing(bootstrap_of(world.broker)) as producer:
        both = {TopicPartition("t", 0), TopicPartition("t", 9)}
        data = encode_assignment(both)
        await world.leader("range", lambda _, members: dict.fromkeys(members[1:], data))
        members = [await world.member("range"), await world.member("range")]
        await until(lambda: all(member.owned == both for member in members), 60, "the same for both")
        await producer.send("t", 3)
        await until(lambda: all(len(member.records) == 3 for member in members), 60, "three records each")
        assert [member.failure for member in members] == [None, None]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_leader_that_never_syncs_is_replaced_by_a_member_that_does(
    chroot: str, tmp_path: Path, protocol: str
) -> None:
    async with story(chroot, tmp_path) as world:
        await world.leader(protocol, lambda _, members: None, rebalance_timeout_ms=1_000)
        member = await world.member(protocol, **{"max.poll.interval.ms": "1000"})
        await shared_out([member], partitions_of("t", 4))
        assert member.failure is None


async def test_leader_of_ours_assigns_nothing_to_a_member_with_an_unreadable_subscription(
    chroot: str, tmp_path: Path
) -> None:
    """kafka-clients 4.1.1 raises in the leader, and no member of the group gets anything."""
    async with story(chroot, tmp_path) as world:
        member = await world.member("range")
        await shared_out([member], partitions_of("t", 4))
        connection = await world.connection()
        identity = {"group_id": GROUP, "member_id": "", "group_instance_id": "junk"}
        body = {
            **identity,
            "session_timeout": 30_000,
            "rebalance_timeout": 6_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0\1\xff"}],
        }
        joined = await connection.send(Api.JoinGroup, 5, body)
        assert joined.error_code is ErrorCode.none
        identity |= {"member_id": joined.member_id, "generation_id": joined.generation_id}
        synced = await connection.send(Api.SyncGroup, 3, {**identity, "assignments": []})
        assert synced.error_code is ErrorCode.none
        assert decode_assignment(synced.assignment).partitions == frozenset()
        await shared_out([member], partitions_of("t", 4))
        assert member.failure is None
