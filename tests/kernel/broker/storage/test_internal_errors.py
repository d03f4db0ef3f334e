"""Internal errors injected into a real storage: what stops, who is notified, what goes on."""

from __future__ import annotations

import asyncio
import errno
import logging
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.cluster.cluster_view import Leadership
from kernel.broker.cluster.config_store import ConfigStore
from kernel.broker.cluster.led_logs import LedLogs
from kernel.broker.storage import storage as storage_module
from kernel.broker.storage import terms, writer
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError, StorageFailed
from kernel.broker.storage.files import SqliteTransaction
from kernel.broker.storage.jobs import Append
from kernel.broker.storage.retention import Retention
from kernel.broker.storage.storage import Storage
from kernel.broker.storage.trimming import trim
from kernel.records.batches import placed
from kernel.values import TopicPartition
from tests.support.brokers.stored import TOPIC_ID, TP, batch, everything
from tests.support.time.manual_clock import ManualClock

OTHER = TopicPartition("orders", 4)
BUGS = [MemoryError(), sqlite3.ProgrammingError("Incorrect number of bindings supplied"), struct.error("short")]


class Failing:
    """Replaces a function, and raises `bug` when `when` returns True."""

    def __init__(self, instead_of: Callable[..., Any], bug: BaseException, when: Callable[..., bool]) -> None:
        self._instead_of, self._bug, self._when = instead_of, bug, when

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._when(*arguments, **named):
            raise self._bug
        return self._instead_of(*arguments, **named)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Storage, list[tuple[TopicPartition, StorageError]]]]:
    """A storage, and its notifications of logs that closed by themselves."""
    storage = Storage(folder, 1)
    closed: list[tuple[TopicPartition, StorageError]] = []
    storage.on_closed = lambda tp, error: closed.append((tp, error))
    await storage.start()
    try:
        yield storage, closed
    finally:
        await asyncio.wait_for(storage.close(), 60)


async def outcomes(*waiting: Any) -> list[object]:
    """The outcome of each of these, within seconds: a value or an error."""
    return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[BaseException]:
    return [r.exc_info[1] for r in caplog.records if r.levelno == logging.CRITICAL and r.exc_info and r.exc_info[1]]


@pytest.mark.parametrize("bug", BUGS, ids=lambda m: type(m).__name__)
async def test_bug_while_storing_one_logs_batch_stops_only_that_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bug: Exception
):
    """Both logs' appends are in one transaction, which is repeated without the one that cannot be stored."""
    async with opened(tmp_path) as (storage, closed):
        sick = await storage.take_over(TP, TOPIC_ID, 0)
        sound = await storage.take_over(OTHER, TOPIC_ID, 0)
        await sick.append([batch("a")])
        failing = Failing(placed, bug, lambda payload, *_: b"bad" in payload)
        monkeypatch.setattr(writer, "placed", failing)
        appends = [sound.append([batch("x")]), sick.append([batch("b"), batch("bad")]), sick.append([batch("c")])]
        first, guilty, behind, last = await outcomes(*appends, sound.append([batch("y")]))
        assert isinstance(guilty, LogStopped)
        assert isinstance(behind, (LogStopped, Fenced))  # by whether it came before the log was stopped
        assert not isinstance(first, BaseException)
        assert not isinstance(last, BaseException)
        assert await everything(sound) == "xy", "stored once, though the transaction was repeated"
        await sound.append([batch("z")])
        assert await everything(sound) == "xyz"
        assert tracebacks(caplog) == [bug]
        assert [tp for tp, _ in closed] == [TP]
        assert isinstance(closed[0][1], LogStopped)
        with pytest.raises(Fenced):
            await sick.append([batch("d")])
        taken_over = await storage.take_over(TP, TOPIC_ID, 1)
        assert await everything(taken_over) == "a", "nothing that was refused was stored"


