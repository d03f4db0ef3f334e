"""`kill -9` of a transaction's coordinator: what it decided is carried out, and no transaction is applied in part."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from kernel.waiting import until, wait_until
from kernel.wire.errors import ErrorCode
from tests.coordinator.transactions.transactional import read, stable_and_end, transactional
from tests.support.coordinators.failover import Brokers, cluster

PARTITIONS = [TopicPartition("u", number) for number in range(4)]


async def settled(brokers: Brokers) -> None:
    """Wait until no transaction is open on any broker."""

    async def stable() -> bool:
        try:
            return all([len(set(await stable_and_end(brokers.bootstrap, tp))) == 1 for tp in PARTITIONS])
        except RebalanceLabError:
            return False

    await until(stable, 60, "every transaction to be completed")


def stopped(brokers: Brokers, node_id: int) -> None:
    pid = brokers.running[node_id][0].pid
    os.kill(pid, signal.SIGSTOP)
    status = Path(f"/proc/{pid}/stat")
    wait_until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "T", 60, "the broker to be stopped")


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
async def test_successor_completes_a_transaction_whose_coordinator_was_killed_after_prepare(
    commits: bool, chroot: str, tmp_path: Path
):
    """The other broker is stopped, so no marker can reach its partitions before the coordinator is killed."""
    async with cluster(chroot, tmp_path, 2) as brokers:
        await brokers.create_topic("u", len(PARTITIONS))
        async with transactional(brokers.bootstrap, "x") as producer:
            await producer.init()
            for tp in PARTITIONS:
                assert await producer.send(tp, str(tp)) is ErrorCode.none
            coordinator = await producer.coordinator()
            (other,) = brokers.running.keys() - {coordinator}
            stopped(brokers, other)
            assert (await producer.end_once(commits=commits)).error_code is ErrorCode.none
            process, _ = brokers.running[other]
            await brokers.kill(coordinator)
            os.kill(process.pid, signal.SIGCONT)
        await settled(brokers)
        for tp in PARTITIONS:
            assert await read(brokers.bootstrap, tp) == ([str(tp)] if commits else [])
        async with transactional(brokers.bootstrap, "x") as successor:
            await successor.init()
            assert (successor.producer_id, successor.epoch) == (producer.producer_id, producer.epoch + 1)
            assert await successor.send(PARTITIONS[0], "after") is ErrorCode.none
            assert await successor.end() is ErrorCode.none
        await settled(brokers)
        assert (await read(brokers.bootstrap, PARTITIONS[0]))[-1] == "after"


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
async def test_transactions_are_whole_whenever_their_coordinator_is_killed(rounds: int, chroot: str, tmp_path: Path):
    """A SIGKILL at a random moment around EndTxn; the producer asks again until some broker answers."""
    moments = random.Random(7)
    expected: dict[TopicPartition, list[str]] = {tp: [] for tp in PARTITIONS}
    async with cluster(chroot, tmp_path, 2) as brokers:
        await brokers.create_topic("u", len(PARTITIONS))
        for number in range(rounds):
            commits = number % 3 != 2
            async with transactional(brokers.bootstrap, f"x{number % 5}") as producer:
                await producer.init()
                for tp in PARTITIONS:
                    assert await producer.send(tp, f"{number}-{tp}") is ErrorCode.none
                coordinator = await producer.coordinator()
                ending: asyncio.Task[Any] = asyncio.create_task(producer.end(commits=commits))
                await asyncio.sleep(moments.uniform(0, 0.03))
                await brokers.kill(coordinator)
                assert await ending is ErrorCode.none
            await settled(brokers)
            await brokers.start(coordinator)
            for tp, values in expected.items():
                values.extend([f"{number}-{tp}"] if commits else [])
                assert await read(brokers.bootstrap, tp) == values, f"round {number}, {commits=}"
