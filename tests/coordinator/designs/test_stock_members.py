"""Stock consumers in groups of our coordinator: among themselves, and together with ours, led by either.

The first to join leads: it reads the others' subscriptions, and they read its assignments. `make test` runs some of
Kafka's strategies that each kind of client has, `make test-long` all of them.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.protocol.consumer_protocol import decode_subscription
from coordinator.service.mount import mount
from kernel.assignors.claims import sticky_claim
from kernel.assignors.sticky_data import NO_GENERATION, Claim
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.live import broker_thread
from tests.support.consumers.consuming import NumberedProducer, Running, partitions_of, producing
from tests.support.consumers.eager import eager
from tests.support.stock.members import CLIENTS, STRATEGIES, StockMember, stock_member

Member = Running | StockMember

PARTITIONS = 6
EVERYTHING = partitions_of("t", PARTITIONS)
#: Strategies in which each understands the other's claims, so that all members keep what is possible. kafka-python
#: 3.0.12 puts a version in front of its data for `sticky`, which Kafka's own assignor does not write and cannot read.
UNDERSTOOD = {("aiokafka", "sticky"), ("kafka-python", "cooperative-sticky"), ("confluent", "cooperative-sticky")}
#: What `make test` runs: every strategy, every kind, either as leader.
SOON = {
    ("kafka-python", "cooperative-sticky", "ours"),
    ("kafka-python", "roundrobin", "theirs"),
    ("aiokafka", "sticky", "theirs"),
    ("aiokafka", "roundrobin", "ours"),
    ("confluent", "range", "ours"),
    ("confluent", "cooperative-sticky", "theirs"),
}
MATRIX = [
    pytest.param(*cell, marks=() if cell in SOON else pytest.mark.long)
    for kind in CLIENTS
    for strategy in STRATEGIES[kind]
    for leader in ("ours", "theirs")
    for cell in ((kind, strategy, leader),)
]
STATIC = [
    pytest.param(kind, strategy, marks=() if strategy == "range" else pytest.mark.long)
    for kind in CLIENTS
    for strategy in STRATEGIES[kind]
    if strategy in ("range", "cooperative-sticky")
]


@pytest.fixture
def bootstrap(chroot: str, tmp_path: Path) -> Iterator[str]:
    with broker_thread(chroot, tmp_path, mount=(mount,), topics={"t": PARTITIONS}) as address:
        yield address


class Group:
    """Members of both kinds with one strategy, which are closed at the end; and what was produced for them."""

    def __init__(self, bootstrap: str, strategy: str, producer: NumberedProducer, stack: AsyncExitStack) -> None:
        self.bootstrap, self.strategy = bootstrap, strategy
        self.members: list[Member] = []
        self._producer, self._stack = producer, stack
        self._everybody: list[Member] = []
        self._produced = 0

    async def join(self, kind: str, instance: str = "") -> Any:
        """`kind` is a stock client's, or ours."""
        member: Member
        if kind == "ours":
            settings = {"partition.assignment.strategy": self.strategy}
            member = eager(self.bootstrap, settings=settings | ({"group.instance.id": instance} if instance else {}))
            self._stack.push_async_callback(member.close)
            await member.begin({"t": 1})
        else:
            made = stock_member(kind, self.bootstrap, "g", "t", strategy=self.strategy, instance=instance)
            member = await self._stack.enter_async_context(made)
        self.members.append(member)
        self._everybody.append(member)
        return member

    async def leave(self, member: Member) -> None:
        """In the order in which its client closes."""
        self.members.remove(member)
        if hasattr(member, "stop"):
            await asyncio.to_thread(member.stop)
        else:
            await member.close()

    async def shares(self, *sizes: int) -> None:
        """Waits until the members own everything between them, so many partitions each, and have read every record."""

        def done() -> bool:
            for member in self.members:
                assert member.failure is None, member.failure
            owned: list[frozenset[TopicPartition]] = [member.owned for member in self.members]
            return sorted(map(len, owned)) == sorted(sizes) and frozenset().union(*owned) == EVERYTHING

        await until(
            done, 90, lambda: f"pieces of {sizes}: {[sorted(member.owned) for member in self.members]}", every_s=0.05
        )
        await self._producer.send("t", 3)
        self._produced += 3
        expected = PARTITIONS * self._produced
        await until(lambda: len(self._read()) == expected, 60, lambda: f"{expected} records: {len(self._read())}")

    def _read(self) -> set[tuple[int, int]]:
        """(partition, offset) of all records that any member has read, including members that have left."""
        return set().union(*(read_by(member) for member in self._everybody))


def read_by(member: Member) -> set[tuple[int, int]]:
    if hasattr(member, "records"):
        return {(record.partition, record.offset) for record in member.records}
    return set(member.read)


def rebalances(member: Running) -> int:
    return len(member.tracer.of("rebalance_started"))


