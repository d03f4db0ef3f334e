"""Logs that drop their oldest records: on real SQLite files, across terms and incarnations."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from kernel.broker.storage.chain import Chain, Segment, trimmed
from kernel.broker.storage.errors import Fenced, OffsetOutOfRange, StorageFailed
from kernel.broker.storage.logs import PartitionLog
from kernel.broker.storage.reading import Reader
from kernel.broker.storage.storage import Storage
from tests.support.brokers.stored import TOPIC_ID, TP, batch, cells, everything, opened


async def written(storage: Storage, epoch: int, text: str, *, records: int = 1) -> PartitionLog:
    """The log at `epoch`, with a batch for each letter; its timestamp is the letter's code."""
    log = await storage.take_over(TP, TOPIC_ID, epoch)
    for letter in text:
        await log.append([batch(letter, records, timestamp_ms=ord(letter))])
    return log


def rows(folder: Path, storage: Storage) -> int:
    with closing(sqlite3.connect(folder / "incarnations" / storage.file)) as connection:
        count: int = connection.execute("SELECT count(*) FROM batch").fetchone()[0]
        return count


@pytest.mark.parametrize("before", range(8))
async def test_trimmed_beginning_applies_to_the_leader_and_every_successor(tmp_path: Path, before: int) -> None:
    async with opened(tmp_path, 1) as first, opened(tmp_path, 2) as second:
        await written(first, 0, "abc")
        await written(second, 1, "de")
        log = await written(first, 2, "fg")
        assert await log.trim(before) == before
        for epoch, leader in enumerate((None, second, first), 2):
            led = log if leader is None else await leader.take_over(TP, TOPIC_ID, epoch)
            assert (led.start_offset, led.end_offset) == (before, 7)
            assert await everything(led) == "abcdefg"[before:]
            if before:
                with pytest.raises(OffsetOutOfRange):
                    await led.read(before - 1, 100)
        assert rows(tmp_path, first) == len("abcfg") - min(before, 3) - max(before - 5, 0), "only in its own file"
        assert rows(tmp_path, second) == 2
        led = await written(first, 5, "h")
        assert await everything(led) == "abcdefg"[before:] + "h"


async def test_trim_inside_a_batch_keeps_the_batch_and_starts_inside_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await written(storage, 0, "ab", records=10)
        assert await log.trim(15) == 15
        assert [offset for offset, _, _ in cells(await log.read(15, 100))] == [10]
        assert await log.batch_for_timestamp(0) is not None
        assert await log.trim(5) == 15, "what was trimmed stays trimmed"
        assert log.epochs == ((0, 15),)


async def test_trim_beyond_the_end_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await written(storage, 0, "ab")
        with pytest.raises(OffsetOutOfRange):
            await log.trim(3)
        assert await everything(log) == "ab"


async def test_trim_by_a_replaced_broker_is_refused_and_removes_no_record_of_its_successor(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as first, opened(tmp_path, 2) as second:
        old = await written(first, 0, "abc")
        new = await second.take_over(TP, TOPIC_ID, 1)
        with pytest.raises(Fenced):
            await old.trim(2)
        assert await everything(new) == "abc"
        assert rows(tmp_path, first) == 3
        assert await everything(await second.take_over(TP, TOPIC_ID, 2)) == "abc"


async def test_trim_on_a_failing_disk_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with opened(tmp_path) as storage:
        log = await written(storage, 0, "abc")
        with monkeypatch.context() as broken:
            broken.setattr("kernel.broker.storage.trimming.to_json", fails)
            with pytest.raises(StorageFailed):
                await log.trim(2)
        assert await everything(log) == "abc"
        assert await log.trim(2) == 2


async def test_expired_batches_are_a_prefix_by_age_and_by_size(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as first, opened(tmp_path, 2) as second:
        await written(first, 0, "abz")
        log = await written(second, 1, "cd")
        size = len(await log.read(0, 10**6)) // 5
        assert await log.expired_before(-1, -1) == 0
        assert await log.expired_before(ord("b"), -1) == 1
        assert await log.expired_before(ord("d"), -1) == 2, "the young batch keeps those after it"
        assert await log.expired_before(ord("z") + 1, -1) == 5
        assert await log.expired_before(-1, 5 * size) == 0
        assert await log.expired_before(-1, 5 * size - 1) == 0, "no less is ever left"
        assert await log.expired_before(-1, 2 * size) == 3
        assert await log.expired_before(-1, 2 * size - 1) == 3
        assert await log.expired_before(-1, 0) == 5
        assert await log.expired_before(ord("b"), 2 * size) == 3
        await log.append([batch("x", timestamp_ms=-1)])
        assert await log.expired_before(ord("z") + 1, -1) == 5, "a batch without a timestamp has no age"


def test_trimmed_chain_loses_whole_segments_and_shortens_one() -> None:
    chain = (Segment("a", 1, 0, 0, 3), Segment("b", 1, 1, 3, 5))
    assert trimmed(chain, 5, 0) == (chain, 5)
    assert trimmed(chain, 5, 2) == ((Segment("a", 1, 0, 2, 3), chain[1]), 5)
    assert trimmed(chain, 5, 3) == ((chain[1],), 5)
    assert trimmed(chain, 5, 4) == ((Segment("b", 1, 1, 4, 5),), 5)
    assert trimmed(chain, 5, 5) == ((), 5)
    assert trimmed(chain, 5, 9) == ((), 9)


async def test_batch_appended_during_a_retention_check_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as storage:
        log = await written(storage, 0, "ab")
        looking, go_on = threading.Event(), threading.Event()
        first_to_keep = Reader.first_to_keep

        def slow(reader: Reader, segments: Chain, oldest_ms: int) -> int | None:
            found = first_to_keep(reader, segments, oldest_ms)
            looking.set()
            assert go_on.wait(10)
            return found

        monkeypatch.setattr(Reader, "first_to_keep", slow)
        expired = asyncio.create_task(log.expired_before(ord("y"), -1))
        assert await asyncio.to_thread(looking.wait, 10)
        await log.append([batch("z", timestamp_ms=ord("z"))])
        go_on.set()
        assert await expired == 2
