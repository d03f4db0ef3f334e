"""Pairs as a log read by offset: each write, also a tombstone, has the next offset, under any leader."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka.record._crecords import DefaultRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.broker.storage import files, reading, terms, writer
from kernel.broker.storage.errors import OffsetOutOfRange
from kernel.broker.storage.logs import KeyValueLog
from kernel.records.records import headers_of
from kernel.values import TopicPartition
from tests.support.brokers.stored import TOPIC_ID, opened_on
from tests.support.properties import examples

TP = TopicPartition("__consumer_offsets", 0)
DAY_MS = 86_400_000

keys = st.binary(min_size=1, max_size=1)
upserts = st.lists(st.tuples(keys, st.none() | st.binary(max_size=3)), max_size=20)


class Read(NamedTuple):
    offset: int
    leader_epoch: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


def unpacked(data: bytes) -> list[Read]:
    found = []
    for header, batch in headers_of(data):
        assert (header.producer_id, header.attributes) == (-1, 0)
        records = DefaultRecordBatch(bytes(batch))
        assert records.validate_crc()
        found += [Read(r.offset, header.leader_epoch, r.timestamp, r.key, r.value) for r in records]
    return found


async def everything(log: KeyValueLog, at_once: int = 1 << 20) -> list[Read]:
    """Everything in the log, by consecutive reads as of a consumer."""
    position, found = log.start_offset, list[Read]()
    while data := await log.read(position, at_once):
        assert len(data) <= at_once or len(unpacked(data)) == 1
        found += unpacked(data)
        position = found[-1].offset + 1
    assert position == log.end_offset, "a consumer gets to the end"
    return found


@given(history=st.lists(st.tuples(st.booleans(), upserts), min_size=1, max_size=6))
@settings(max_examples=examples(20))
def test_newest_write_of_every_key_keeps_its_offset_under_any_leader(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[bool, list[tuple[bytes, bytes | None]]]]
):
    """Each step is a term of one of two incarnations, possibly of the one that led before."""

    async def body() -> None:
        expected: dict[bytes, Read] = {}
        written, first_of = 0, {}
        async with AsyncExitStack() as stack:
            folder = tmp_path_factory.mktemp("pairs")
            storages = [await opened_on(stack, folder, node_id) for node_id in (1, 2)]
            for epoch, (other, pairs) in enumerate(history):
                log = await storages[other].take_over_pairs(TP, TOPIC_ID, epoch)
                assert log.end_offset == written
                await log.upsert(pairs, timestamp_ms=100 + epoch)
                if pairs:
                    first_of[epoch] = written
                for offset, (key, value) in enumerate(pairs, written):
                    expected[key] = Read(offset, epoch, 100 + epoch, key, value)
                written += len(pairs)
                assert (log.start_offset, log.end_offset) == (0, written)
                assert log.epochs == tuple(first_of.items())
                for at_once in (1, 200, 1 << 20):
                    assert await everything(log, at_once) == sorted(expected.values())
                assert dict(await log.items()) == {k: r.value for k, r in expected.items() if r.value is not None}

    asyncio.run(body())


async def test_tailing_reader_sees_every_write_and_tombstone_in_order(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage = await opened_on(stack, tmp_path, 1)
        log = await storage.take_over_pairs(TP, TOPIC_ID, 0)
        assert storage.pairs_of(TP) is log
        seen: list[tuple[int, bytes, bytes | None]] = []
        moved = asyncio.Event()
        log.on_advance(moved.set)
        for number in range(5):
            await log.upsert([(b"k", None if number == 3 else b"%d" % number)])
            await asyncio.wait_for(moved.wait(), 60)
            moved.clear()
            seen += [(r.offset, r.key, r.value) for r in unpacked(await log.read(number, 1000))]
        assert seen == [(n, b"k", None if n == 3 else b"%d" % n) for n in range(5)]
        with pytest.raises(OffsetOutOfRange):
            await log.read(6, 1000)
        storage.resign(TP)
        assert storage.pairs_of(TP) is None


async def test_tombstones_are_kept_for_a_day_and_the_newest_one_forever(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage, successor = await opened_on(stack, tmp_path, 1), await opened_on(stack, tmp_path, 2)
        log = await storage.take_over_pairs(TP, TOPIC_ID, 0)
        await log.upsert([(b"a", b"1"), (b"b", b"1")], 0)
        await log.upsert([(b"a", None)], 10)
        await log.upsert([(b"b", None)], 10 + DAY_MS)
        assert [(r.offset, r.key) for r in await everything(log)] == [(2, b"a"), (3, b"b")]
        await log.upsert([(b"c", b"1")], 11 + DAY_MS)
        await log.upsert([(b"c", None)], 11 + DAY_MS)
        assert [(r.offset, r.key) for r in await everything(log)] == [(3, b"b"), (5, b"c")]
        await log.upsert([(b"c", None)], 100 * DAY_MS)
        led = await successor.take_over_pairs(TP, TOPIC_ID, 1)
        assert [(r.offset, r.key) for r in await everything(led)] == [(6, b"c")], "the end stays where it was"
        assert led.end_offset == 7
        assert await led.items() == []


async def test_time_is_looked_up_among_existing_pairs(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage = await opened_on(stack, tmp_path, 1)
        log = await storage.take_over_pairs(TP, TOPIC_ID, 4)
        for at_ms, key in ((100, b"a"), (200, b"b"), (300, b"a"), (250, b"c")):
            await log.upsert([(key, b"v")], at_ms)
        found = [unpacked(data)[0] if (data := await log.batch_for_timestamp(t)) else None for t in (0, 201, 301)]
        assert found == [Read(1, 4, 200, b"b", b"v"), Read(2, 4, 300, b"a", b"v"), None]


async def test_one_read_returns_at_most_its_bound_or_one_large_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with AsyncExitStack() as stack:
        storage = await opened_on(stack, tmp_path, 1)
        log = await storage.take_over_pairs(TP, TOPIC_ID, 0)
        await log.upsert([(b"%d" % n, b"v") for n in range(reading.PAIRS_READ_MAX + 5)])
        assert len(unpacked(await log.read(0, 1 << 30))) == reading.PAIRS_READ_MAX
        assert len(await everything(log)) == reading.PAIRS_READ_MAX + 5
        end = log.end_offset
        await log.upsert([(b"large", bytes(5_000)), (b"small", b"v")])
        assert [r.key for r in unpacked(await log.read(end, 100))] == [b"large"]
        assert await log.read(end, 100, at_least_one=False) == b""
        assert len(unpacked(await log.read(end, 6_000))) == 2


async def test_write_committed_after_the_snapshot_by_a_stopped_holder_keeps_its_own_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The pairs are copied a moment after the end was read; a write in between was not acknowledged, but is copied."""
    insert_all, late = terms._insert_all, list[tuple[bytes, bytes, int]]()

    def insert_late(connection: sqlite3.Connection, data_dir: Path, source: str, ready: Any) -> Any:
        if source and late:
            with sqlite3.connect(data_dir / files.FOLDER / source) as other:
                other.executemany("INSERT OR REPLACE INTO pair VALUES (1, ?, ?, ?, 7)", late)
            other.close()
        return insert_all(connection, data_dir, source, ready)

    monkeypatch.setattr(terms, "_insert_all", insert_late)
    async with AsyncExitStack() as stack:
        old, new, last = [await opened_on(stack, tmp_path, n) for n in (1, 2, 3)]
        log = await old.take_over_pairs(TP, TOPIC_ID, 0)
        await log.upsert([(b"a", b"1"), (b"b", b"1")], 5)
        late.append((b"a", b"late", 2))
        led = await new.take_over_pairs(TP, TOPIC_ID, 1)
        late.clear()
        assert led.end_offset == 3
        await led.upsert([(b"c", b"1")], 8)
        expected = [Read(1, 0, 5, b"b", b"1"), Read(2, 0, 7, b"a", b"late"), Read(3, 1, 8, b"c", b"1")]
        assert await everything(led) == expected
        assert led.epochs == ((0, 0), (1, 3))
        assert await everything(await last.take_over_pairs(TP, TOPIC_ID, 2)) == expected


