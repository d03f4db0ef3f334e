"""Random faults one after the other, on a group of real members and a real ensemble of three servers.

Verify that after each heal every partition has exactly the owner that the range rule names, unless a member whose
rebalance has failed, and to which nothing has happened since, prevents that: the original leaves it idle as well. At
the end, no record is lost, and every member started to deliver at a committed offset. The long run also verifies that
each group has settled within session timeout + one tick + rebalance.max.retries x (rebalance.backoff.ms + the longest
attempt); on a machine that pauses, it may not.

Setup: three ZooKeeper servers, one broker, a producer that never stops, members that come and go.

Steps: joins, leaves, kill -9, freezes shorter and longer than a session, sessions that end while their member is
healthy, servers that are killed and restarted. `--seed` repeats a run.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from comparison.scenarios.processes.fork_server import ForkServer
from kernel.broker.broker import Broker
from kernel.client.producer import Producer
from kernel.serials import numbered_value
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits
from kernel.zookeeper.txnlog import read_ensemble
from tests.faults.soak import GROUP, PARTITIONS, TICK_MS, TOPIC, Soak
from tests.support.brokers.live import client_of, create_topics, running_broker
from tests.support.zookeeper.sessions import opened

SEED = 20110114
RECORDS_A_SECOND = 200


@pytest.mark.faults
def test_soak_every_partition_has_one_owner_after_each_of_20_faults(tmp_path: Path, given_seed: int | None) -> None:
    soak(tmp_path, 20, given_seed or SEED, timed=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_soak_every_partition_has_one_owner_after_each_of_200_faults(tmp_path: Path, given_seed: int | None) -> None:
    soak(tmp_path, 200, given_seed or SEED, timed=True)


def soak(folder: Path, steps: int, seed: int, *, timed: bool) -> None:
    with EmbeddedZooKeeper(folder / "zookeeper", servers=3, limits=Limits(tick_ms=TICK_MS)) as ensemble:
        run, produced = asyncio.run(story(folder, ensemble, steps, seed, timed))
    (folder / "soak.txt").write_text(run.described("done"), encoding="utf-8")
    assert lacking(run, produced) == {}, run.described("records were lost")
    committed = committed_offsets(ensemble)
    for partition, starts in run.starts().items():
        unknown = starts - committed.get(partition, set()) - {0}
        assert not unknown, run.described(f"{partition} was started at {unknown}, which nobody had committed")


async def story(
    folder: Path, ensemble: EmbeddedZooKeeper, steps: int, seed: int, timed: bool
) -> tuple[Soak, dict[TopicPartition, int]]:
    async with AsyncExitStack() as stack:
        settings = {"zookeeper.session.timeout.ms": "30000"}
        broker = await stack.enter_async_context(
            running_broker(ensemble.connect_string, folder / "data", settings=settings)
        )
        await create_topics(broker, {TOPIC: PARTITIONS})
        session = await stack.enter_async_context(
            opened(ensemble.connect_string, timeout_ms=30_000, retry_forever=True)
        )
        fork_server = await ForkServer.open()
        stack.push_async_callback(fork_server.stop)
        run = Soak(folder, ensemble, fork_server, session, seed, timed)
        stack.push_async_callback(run.end)
        stop = asyncio.Event()
        producing = asyncio.create_task(produce(broker, stop))
        try:
            await run.join_local()
            await run.join_process()
            await run.settle("start")
            for _ in range(steps):
                await run.step()
            if run.ended[-1].idle:  # a change brings them back
                await run.join_local()
                await run.settle("a join behind the last fault")
        finally:
            stop.set()
            produced = await producing
        await until(
            lambda: lacking(run, produced) == {},
            90,
            lambda: run.described(f"all records to be delivered; missing: {lacking(run, produced)}"),
        )
        return run, produced


async def produce(broker: Broker, stop: asyncio.Event) -> dict[TopicPartition, int]:
    """Numbered records into every partition until `stop` is set; {partition: how many}."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    produced = dict.fromkeys(partitions, 0)
    async with client_of(broker) as client:
        producer = Producer(client)
        while not stop.is_set():
            for partition in partitions:
                await producer.send(partition, numbered_value(produced[partition]))
                produced[partition] += 1
            await asyncio.sleep(PARTITIONS / RECORDS_A_SECOND)
        await producer.close()
    return produced


def lacking(run: Soak, produced: dict[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
    """{partition: (delivered without a gap, produced)} where these differ."""
    delivered = run.delivered()
    reached = {}
    for partition, number in produced.items():
        upto = 0
        for first, after in sorted(delivered.get(partition, [])):
            upto = max(upto, after) if first <= upto else upto
        if upto < number:
            reached[partition] = (upto, number)
    return reached


def committed_offsets(ensemble: EmbeddedZooKeeper) -> dict[TopicPartition, set[int]]:
    """Every offset that was ever committed, from ZooKeeper's transaction log."""
    found: dict[TopicPartition, set[int]] = {}
    for transaction in read_ensemble([server.data_dir for server in ensemble.servers]):
        named = paths.parse_offset(transaction.path)
        if named is not None and named.group == GROUP and transaction.data:
            found.setdefault(TopicPartition(named.topic, named.partition), set()).add(int(transaction.data))
    return found
