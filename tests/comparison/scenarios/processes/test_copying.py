"""Incarnations of a copier on a real broker: what the older one may still do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comparison.scenarios.processes.copying import Copier, read_all, read_first
from comparison.scenarios.testbed.cluster_access import ClusterAccess
from coordinator.client.calls import GroupCalls
from kernel.values import TopicPartition
from tests.coordinator.transactions.test_data import broker_at

VALUES = [b"a", b"b", b"c", b"d"]


ONE_BY_ONE = [b"a", b"b", b"c", b"d"]
#: Kafka's smallest; the broker's group.min.session.timeout.ms.
SESSION_MS = 6_000


@pytest.mark.parametrize(
    ("name", "answers", "copies"),
    [
        ("x", ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "PRODUCER_FENCED"), ONE_BY_ONE),
        ("", ("", "UNKNOWN_MEMBER_ID", ""), [b"a", b"b", *ONE_BY_ONE, b"c", b"d"]),
    ],
    ids=["transactions", "plain"],
)
async def test_older_incarnation_is_fenced_by_the_group_and_in_transactions_also_by_the_log(
    name: str, answers: tuple[str, str, str], copies: list[bytes], chroot: str, tmp_path: Path
) -> None:
    async with broker_at(chroot, tmp_path) as bootstrap:
        access = await ClusterAccess.open(bootstrap)
        (to, *_) = await access.partitions_of("copies", create=True)
        (origin, *_) = await access.partitions_of("orders", create=True)
        group = GroupCalls("copiers", SESSION_MS, SESSION_MS, 10_000)
        lasting = GroupCalls("copiers", 60_000, 60_000, 10_000)
        zombie, successor = Copier(access.client, name), Copier(access.client, name)
        await zombie.join(group, origin)
        await zombie.begin()
        assert (await zombie.add(to), await zombie.write(to, VALUES[:2])) == ("", "")
        await successor.join(lasting, origin)  # once the session of the zombie, which sends no heartbeat, is over
        await successor.begin()
        assert (await successor.add(to), await successor.write(to, VALUES)) == ("", "")
        assert (await successor.commit_offset(origin, 4), await successor.commit()) == ("", "")
        late = await zombie.write(to, VALUES[2:]), await zombie.commit_offset(origin, 4), await zombie.commit()
        assert late == answers
        assert await read_all(access.client, to) == copies
        await access.close()


async def test_first_records_are_read_as_soon_as_they_are_there(chroot: str, tmp_path: Path) -> None:
    async with broker_at(chroot, tmp_path) as bootstrap:
        access = await ClusterAccess.open(bootstrap)
        (origin, *_) = await access.partitions_of("orders", create=True)
        assert isinstance(origin, TopicPartition)
        reading = asyncio.create_task(read_first(access.client, origin, 2))
        for value in VALUES[:3]:
            await access.send(origin, value)
        assert await reading == VALUES[:2]
        await access.close()
