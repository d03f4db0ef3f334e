"""The transactions of three stock clients: each commits, aborts, and is fenced as a zombie; each reads what the others
committed; and groups of them copy a topic in transactions, through a rebalance, each record once.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.values import TopicPartition
from kernel.waiting import wait_until
from tests.coordinator.transactions.transactional import read
from tests.support.brokers.live import broker_thread
from tests.support.consumers.consuming import producing
from tests.support.stock.conversation import heard, stock_client
from tests.support.stock.transactions import CLIENTS

#: Each client's error after a later incarnation has taken its transactional id.
FENCED = {"confluent-kafka": "_FENCED", "kafka-python": "ProducerFencedError", "aiokafka": "ProducerFenced"}
WRITTEN = {"read_committed": ["a", "b", "d", "end"], "read_uncommitted": ["a", "b", "c", "d", "end"]}
FENCING = {
    "read_committed": ["of its successor", "end"],
    "read_uncommitted": ["of the zombie", "of its successor", "end"],
}
RECORDS = 10
child = partial(stock_client, "transactions")


def test_stock_clients_commit_abort_fence_and_read_each_other(chroot: str, tmp_path: Path):
    topics = {f"{story}-{client}": 1 for story in ("ends", "zombie") for client in CLIENTS}
    with broker_thread(chroot, tmp_path, mount=(mount,), topics=topics) as bootstrap:
        with ExitStack() as stack:
            ending = [stack.enter_context(child("ends", c, bootstrap, f"ends-{c}")) for c in CLIENTS]
            fencing = {c: stack.enter_context(child("zombie", c, bootstrap, f"zombie-{c}")) for c in CLIENTS}
            assert [heard(process) for process in ending] == ["done"] * len(CLIENTS)
            assert {client: heard(process) for client, process in fencing.items()} == FENCED
        readers = dict(zip(CLIENTS, [*list(CLIENTS)[1:], *list(CLIENTS)[:1]], strict=True))
        expected = [
            (f"{story}-{writer}", reader, values)
            for writer, reader in readers.items()
            for story, values in (("ends", WRITTEN), ("zombie", FENCING))
        ]
        with ExitStack() as stack:
            reading = [stack.enter_context(child("read", reader, bootstrap, topic)) for topic, reader, _ in expected]
            for (topic, reader, values), process in zip(expected, reading, strict=True):
                assert heard(process) == values, (topic, reader)


@pytest.mark.parametrize("client", CLIENTS)
def test_group_of_stock_clients_copies_each_record_once_through_a_rebalance(client: str, chroot: str, tmp_path: Path):
    out = TopicPartition("out", 0)
    with (
        broker_thread(chroot, tmp_path, mount=(mount,), topics={"in": 2, "out": 1}) as bootstrap,
        ExitStack() as stack,
        ThreadPoolExecutor(1) as pool,
    ):
        written = itertools.count()
        sent = _fill(bootstrap, written)
        first = stack.enter_context(child("copy", client, bootstrap, "copier-1"))
        assert heard(first) > 0
        second = stack.enter_context(child("copy", client, bootstrap, "copier-2"))
        joined = pool.submit(heard, second)
        while not joined.done():  # there is always something to copy while the group rebalances
            sent += _fill(bootstrap, written)
            wait([joined], timeout=0.1)
        assert joined.result() > 0
        sent += _fill(bootstrap, written)
        wait_until(
            lambda: len(asyncio.run(read(bootstrap, out))) >= len(sent), 60, "everything to be copied", every_s=0.2
        )
        for process in (first, second):
            _end(process)
        assert sorted(asyncio.run(read(bootstrap, out))) == sorted(sent), "nothing lost, nothing twice"


def _fill(bootstrap: str, written: Iterator[int]) -> list[str]:
    """RECORDS records into each partition of topic `in`."""
    numbers = list(itertools.islice(written, RECORDS))

    async def fill() -> None:
        async with producing(bootstrap) as producer:
            await producer.send_values("in", lambda partition: [f"{partition}-{n}".encode() for n in numbers])

    asyncio.run(fill())
    return [f"{partition}-{n}" for partition in (0, 1) for n in numbers]


def _end(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=120)  # closes its standard input
    assert process.returncode == 0, errors[-2000:]
