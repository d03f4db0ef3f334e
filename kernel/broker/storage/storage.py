"""The storage of one broker incarnation: a facade over its writer, its readers and its open logs.

Layout of the data directory, which all brokers of a machine share:

    incarnations/broker-<node>-<incarnation>.sqlite   one file (with -wal and -shm), one writer; .claim beside it
    epochs/<topic id>/<partition>/<leader epoch>.<attempt>   who may write, published (see epochs.py)
    epochs/<topic id>/topic   the topic's name
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from typing import TYPE_CHECKING, TypeVar

from kernel.broker.storage.epochs import topic_folder, topic_named
from kernel.broker.storage.errors import Fenced, StorageError
from kernel.broker.storage.files import SUFFIX, faults_named
from kernel.broker.storage.internal_errors import log_stopped
from kernel.broker.storage.jobs import Append, Forget, Index, Room, Stop, TakeOver, Trim, Upsert
from kernel.broker.storage.logs import KeyValueLog, Log, PartitionLog
from kernel.broker.storage.reading import Reader
from kernel.broker.storage.terms import Term, TermRequest
from kernel.broker.storage.writer import Writer
from kernel.random_ids import fresh_uuid
from kernel.runtime import REAL, Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

    from kernel.broker.storage.errors import LogStopped
    from kernel.broker.storage.jobs import Job, JobResult
    from kernel.values import TopicPartition

Argument = TypeVar("Argument")

#: Size of the writer's queue; further callers wait. It bounds memory, at message.max.bytes per batch.
_QUEUED_MAX = 256


class Storage:
    """`await start()` before use. SQLite runs on separate threads; nothing here blocks the event loop."""

    def __init__(self, data_dir: Path, node_id: int, incarnation: str | None = None, runtime: Runtime = REAL) -> None:
        self.data_dir = data_dir
        self.file = f"broker-{node_id}-{incarnation or fresh_uuid(runtime.random).hex}{SUFFIX}"
        self._threads = runtime.threads
        self._logs: dict[TopicPartition, Log] = {}
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._room = asyncio.Semaphore(_QUEUED_MAX)
        self._indexing: asyncio.Future[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Called on the event loop when a log has closed by itself: Fenced (another broker leads), StorageFailed
        #: (the fence could not be checked; take the log over again) or LogStopped (an internal error).
        self.on_closed: Callable[[TopicPartition, StorageError], None] | None = None
        #: Called on the event loop when an internal error has ended the writer; every log is closed by then.
        self.on_failed: Callable[[LogStopped], None] | None = None
        self.failure: LogStopped | None = None  #: what `on_failed` was called with, or would have been

    async def start(self) -> None:
        """Create this incarnation's file. Raises StorageFailed: not writable, full, or it exists already."""
        self._loop = asyncio.get_running_loop()
        self._writer = await self._threads.run(self._open)
        self._reader = Reader(self.data_dir, self.file, self._threads)
        self._writer.start()

    async def close(self) -> None:
        """Finish queued jobs and close the file. Open logs refuse writes from now on. Idempotent."""
        writer, reader, self._writer, self._reader = self._writer, self._reader, None, None
        if writer is None or reader is None:
            return
        for tp in list(self._logs):
            self.resign(tp)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        # Readers first: the last connection to close checkpoints the write-ahead log, and only the writer can.
        await self._threads.run(reader.close)
        writer.submit(Stop(future))
        await future
        await self._threads.run(writer.join)

    async def take_over(self, tp: TopicPartition, topic_id: UUID, leader_epoch: int) -> PartitionLog:
        """Lead a partition of records: fence every predecessor, and continue after what they have acknowledged.

        Raises Fenced (a higher epoch is published), StorageFailed.
        """
        log = PartitionLog(await self._begin(tp, topic_id, leader_epoch), self._opened_reader(), self._perform)
        self._logs[tp] = log
        return log

    async def take_over_pairs(self, tp: TopicPartition, topic_id: UUID, leader_epoch: int) -> KeyValueLog:
        """As `take_over`, for a partition of pairs."""
        term = await self._begin(tp, topic_id, leader_epoch)
        log = KeyValueLog(term, self._opened_reader(), self._perform, self._index_pairs)
        self._logs[tp] = log
        return log

    def pairs_of(self, tp: TopicPartition) -> KeyValueLog | None:
        """The log of pairs, if it was taken over and not resigned since."""
        log = self._logs.get(tp)
        return log if isinstance(log, KeyValueLog) else None

    def resign(self, tp: TopicPartition) -> None:
        """Close the log of `tp`, if there is one: queued writes fail with Fenced."""
        log = self._logs.pop(tp, None)
        if log is not None:
            log.close(f"{tp}: this broker has resigned its leadership")

    def stop_log(self, tp: TopicPartition, bug: LogStopped) -> None:
        """Close the log of `tp` after an internal error in the code that uses it."""
        log = self._logs.pop(tp, None)
        if log is not None:
            log.close(str(bug))
            self._notify_closed(tp, bug)

    async def topic_id_of(self, name: str) -> UUID | None:
        """The id under which a topic of that name has records here, or None. Raises StorageFailed."""
        with faults_named(f"look for the id of topic {name}"):
            return await self._threads.run(topic_named, self.data_dir, name)

    async def forget_topic(self, topic_id: UUID) -> None:
        """Make a deleted topic impossible to lead, and delete our rows of it. Raises StorageFailed."""
        with faults_named(f"forget topic {topic_id}"):
            await self._threads.run(shutil.rmtree, topic_folder(self.data_dir, topic_id), True)
        await self._perform(Forget(topic_id, asyncio.get_running_loop().create_future()))

    async def fill_up(self, *, full: bool) -> None:
        """Leave this incarnation's file no room to grow, as on a full disk, or lift that. Raises StorageFailed."""
        await self._perform(Room(full, asyncio.get_running_loop().create_future()))

    # -- internals ---------------------------------------------------------------------------------------------

    def _open(self) -> Writer:
        return Writer(self.data_dir, self.file, self._threads, self._answered, self._failed)

    def _opened_reader(self) -> Reader:
        if self._reader is None:
            raise Fenced("the storage was closed")
        return self._reader

    async def _begin(self, tp: TopicPartition, topic_id: UUID, leader_epoch: int) -> Term:
        self.resign(tp)
        term = await self._perform(
            TakeOver(TermRequest(tp, topic_id, leader_epoch), asyncio.get_running_loop().create_future())
        )
        assert isinstance(term, Term)
        return term

    async def _index_pairs(self) -> None:
        """Create the index once per file, however many readers start together."""
        if self._indexing is None:
            future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            self._indexing = asyncio.ensure_future(self._perform(Index(future)))
        with contextlib.suppress(StorageError):  # reading works without it
            await asyncio.shield(self._indexing)

    async def _perform(self, job: Job) -> object:
        await self._room.acquire()
        if self._writer is None:
            self._room.release()
            raise Fenced("the storage was closed")
        self._writer.submit(job)
        return await job.future

    def _answered(self, answers: list[JobResult]) -> None:
        """Runs on the writer's thread."""
        self._call_soon(self._deliver, answers)

    def _failed(self, failure: LogStopped) -> None:
        """Runs on the writer's thread."""
        self._call_soon(self._close_all, failure)

    def _call_soon(self, call: Callable[[Argument], None], argument: Argument) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(call, argument)
        except RuntimeError:
            return  # the event loop is closed: there is no waiter left

    def _close_all(self, failure: LogStopped) -> None:
        self.failure = failure
        for tp in list(self._logs):
            self.stop_log(tp, failure)
        if self.on_failed is not None:
            self.on_failed(failure)

    def _deliver(self, answers: list[JobResult]) -> None:
        for job, value, given in answers:
            error = given
            if not isinstance(job, Stop):
                self._room.release()
            try:
                if isinstance(job, Append | Upsert) and error is None:
                    job.acknowledged(value)
                if isinstance(job, Trim) and error is None:
                    job.acknowledged()
                if isinstance(job, Append | Upsert | Trim) and error is not None:
                    self._notice(job.term, error)
            except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
                assert isinstance(job, Append | Upsert | Trim), job
                error = job.term.stop(bug)
                self._notice(job.term, error)
            finally:
                _answer(job.future, value, error)

    def _notice(self, term: Term, error: StorageError) -> None:
        """Close a log whose term the writer has closed; only once, and not after it was resigned."""
        log = self._logs.get(term.topic_partition)
        if term.closed is not None and log is not None and log.belongs_to(term):
            del self._logs[term.topic_partition]
            log.close(term.closed)
            self._notify_closed(term.topic_partition, error)

    def _notify_closed(self, tp: TopicPartition, error: StorageError) -> None:
        try:
            if self.on_closed is not None:
                self.on_closed(tp, error)
        except Exception as bug:  # noqa: BLE001 - a bug: other jobs wait for their results
            log_stopped(f"the listener for closed logs ({tp})", bug)


def _answer(future: asyncio.Future[object], value: object, error: StorageError | None) -> None:
    if future.done():
        return  # its caller was cancelled; the job was done anyway
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
