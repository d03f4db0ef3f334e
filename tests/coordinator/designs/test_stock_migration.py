"""Stock members of both protocols in one of our groups, which migrates and returns (KIP-848)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import broker_thread
from tests.support.consumers.consuming import partitions_of
from tests.support.stock.clients import ConfluentKafka
from tests.support.stock.members import BROKERS, StockMember, stock_member
from tests.support.wire.clients import WireConnection

GROUP, TOPIC, PARTITIONS = "migrating", "t", 6
EVERYTHING = partitions_of(TOPIC, PARTITIONS)
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
}
PATIENCE_S = 60
CLASSIC, CONSUMER = "classic", "consumer"


@dataclass
class Migration:
    """Two places in a group, each with one member after the other, while records are produced."""

    bootstrap: str
    strategy: str  #: of the classic members
    members: list[StockMember] = field(default_factory=list)  #: all that have ever been
    places: dict[int, tuple[StockMember, AsyncExitStack]] = field(default_factory=dict)
    produced: int = 0  #: to each partition

    @property
    def read(self) -> list[tuple[int, int]]:
        return [place for member in self.members for place in member.read]

    def read_again(self) -> dict[tuple[int, int], list[int]]:
        """{(partition, offset): the members that read it, by their order of coming} of records read more than once."""
        readers: dict[tuple[int, int], list[int]] = {}
        for number, member in enumerate(self.members):
            for record in member.read:
                readers.setdefault(record, []).append(number)
        return {record: numbers for record, numbers in readers.items() if len(numbers) > 1}

    async def occupy(self, place: int, protocol: str) -> None:
        """Replace the member at this place, and read on."""
        if place in self.places:
            await self.places.pop(place)[1].aclose()
        stack = AsyncExitStack()
        strategy = BROKERS if protocol == CONSUMER else self.strategy
        member = await stack.enter_async_context(
            stock_member("confluent", self.bootstrap, GROUP, TOPIC, strategy=strategy)
        )
        self.places[place] = (member, stack)
        self.members.append(member)
        await self.produce()
        await until(self._is_shared_out, PATIENCE_S, f"everything to be owned once by {len(self.places)} members")

    def _is_shared_out(self) -> bool:
        owned = [member.owned for member, _ in self.places.values()]
        return sum(map(len, owned)) == PARTITIONS and frozenset().union(*owned) == EVERYTHING and all(owned)

    async def produce(self) -> None:
        producer = ConfluentKafka(self.bootstrap, TOPIC)
        values = [str(self.produced + n).encode() for n in range(5)]
        for partition in range(PARTITIONS):
            await asyncio.to_thread(producer.produce, values, "none", partition)
        self.produced += len(values)

    async def everything_is_read(self) -> None:
        expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(self.produced)}
        await until(lambda: set(self.read) == expected, PATIENCE_S, "every record to be read")

    async def kind(self) -> str:
        """The group's type, as ListGroups shows it."""
        listed = await self._ask(Api.ListGroups, 5, states_filter=[], types_filter=[])
        (group_type,) = {group.group_type for group in listed.groups if group.group_id == GROUP}
        return str(group_type)

    async def committed(self) -> set[int]:
        asked = [{"group_id": GROUP, "topics": None}]
        fetched = await self._ask(Api.OffsetFetch, 8, groups=asked, require_stable=False)
        return {p.committed_offset for topic in fetched.groups[0].topics for p in topic.partitions}

    async def _ask(self, api: Api, version: int, **body: Any) -> Any:
        host, port = self.bootstrap.split(":")
        connection = await WireConnection.open(host, int(port), "admin")
        try:
            return await connection.send(api, version, body)
        finally:
            connection.close()

    async def close(self) -> None:
        for _, stack in self.places.values():
            await stack.aclose()


async def migrate(bootstrap: str, strategy: str) -> None:
    """Two classic members are upgraded one by one, and downgraded again."""
    migration = Migration(bootstrap, strategy)
    try:
        for place in (0, 1):
            await migration.occupy(place, CLASSIC)
        assert await migration.kind() == CLASSIC
        for place in (0, 1):
            await migration.occupy(place, CONSUMER)
            assert await migration.kind() == CONSUMER
        await migration.everything_is_read()
        await migration.occupy(0, CLASSIC)
        assert await migration.kind() == CONSUMER
        await migration.occupy(1, CLASSIC)
        assert await migration.kind() == CLASSIC
        await migration.everything_is_read()
        assert all(member.failure is None for member, _ in migration.places.values())
    finally:
        await migration.close()
    assert await migration.committed() == {migration.produced}
    again = migration.read_again()
    assert not again, f"a commit did not reach the next owner: {again}"


# Not cooperative-sticky, for which its leader writes user data into assignments: a 4.1.1 refuses the upgrade.
@pytest.mark.parametrize("strategy", ["range", pytest.param("roundrobin", marks=pytest.mark.long)])
def test_librdkafka_members_migrate_one_by_one_and_back(chroot: str, tmp_path: Path, strategy: str) -> None:
    with broker_thread(chroot, tmp_path, settings=SETTINGS, mount=(mount,), topics={TOPIC: PARTITIONS}) as bootstrap:
        asyncio.run(migrate(bootstrap, strategy))