def decided(member: Running) -> int:
    """Rounds in which it was the leader and ran the assignor."""
    return len([event for event in member.tracer.of("phase_entered") if event["phase"] == "decide"])


@asynccontextmanager
async def playing(bootstrap: str, strategy: str) -> AsyncIterator[Group]:
    async with producing(bootstrap) as producer, AsyncExitStack() as stack:
        yield Group(bootstrap, strategy, producer, stack)


def test_sticky_data_of_aiokafka_is_read_and_that_of_kafka_python_is_ignored_as_by_kafka() -> None:
    had = [TopicPartition("t", 3), TopicPartition("t", 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, not ours
        import aiokafka.coordinator.assignors.sticky.sticky_assignor as aiokafka
        import kafka.coordinator.assignors.sticky.sticky_assignor as kafka_python

        theirs = kafka_python.StickyPartitionAssignor()
        theirs.member_assignment, theirs.generation = had, 4
        odd = bytes(theirs.metadata({"t"}).encode())
        usual = aiokafka.StickyPartitionAssignor._metadata(["t"], had, 4).encode()
    assert sticky_claim(decode_subscription(usual)) == Claim(tuple(had), 4)
    assert sticky_claim(decode_subscription(odd)) == Claim((), NO_GENERATION)


@pytest.mark.parametrize("kind", CLIENTS)
async def test_two_stock_members_share_commit_and_take_over(bootstrap: str, kind: str) -> None:
    async with playing(bootstrap, "range") as group:
        first, second = await group.join(kind), await group.join(kind)
        await group.shares(3, 3)
        await group.leave(second)
        await group.shares(6)
        await group.leave(first)
        later = await group.join(kind)
        await group.shares(6)
        # From what the others committed, not from the beginning of the log.
        assert {offset for _, offset in read_by(later)} == {6, 7, 8}


@pytest.mark.parametrize(("kind", "strategy", "leader"), MATRIX)
async def test_members_of_ours_and_a_stock_one_share_a_group(
    bootstrap: str, kind: str, strategy: str, leader: str
) -> None:
    async with playing(bootstrap, strategy) as group:
        order = (kind, "ours") if leader == "theirs" else ("ours", kind)
        first = await group.join(order[0])
        await group.shares(6)
        second = await group.join(order[1])
        await group.shares(3, 3)
        had = [member.owned for member in group.members]
        third = await group.join("ours")
        await group.shares(2, 2, 2)
        kept = [len(before & member.owned) for before, member in zip(had, group.members[:2], strict=True)]
        if (kind, strategy) in UNDERSTOOD:
            assert kept == [2, 2]
        elif strategy == "sticky" and leader == "ours":
            assert kept[0] == 2
        ours = first if leader == "ours" else second
        if leader == "ours":
            assert decided(ours) >= 3
        else:
            assert decided(ours) == decided(third) == 0
        if strategy == "cooperative-sticky":
            # It gives up what goes to another member, and never anything else.
            gone = [len(partitions) for partitions in ours.listener.of("revoked") if partitions]
            assert gone == ([3, 1] if leader == "ours" else [1])
        await group.leave(first)
        await group.shares(3, 3)
        await group.leave(group.members[-1])
        await group.shares(6)


@pytest.mark.parametrize(("kind", "strategy"), STATIC)
async def test_static_members_of_both_kinds_restart_unnoticed(bootstrap: str, kind: str, strategy: str) -> None:
    async with playing(bootstrap, strategy) as group:
        ours = await group.join("ours", "a")
        await group.shares(6)
        theirs = await group.join(kind, "b")
        await group.shares(3, 3)
        mine, its, before = ours.owned, theirs.owned, rebalances(ours)
        await group.leave(theirs)
        theirs = await group.join(kind, "b")
        await group.shares(3, 3)
        assert (ours.owned, theirs.owned, rebalances(ours)) == (mine, its, before)
        said = len(theirs.owned_before)
        await group.leave(ours)
        ours = await group.join("ours", "a")
        await group.shares(3, 3)
        assert (ours.owned, theirs.owned) == (mine, its)
        assert len(theirs.owned_before) == said


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param("range"),
        pytest.param("roundrobin", marks=pytest.mark.long),
        pytest.param("sticky", marks=pytest.mark.long),
        pytest.param("cooperative-sticky", marks=pytest.mark.long),
    ],
)
async def test_all_clients_that_support_a_strategy_share_one_group(bootstrap: str, strategy: str) -> None:
    kinds = [kind for kind in CLIENTS if strategy in STRATEGIES[kind]]
    sizes: Sequence[int] = {3: (1, 1, 2, 2), 2: (2, 2, 2)}[len(kinds)]
    left: Sequence[int] = {3: (2, 2, 2), 2: (3, 3)}[len(kinds)]
    async with playing(bootstrap, strategy) as group:
        ours = await group.join("ours")
        for kind in kinds:
            await group.join(kind)
        await group.shares(*sizes)
        await group.leave(ours)
        await group.shares(*left)
