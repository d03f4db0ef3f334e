"""Logs of pairs: many at once, carried from file to file, and all that was acknowledged survives kill -9."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.broker.storage import terms
from kernel.broker.storage.errors import Fenced
from kernel.broker.storage.reading import Pairs
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.stored import TOPIC_ID, StorageProcess, opened_on
from tests.support.properties import examples

TOPIC = "__consumer_offsets"
#: Seed of the moments at which processes are killed.
SEED = 20110628

keys = st.binary(min_size=1, max_size=3)
upserts = st.lists(st.tuples(keys, st.none() | st.binary(max_size=3)), max_size=30)


def tp(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


@given(history=st.lists(st.tuples(st.booleans(), upserts), min_size=1, max_size=6))
@settings(max_examples=examples(20))
def test_pairs_have_their_last_values_under_any_leader_and_in_any_file(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[bool, list[tuple[bytes, bytes | None]]]]
):
    """Each step is a term of one of two incarnations, possibly of the one that led before."""

    async def body() -> None:
        expected: dict[bytes, bytes] = {}
        async with AsyncExitStack() as stack:
            folder = tmp_path_factory.mktemp("pairs")
            storages = [await opened_on(stack, folder, node_id) for node_id in (1, 2)]
            for epoch, (other, pairs) in enumerate(history):
                log = await storages[other].take_over_pairs(tp(0), TOPIC_ID, epoch)
                assert await log.items() == sorted(expected.items())
                await log.upsert(pairs)
                for key, value in pairs:
                    expected.pop(key, None)
                    if value is not None:
                        expected[key] = value
                assert await log.items() == sorted(expected.items())

    asyncio.run(body())


async def test_thousands_of_pairs_are_taken_over_completely(tmp_path: Path):
    stored = [(b"%05d" % n, bytes([n % 256]) * (n % 40)) for n in range(2_001)]
    async with AsyncExitStack() as stack:
        old, new = await opened_on(stack, tmp_path, 1), await opened_on(stack, tmp_path, 2)
        log = await old.take_over_pairs(tp(0), TOPIC_ID, 0)
        await log.upsert(stored)
        taken_over = await new.take_over_pairs(tp(0), TOPIC_ID, 1)
        assert await taken_over.items() == stored
        pages = await taken_over.pages()
        assert len(pages) > 2
        assert [pair for page in pages for pair in page] == stored
        assert [pair for page in pages for pair in page] == stored, "a page can be iterated again"


async def test_values_of_any_size_are_read_beside_small_ones(tmp_path: Path):
    sizes = [0, 1, 65_536, 65_537, 200_000]
    stored = [(b"%d" % number, bytes(size)) for number, size in enumerate(sizes)]
    async with AsyncExitStack() as stack:
        storage = await opened_on(stack, tmp_path, 1)
        log = await storage.take_over_pairs(tp(0), TOPIC_ID, 0)
        await log.upsert(stored)
        assert await log.items() == stored


async def test_partitions_of_several_brokers_are_taken_over_at_once(tmp_path: Path):
    """Each holds something else: pairs in two predecessors' files, in the successor's, records, and nothing."""
    async with AsyncExitStack() as stack:
        a, b, successor = [await opened_on(stack, tmp_path, node_id) for node_id in (1, 2, 3)]
        for number, storage in enumerate((a, b, successor, a, b)):
            log = await storage.take_over_pairs(tp(number), TOPIC_ID, 0)
            await log.upsert([(b"k", b"%d" % number), (b"gone", b"1"), (b"gone", None)])
        wishes = [successor.take_over_pairs(tp(number), TOPIC_ID, 1) for number in range(6)]
        logs = await asyncio.gather(*wishes)
        found = [await log.items() for log in logs]
        assert found == [*([(b"k", b"%d" % number)] for number in range(5)), []]
        again = await a.take_over_pairs(tp(2), TOPIC_ID, 2)
        assert await again.items() == [(b"k", b"2")]
        other_topic = await a.take_over_pairs(tp(2), UUID(int=8), 0)
        assert await other_topic.items() == []


async def test_predecessor_that_begins_another_term_meanwhile_removes_no_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It has published an epoch, is stopped, and stores its term after its successor has looked for the last one."""
    published, looked, stored = threading.Event(), threading.Event(), threading.Event()
    insert_all = terms._insert_all

    def in_this_order(writer: Any, data_dir: Path, source: str, ready: Any) -> Any:
        epoch = ready[0].epoch.leader_epoch
        if epoch == 1:
            published.set()
            looked.wait(60)
        elif epoch == 2:
            looked.set()
            stored.wait(60)
        try:
            return insert_all(writer, data_dir, source, ready)
        finally:
            if epoch == 1:
                stored.set()

    monkeypatch.setattr(terms, "_insert_all", in_this_order)
    pairs = [(b"a", b"1"), (b"b", b"2")]
    async with AsyncExitStack() as stack:
        old, new = await opened_on(stack, tmp_path, 1), await opened_on(stack, tmp_path, 2)
        log = await old.take_over_pairs(tp(0), TOPIC_ID, 0)
        await log.upsert(pairs)
        again = asyncio.create_task(old.take_over_pairs(tp(0), TOPIC_ID, 1))
        await until(published.is_set, 60, "the older epoch to be withdrawn")
        taken_over = await new.take_over_pairs(tp(0), TOPIC_ID, 2)
        assert await taken_over.items() == pairs
        with pytest.raises(Fenced):
            await again


