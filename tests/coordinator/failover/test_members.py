"""Members of every kind whose coordinator is killed: they find the next one, and the group goes on as it was."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kernel.waiting import until
from tests.support.consumers.consuming import Running, partitions_of, producing
from tests.support.consumers.eager import eager
from tests.support.coordinators.failover import cluster
from tests.support.stock.members import CLIENTS, StockMember, stock_member

PARTITIONS = 8
#: Long enough for the slowest of them to find the next coordinator before its session expires.
SESSION_MS = 20_000


@pytest.mark.long
async def test_members_of_every_kind_find_the_next_coordinator_and_keep_their_partitions(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        brokers = await stack.enter_async_context(cluster(chroot, tmp_path, 3))
        await brokers.create_topic("shared", PARTITIONS)
        producer = await stack.enter_async_context(producing(brokers.bootstrap))
        bootstrap = brokers.bootstrap
        ours = eager(bootstrap, settings={"session.timeout.ms": str(SESSION_MS)})
        stack.push_async_callback(ours.close)
        await ours.begin({"shared": 1})
        stock = [
            await stack.enter_async_context(stock_member(kind, bootstrap, "g", "shared", session_ms=SESSION_MS))
            for kind in CLIENTS
        ]
        members: list[Running | StockMember] = [ours, *stock]
        everything = partitions_of("shared", PARTITIONS)
        await until(
            lambda: [len(m.owned) for m in members] == [2] * 4, 60, lambda: f"two each: {[m.owned for m in members]}"
        )
        assert frozenset().union(*(m.owned for m in members)) == everything
        had = [member.owned for member in members]
        sent = 0

        async def everything_is_read() -> None:
            nonlocal sent
            await producer.send("shared", 5)
            sent += 5

            def missing() -> dict[str, int]:
                """{member: how many records it has yet to read}."""
                read = {(record.partition, record.offset) for record in ours.records}.union(*(m.read for m in stock))
                counts = {
                    name: sum(sent - len([1 for p, _ in read if p == tp.partition]) for tp in member.owned)
                    for name, member in zip(("ours", *CLIENTS), members, strict=True)
                }
                return {name: count for name, count in counts.items() if count}

            await until(lambda: not missing(), 30, lambda: f"{missing()} missing records")

        await everything_is_read()
        for _ in range(3):
            victim = await brokers.coordinator_of("g")
            await brokers.kill(victim)
            await everything_is_read()
            await brokers.start(victim)
        for member in members:
            assert member.failure is None, member.failure
        assert [member.owned for member in members] == had
        assert len(ours.tracer.of("rebalance_started")) <= len(members), "none since the group was complete"