async def test_pairs_of_a_file_without_offsets_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = files._SCHEMA[: files._SCHEMA.index("CREATE TABLE pair")] + (
        "CREATE TABLE pair (term INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
        " PRIMARY KEY (term, key)) WITHOUT ROWID;"
    )
    async with AsyncExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setattr(files, "_SCHEMA", before)
            old = await opened_on(stack, tmp_path, 1)
        await old.take_over_pairs(TP, TOPIC_ID, 0)
        with sqlite3.connect(tmp_path / files.FOLDER / old.file) as connection:
            connection.executemany("INSERT INTO pair VALUES (1, ?, ?)", [(b"b", b"2"), (b"a", b"1")])
        connection.close()
        led = await (await opened_on(stack, tmp_path, 2)).take_over_pairs(TP, TOPIC_ID, 1)
        assert await led.items() == [(b"a", b"1"), (b"b", b"2")]
        await led.upsert([(b"a", b"3")], 9)
        assert await everything(led) == [Read(1, 0, -1, b"b", b"2"), Read(2, 1, 9, b"a", b"3")]


async def test_unacknowledged_write_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with AsyncExitStack() as stack:
        storage, successor = await opened_on(stack, tmp_path, 1), await opened_on(stack, tmp_path, 2)
        log = await storage.take_over_pairs(TP, TOPIC_ID, 0)
        await log.upsert([(b"a", b"1"), (b"b", b"1")])
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_settled", lambda *_: OSError("no look"))
            with pytest.raises(OSError, match="no look"):
                await log.upsert([(b"b", b"2")])
        assert [r.value for r in unpacked(await log.read(0, 1000))] == [b"1"]
        assert log.end_offset == 2
        led = await successor.take_over_pairs(TP, TOPIC_ID, 1)
        assert [(r.offset, r.value) for r in await everything(led)] == [(0, b"1"), (2, b"2")]
