"""What becomes of paused partitions in a rebalance of Kafka's own consumers, and of librdkafka's.

`tests/contract` has that ours do as Kafka's.
Asked of a real broker by hand as well: Kafka's consumers 0.9.0.1, 0.10.2.2, 1.1.1, 2.3.1, 2.4.1 and 3.9.1 drop every
pause with `range`, and 2.4.1 and 3.9.1 keep those of partitions that stay with `cooperative-sticky`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from tests.support.brokers.live import broker_thread
from tests.support.consumers.consuming import producing
from tests.support.java.member import VERSION
from tests.support.java.originals import require
from tests.support.stock.members import BROKERS, JAVA, stock_member

PARTITIONS, RECORDS, PATIENCE_S = 4, 5, 60
SETTINGS = {"group.consumer.heartbeat.interval.ms": "200", "group.consumer.min.heartbeat.interval.ms": "200"}


async def read_after_a_rebalance(bootstrap: str, kind: str, strategy: str) -> int:
    """How many records a member that paused all it had is handed of what it keeps, when another one has joined."""
    async with (
        producing(bootstrap) as producer,
        stock_member(kind, bootstrap, "g", "t", strategy=strategy, pauses=True) as first,
    ):
        await until(lambda: len(first.owned) == PARTITIONS, PATIENCE_S, "the first to own and pause everything")
        await producer.send("t", RECORDS)
        async with stock_member(kind, bootstrap, "g", "t", strategy=strategy) as second:
            half = PARTITIONS // 2
            await until(lambda: len(first.owned) == len(second.owned) == half, PATIENCE_S, "them to share")
            await until(lambda: len(second.read) == half * RECORDS, PATIENCE_S, "the second to read its part")
            await producer.send("t", RECORDS)
            await until(lambda: len(second.read) == 2 * half * RECORDS, PATIENCE_S, "the second to read again")
            return len(first.read)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", BROKERS])
@pytest.mark.parametrize("kind", [JAVA, "confluent"])
def test_pause_over_a_rebalance(chroot: str, tmp_path: Path, kind: str, strategy: str) -> None:
    """librdkafka keeps a pause in every protocol, Kafka's consumer only where partitions stay with their member."""
    if kind == JAVA:
        require(VERSION)
    with broker_thread(chroot, tmp_path, settings=SETTINGS, mount=(mount,), topics={"t": PARTITIONS}) as bootstrap:
        read = asyncio.run(read_after_a_rebalance(bootstrap, kind, strategy))
    assert bool(read) is (kind == JAVA and strategy == "range")