@pytest.mark.parametrize("bug", BUGS, ids=lambda m: type(m).__name__)
async def test_bug_between_jobs_stops_only_the_logs_of_these_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bug: Exception
):
    async with opened(tmp_path) as (storage, closed):
        sick, pairs = await storage.take_over(TP, TOPIC_ID, 0), await storage.take_over_pairs(OTHER, TOPIC_ID, 0)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteTransaction, "__enter__", Failing(SqliteTransaction.__enter__, bug, lambda *_: True))
            (refused,) = await outcomes(sick.append([batch("a")]))
        assert isinstance(refused, LogStopped)
        await pairs.upsert([(b"k", b"v")])
        assert await pairs.items() == [(b"k", b"v")]
        assert [tp for tp, _ in closed] == [TP]
        assert tracebacks(caplog) == [bug]


async def test_bug_after_the_commit_is_not_acknowledged_and_stops_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The record is stored: a successor finds it, as after any write that was not acknowledged."""
    async with opened(tmp_path) as (storage, closed):
        sick, sound = await storage.take_over(TP, TOPIC_ID, 0), await storage.take_over(OTHER, TOPIC_ID, 0)
        of_sick = Failing(writer._settle, MemoryError(), lambda term, _: term.topic_partition == TP)
        monkeypatch.setattr(writer, "_settle", of_sick)
        refused, stored = await outcomes(sick.append([batch("a")]), sound.append([batch("x")]))
        assert isinstance(refused, LogStopped)
        assert not isinstance(stored, BaseException)
        assert sick.end_offset == 0, "not acknowledged, so not visible"
        assert [tp for tp, _ in closed] == [TP]
        assert await everything(await storage.take_over(TP, TOPIC_ID, 1)) == "a"
        assert len(tracebacks(caplog)) == 1


async def test_bug_during_a_takeover_refuses_only_that_takeover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, _):
        failing = Failing(terms._inherit, struct.error("short"), lambda *given: given[-1] == TP.partition)
        monkeypatch.setattr(terms, "_inherit", failing)
        refused, log = await outcomes(storage.take_over(TP, TOPIC_ID, 0), storage.take_over_pairs(OTHER, TOPIC_ID, 0))
        assert isinstance(refused, LogStopped)
        assert not isinstance(log, BaseException)
        assert [type(error) for error in tracebacks(caplog)] == [struct.error]


async def test_bug_while_terms_are_begun_refuses_them_and_later_ones_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, _):
        with monkeypatch.context() as patch:
            patch.setattr(terms, "_insert", Failing(terms._insert, MemoryError(), lambda *_: True))
            (refused,) = await outcomes(storage.take_over(TP, TOPIC_ID, 0))
        assert isinstance(refused, LogStopped)
        log = await storage.take_over(TP, TOPIC_ID, 0)
        await log.append([batch("a")])
        assert len(tracebacks(caplog)) == 1


async def test_bug_of_the_writer_thread_fails_all_requests_and_reports_dead_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, closed):
        died: list[LogStopped] = []
        storage.on_failed = died.append
        log, other = await storage.take_over(TP, TOPIC_ID, 0), await storage.take_over_pairs(OTHER, TOPIC_ID, 0)
        failing = Failing(writer.Writer._group, MemoryError(), lambda *_: True)
        monkeypatch.setattr(writer.Writer, "_group", lambda *given: failing(*given))  # noqa: PLW0108 - a method
        behind = [log.append([batch(letter)]) for letter in "ab"]
        refused = await outcomes(*behind, storage.take_over(TopicPartition("later", 0), TOPIC_ID, 0))
        assert [type(error) for error in refused] == [LogStopped] * 3
        assert {tp for tp, _ in closed} == {TP, OTHER}
        assert len(died) == 1
        for write in (log.append([batch("c")]), other.upsert([(b"k", b"v")])):
            assert isinstance((await outcomes(write))[0], Fenced)
        (late,) = await outcomes(storage.take_over(TP, TOPIC_ID, 1))
        assert isinstance(late, LogStopped), "what comes later is answered, too"
        assert len(tracebacks(caplog)) == 1


async def test_bug_of_one_waiter_for_records_does_not_affect_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, closed):
        sick, sound = await storage.take_over(TP, TOPIC_ID, 0), await storage.take_over(OTHER, TOPIC_ID, 0)

        def fails() -> None:
            raise MemoryError

        heard: list[int] = []
        sick.on_advance(fails)
        sick.on_advance(lambda: heard.append(sick.end_offset))
        stored = await outcomes(sick.append([batch("a")]), sound.append([batch("x")]))
        assert not any(isinstance(one, BaseException) for one in stored)
        assert heard == [1]
        assert not closed
        assert len(tracebacks(caplog)) == 1


async def test_bug_while_delivering_a_result_does_not_affect_other_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, closed):
        sick, sound = await storage.take_over(TP, TOPIC_ID, 0), await storage.take_over(OTHER, TOPIC_ID, 0)
        failing = Failing(Append.acknowledged, MemoryError(), lambda job, _: job.term.topic_partition == TP)
        monkeypatch.setattr(Append, "acknowledged", lambda job, result: failing(job, result))  # noqa: PLW0108 - a method
        refused, stored = await outcomes(sick.append([batch("a")]), sound.append([batch("x")]))
        assert isinstance(refused, LogStopped)
        assert not isinstance(stored, BaseException)
        assert [tp for tp, _ in closed] == [TP]
        assert isinstance((await outcomes(sick.append([batch("b")])))[0], Fenced)
        assert len(tracebacks(caplog)) == 1


async def test_deletion_with_a_bug_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, _):
        log = await storage.take_over(OTHER, TOPIC_ID, 0)
        with monkeypatch.context() as patch:
            patch.setattr(
                SqliteTransaction, "__enter__", Failing(SqliteTransaction.__enter__, MemoryError(), lambda *_: True)
            )
            (refused,) = await outcomes(storage.forget_topic(TOPIC_ID))
        assert isinstance(refused, LogStopped)
        assert isinstance((await outcomes(log.append([batch("x")])))[0], Fenced), "its publication is gone"
        assert len(tracebacks(caplog)) == 1


async def test_disk_errors_are_not_bugs_and_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, closed):
        log = await storage.take_over(TP, TOPIC_ID, 0)
        for fault in (sqlite3.OperationalError("database or disk is full"), OSError(errno.EROFS, "read-only")):
            with monkeypatch.context() as patch:
                patch.setattr(
                    SqliteTransaction, "__enter__", Failing(SqliteTransaction.__enter__, fault, lambda *_: True)
                )
                (refused,) = await outcomes(log.append([batch("a")]))
            assert isinstance(refused, StorageFailed)
        await log.append([batch("b")])
        assert await everything(log) == "b"
        assert not closed
        assert not tracebacks(caplog)


async def test_result_without_a_waiter_is_not_a_bug(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async with opened(tmp_path) as (storage, closed):
        log = await storage.take_over(TP, TOPIC_ID, 0)
        impatient = asyncio.create_task(log.append([batch("a")]))
        await asyncio.sleep(0)
        impatient.cancel()
        await log.append([batch("b")])
        assert await everything(log) == "ab"
        assert not closed
        assert not tracebacks(caplog)
        assert storage._room._value == storage_module._QUEUED_MAX, "its place in the queue is free again"


async def test_retention_skips_a_log_stopped_by_a_bug_and_trims_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with opened(tmp_path) as (storage, _):
        logs, clock = LedLogs(storage), ManualClock()
        configs = ConfigStore(1, {"log.retention.ms": "1000"}, clock)
        retention = Retention(logs.all, configs.of, clock, interval_ms=1)
        for tp in (TP, OTHER):
            await logs.on_lead(Leadership(tp, TOPIC_ID, 0))
        sick, sound = logs.all()
        for log in (sick, sound):
            await log.append([batch("a", timestamp_ms=clock.wall_ms() - 5000)])
        failing = Failing(trim, MemoryError(), lambda *given: given[-1].term.topic_partition == TP)
        monkeypatch.setattr(writer, "trim", failing)
        await retention.look()
        assert (sick.start_offset, sound.start_offset) == (0, 1)
        await sound.append([batch("b", timestamp_ms=clock.wall_ms() - 5000)])
        await retention.look()
        assert (sick.start_offset, sound.start_offset) == (0, 2), "later rounds skip it as well"