async def test_two_concurrent_terms_leave_the_pairs_to_the_later_one(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage = await opened_on(stack, tmp_path, 1)
        log = await storage.take_over_pairs(tp(0), TOPIC_ID, 0)
        await log.upsert([(b"k", b"v")])
        wishes = [storage.take_over_pairs(tp(0), TOPIC_ID, epoch) for epoch in (1, 2)]
        earlier, led = await asyncio.gather(*wishes, return_exceptions=True)
        assert not isinstance(led, BaseException)
        assert await led.items() == [(b"k", b"v")]
        if not isinstance(earlier, Fenced):  # it had finished before the later one began
            assert not isinstance(earlier, BaseException)
            with pytest.raises(Fenced):
                await earlier.upsert([(b"k", b"zombie")])
            assert await led.items() == [(b"k", b"v")]


def test_page_survives_a_round_trip():
    pairs = [(b"\0k", b""), (b"k", b"\xff\0 "), (b"l", b"v")]
    packed = " ".join(f"{key.hex().upper()} {value.hex().upper()}" for key, value in pairs)
    assert list(Pairs(packed)) == pairs


def test_holder_stopped_in_a_transaction_does_not_block_its_successor(tmp_path: Path) -> None:
    with StorageProcess(tmp_path, "--linger", "4") as old:
        old.ask(do="pairs", epoch=0)
        old.ask(do="upsert", pairs=[["g", "1"]])
        old.command(do="flood_pairs")
        seen = [old.answer()["acknowledged"] for _ in range(3)]
        old.stop()
        with StorageProcess(tmp_path) as new:
            new.ask(do="pairs", epoch=1)
            found = dict(new.ask(do="items")["ok"])
            assert found["g"] == "1"
            assert int(found["n"]) >= seen[-1]
            new.ask(do="upsert", pairs=[["n", "new"]])
            old.go_on()
            while "acknowledged" in (answer := old.answer()):
                assert answer["acknowledged"] <= int(found["n"]), "it was acknowledged behind the successor's back"
            assert answer["refused"] == "Fenced"
            assert dict(new.ask(do="items")["ok"])["n"] == "new"


def test_acknowledged_pairs_survive_kills_at_any_moment(tmp_path: Path) -> None:
    """Each process writes as fast as it can and is killed; the next one must have what it acknowledged."""
    choose = random.Random(SEED)
    acknowledged = 0
    for epoch in range(5):
        with StorageProcess(tmp_path) as process:
            process.ask(do="pairs", epoch=epoch)
            found = dict(process.ask(do="items")["ok"])
            assert int(found.get("n", -1)) >= acknowledged - 1, SEED
            process.command(do="flood_pairs", first=int(found.get("n", -1)) + 1)
            for _ in range(choose.randint(1, 60)):
                acknowledged = process.answer()["acknowledged"] + 1
            process.process.kill()
