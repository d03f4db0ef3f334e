"""Incarnations of a copier on a real broker: the older one is fenced if both have a transactional id."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from comparison.scenarios.testbed.cluster_access import ClusterAccess
from comparison.scenarios.testbed.copying import Copier, read_all, read_first
from kernel.values import TopicPartition
from tests.coordinator.transactions.test_data import broker_at

if TYPE_CHECKING:
    from pathlib import Path

VALUES = [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize(
    ("name", "answers", "copies"),
    [
        ("x", ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"), [b"a", b"b", b"c", b"d"]),
        ("", ("", ""), [b"a", b"b", b"a", b"b", b"c", b"d", b"c", b"d"]),
    ],
    ids=["transactions", "plain"],
)
def test_older_incarnation_is_fenced_in_transactions_only(
    name: str, answers: tuple[str, str], copies: list[bytes], chroot: str, tmp_path: Path
) -> None:
    async def test() -> None:
        async with broker_at(chroot, tmp_path) as bootstrap:
            access = await ClusterAccess.open(bootstrap)
            (to, *_) = await access.partitions_of("copies", create=True)
            zombie, successor = Copier(access.client, name), Copier(access.client, name)
            await zombie.begin()
            assert (await zombie.add(to), await zombie.write(to, VALUES[:2])) == ("", "")
            await successor.begin()
            assert (await successor.add(to), await successor.write(to, VALUES), await successor.commit()) == (
                "",
                "",
                "",
            )
            assert (await zombie.write(to, VALUES[2:]), await zombie.commit()) == answers
            assert await read_all(access.client, to) == copies
            await access.close()

    asyncio.run(test())


def test_first_records_are_read_as_soon_as_they_are_there(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with broker_at(chroot, tmp_path) as bootstrap:
            access = await ClusterAccess.open(bootstrap)
            (origin, *_) = await access.partitions_of("orders", create=True)
            assert isinstance(origin, TopicPartition)
            reading = asyncio.create_task(read_first(access.client, origin, 2))
            for value in VALUES[:3]:
                await access.send(origin, value)
            assert await reading == VALUES[:2]
            await access.close()

    asyncio.run(test())
