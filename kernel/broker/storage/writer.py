"""The one thread that writes an incarnation's file, with group commit.

All queued writes, of any partitions, go into one transaction. After the commit each partition's publications are
checked, and only writes that are not fenced are acknowledged. If the transaction fails (a full disk), nothing is stored
or acknowledged, and the terms stay as they were. If the *check* fails, the write is stored but not acknowledged, and
the term is closed: it has to be taken over again before more is appended.

Internal errors (`internal_errors`): an exception in one log's job rolls the transaction back and stops that log; the
transaction is repeated without it. An exception between jobs stops the logs of all current jobs. One in the thread
itself ends the storage; the thread then only refuses jobs.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections import ChainMap, deque
from dataclasses import astuple, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from kernel.broker.storage.appending import AppendPlan, ProducerState, plan_append
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError, StorageFailed
from kernel.broker.storage.files import (
    FOLDER,
    MISUSES,
    PAIRS_BY_OFFSET,
    SqliteTransaction,
    create_file,
    faults_named,
    fill_up,
    make_room,
)
from kernel.broker.storage.internal_errors import log_stopped
from kernel.broker.storage.jobs import Append, Forget, Index, Job, JobResult, Room, Stop, TakeOver, Trim, Upsert
from kernel.broker.storage.terms import Term, producer_row, take_over
from kernel.broker.storage.trimming import trim
from kernel.records.batches import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kernel.platform.threads import Threads
    from kernel.records.transactions import OpenTransactions

log = logging.getLogger(__name__)

#: Jobs per transaction; the rest waits for the next one.
_GROUP_MAX = 256
#: Producers whose state is kept, per partition; the one silent for longest is forgotten first, as if its state
#: had expired (Kafka's producer.id.expiration.ms bounds it by time instead).
PRODUCERS_MAX = 2_000


class _InternalError(Exception):
    """An unexpected exception while a job of `term` was being stored."""

    def __init__(self, term: Term) -> None:
        super().__init__(str(term.topic_partition))
        self.term = term


@dataclass(slots=True)
class _Staged:
    """What one term becomes if the transaction commits."""

    end_offset: int
    transactions: OpenTransactions
    producers: dict[int, ProducerState] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)


#: How long a tombstone stays readable (Kafka's default for a topic's delete.retention.ms).
TOMBSTONES_KEPT_MS = 86_400_000
#: Statements by the number of pairs they store, largest first; few, so that SQLite keeps them prepared.
_PAIR_COLUMNS = 5
_STORE_PAIRS = [
    (size, "INSERT OR REPLACE INTO pair VALUES " + ", ".join(["(?, ?, ?, ?, ?)"] * size)) for size in (250, 50, 10, 1)
]


class Writer:
    """Owns the file's connection. The event loop submits jobs and gets the results, in order."""

    def __init__(
        self,
        data_dir: Path,
        file: str,
        threads: Threads,
        answered: Callable[[list[JobResult]], None],
        failed: Callable[[LogStopped], None],
    ) -> None:
        """`failed` is called on the thread, with the internal error that ended it."""
        self._data_dir = data_dir
        self._file = file
        self._answered = answered
        self._failed = failed
        self._waiting: deque[Job] = deque()  # taken off the queue
        self._at_work: Sequence[Job] = ()  # of these, the ones without a result
        with faults_named(f"create {data_dir / FOLDER / file}"):
            self._connection = create_file(data_dir / FOLDER / file)
        self._refuses: LogStopped | None = None  # everything, after an internal error
        self._worker = threads.worker(self._run, f"storage-{file}")
        self.start, self.submit = self._worker.start, self._worker.put

    def join(self) -> None:
        """Call once `Stop` has its result."""
        self._worker.join()

    # -- on the thread -----------------------------------------------------------------------------------------

    def _run(self, jobs: list[Job]) -> bool:
        """Whether more may come."""
        if self._refuses is not None:
            return self._refuse(jobs, self._refuses)
        self._waiting.extend(jobs)
        try:
            return self._work()
        except BaseException as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            self._refuses = log_stopped(f"the storage in {self._file}", bug)
            self._failed(self._refuses)
            return self._refuse([*self._at_work, *self._waiting], self._refuses)

    def _work(self) -> bool:
        """Run all jobs; False after `Stop`."""
        waiting = self._waiting
        while waiting:
            if isinstance(waiting[0], Stop):
                self._stop()
                return False
            if isinstance(waiting[0], Append | Upsert):
                self._at_work = writes = _at_front(waiting, Append | Upsert)
                answers = self._group(writes)
            elif isinstance(waiting[0], TakeOver):
                self._at_work = takeovers = _at_front(waiting, TakeOver)
                answers = self._take_over(takeovers)
            elif isinstance(waiting[0], Trim):
                self._at_work = (trim_job := waiting.popleft(),)
                answers = [self._trim(trim_job)]
            else:
                self._at_work = (job := waiting.popleft(),)
                answers = [self._rare(job)]
            self._answered(answers)
            self._at_work = ()
        return True

    def _stop(self) -> None:
        stop = self._waiting.popleft()
        answers: list[JobResult] = []
        try:
            with faults_named(f"close {self._file}"):
                self._connection.close()
            answers.append((stop, None, None))
        except StorageFailed as failure:
            answers.append((stop, None, failure))
        closed = Fenced("the storage was closed")
        self._answered([*((job, None, closed) for job in self._waiting), *answers])

    def _refuse(self, jobs: Sequence[Job], failure: LogStopped) -> bool:
        """Refuse jobs and store nothing; False after `Stop`."""
        self._answered([(job, None, None if isinstance(job, Stop) else failure) for job in jobs])
        if not any(isinstance(job, Stop) for job in jobs):
            return True
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        return False

    def _take_over(self, jobs: Sequence[TakeOver]) -> list[JobResult]:
        done = take_over(self._connection, self._data_dir, self._file, [job.request for job in jobs])
        return [
            (job, None, result) if isinstance(result, StorageError) else (job, result, None)
            for job, result in zip(jobs, done, strict=True)
        ]

    def _trim(self, job: Job) -> JobResult:
        try:
            assert isinstance(job, Trim), job
            trim(self._connection, self._file, job)
        except StorageError as refusal:
            return job, None, refusal
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            return job, None, log_stopped(f"deleting old records in {self._file}", bug)
        return job, None, None

    def _rare(self, job: Job) -> JobResult:
        if isinstance(job, Index):
            return self._index(job)
        return self._room(job) if isinstance(job, Room) else self._forget(job)

    def _room(self, job: Room) -> JobResult:
        try:
            with faults_named(f"change the room of {self._file}"):
                (fill_up if job.full else make_room)(self._connection)
        except StorageFailed as failure:
            return job, None, failure
        return job, None, None

    def _forget(self, job: Job) -> JobResult:
        try:
            assert isinstance(job, Forget), job
            with faults_named(f"delete the records of topic {job.topic_id}"), SqliteTransaction(self._connection):
                rows = self._connection.execute("SELECT term FROM term WHERE topic_id = ?", (job.topic_id.hex,))
                terms = rows.fetchall()
                for table in ("batch", "producer", "aborted", "pair", "term"):
                    self._connection.executemany(f"DELETE FROM {table} WHERE term = ?", terms)
        except StorageFailed as failure:
            return job, None, failure
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            return job, None, log_stopped(f"the deletion of a topic's records in {self._file}", bug)
        return job, None, None

    def _index(self, job: Index) -> JobResult:
        """Create the index; without it, reads scan all pairs of the partition."""
        try:
            with faults_named("create an index of pairs by offset"):
                self._connection.execute(PAIRS_BY_OFFSET)
        except StorageFailed as failure:
            log.warning("%s", failure)
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            return job, None, log_stopped(f"the index of pairs in {self._file}", bug)
        return job, None, None

    def _group(self, jobs: Sequence[Append | Upsert]) -> list[JobResult]:
        """Run all `jobs` in one transaction; results in their order."""
        while True:
            try:
                return self._transaction(jobs)
            except _InternalError as bug:
                bug.term.stop(bug.__cause__ or bug)  # and repeat without it
            except Exception as bug:  # noqa: BLE001 - a bug, in any of the jobs
                return [(job, None, job.term.stop(bug)) for job in jobs]

    def _transaction(self, jobs: Sequence[Append | Upsert]) -> list[JobResult]:
        """Raises `_InternalError` with nothing stored."""
        staged: dict[Term, _Staged] = {}
        answers: list[JobResult] = []
        try:
            with faults_named("store records"), SqliteTransaction(self._connection):
                answers.extend(self._stored(job, staged) for job in jobs)
        except StorageFailed as failure:
            return [(job, None, failure) for job in jobs]
        refusals: dict[Term, StorageError] = {}
        for term, becomes in staged.items():
            if (refusal := _settled(term, becomes)) is not None:
                refusals[term] = refusal
        return [
            (job, value, None) if not (refusal := error or refusals.get(job.term)) else (job, None, refusal)
            for job, (_, value, error) in zip(jobs, answers, strict=True)
        ]

    def _stored(self, job: Append | Upsert, staged: dict[Term, _Staged]) -> JobResult:
        try:
            return self._store(job, staged)
        except MISUSES as bug:
            raise _InternalError(job.term) from bug
        except (StorageError, sqlite3.Error, OSError):
            raise
        except Exception as bug:
            raise _InternalError(job.term) from bug

    def _store(self, job: Append | Upsert, staged: dict[Term, _Staged]) -> JobResult:
        """Write one job's rows. Refusals are decided before anything is written, and change nothing."""
        term = job.term
        if term.closed is not None:
            return job, None, term.refusal()
        becomes = staged.get(term) or _Staged(term.end_offset, term.transactions)
        if isinstance(job, Upsert):
            self._store_pairs(term, job, becomes.end_offset)
            becomes.end_offset += len(job.pairs)
            staged[term] = becomes
            return job, becomes.end_offset, None
        try:
            producers = ChainMap(becomes.producers, term.producers)
            plan = plan_append(becomes.end_offset, producers, job.batches, becomes.transactions)
        except StorageError as refusal:
            return job, None, refusal
        self._store_batches(term, plan)
        becomes.end_offset, becomes.transactions = plan.end_offset, plan.transactions
        becomes.producers.update(plan.producers)
        self._forget_silent(term, becomes)
        staged[term] = becomes
        return job, plan.result, None

    def _store_batches(self, term: Term, plan: AppendPlan) -> None:
        epoch = term.epoch.leader_epoch
        self._connection.executemany(
            "INSERT INTO batch VALUES (?, ?, ?, ?, ?)",
            [
                (
                    term.term,
                    p.base_offset,
                    p.last_offset,
                    p.batch.max_timestamp_ms,
                    placed(p.batch.payload, p.base_offset, epoch),
                )
                for p in plan.placements
            ],
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO producer VALUES (?, ?, ?, ?, ?, ?)",
            [
                producer_row(term.term, producer_id, state, plan.transactions)
                for producer_id, state in plan.producers.items()
            ],
        )
        if plan.aborted:
            self._connection.executemany(
                "INSERT INTO aborted VALUES (?, ?, ?, ?, ?)",
                [(term.term, *astuple(aborted)) for aborted in plan.aborted],
            )

    def _forget_silent(self, term: Term, becomes: _Staged) -> None:
        """Forget producers beyond PRODUCERS_MAX: `term.producers` is in the order of their last append.

        A producer with an open transaction is kept, as in Kafka: its marker is still to come.
        """
        known = len(term.producers) + sum(producer_id not in term.producers for producer_id in becomes.producers)
        surplus = known - len(becomes.forgotten) - PRODUCERS_MAX
        if surplus <= 0:
            return
        spared = becomes.producers.keys() | becomes.forgotten | becomes.transactions.keys()
        silent = list(islice((known for known in term.producers if known not in spared), surplus))
        self._connection.executemany(
            "DELETE FROM producer WHERE term = ? AND producer_id = ?",
            [(term.term, producer_id) for producer_id in silent],
        )
        becomes.forgotten.update(silent)

    def _store_pairs(self, term: Term, job: Upsert, first: int) -> None:
        """Store pairs in order, from offset `first` on. Few large statements: each one competes with the event loop
        for the interpreter lock.
        """
        number, written_ms = term.term, job.timestamp_ms
        columns = [
            column
            for offset, (key, value) in enumerate(job.pairs, first)
            for column in (number, key, value, offset, written_ms)
        ]
        at = 0
        for size, statement in _STORE_PAIRS:
            while at + _PAIR_COLUMNS * size <= len(columns):
                self._connection.execute(statement, columns[at : at + _PAIR_COLUMNS * size])
                at += _PAIR_COLUMNS * size
        if any(value is None for _, value in job.pairs):
            # Never the newest one, whose offset marks the end of the log.
            self._connection.execute(
                "DELETE FROM pair WHERE term = ? AND value IS NULL AND timestamp_ms < ? AND at_offset < ?",
                (number, written_ms - TOMBSTONES_KEPT_MS, first),
            )


def _at_front(waiting: deque[Job], kinds: Any) -> list[Any]:
    """Take jobs of these kinds off the front, up to the first other one: jobs run in the order of submission."""
    jobs: list[Any] = []
    while waiting and len(jobs) < _GROUP_MAX and isinstance(waiting[0], kinds):
        jobs.append(waiting.popleft())
    return jobs


def _settled(term: Term, becomes: _Staged) -> StorageError | None:
    """Check the fence of `term` after a commit: why the write is not acknowledged, or None."""
    try:
        _settle(term, becomes)
        # THE fence: after the commit, before any acknowledgement.
        return _refusal(term)
    except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
        return term.stop(bug)


def _settle(term: Term, becomes: _Staged) -> None:
    """Update the term after the commit."""
    term.end_offset, term.transactions = becomes.end_offset, becomes.transactions
    for producer_id in becomes.forgotten - becomes.producers.keys():
        del term.producers[producer_id]
    for producer_id, state in becomes.producers.items():
        term.producers.pop(producer_id, None)  # to the end of the order
        term.producers[producer_id] = state


def _refusal(term: Term) -> StorageError | None:
    try:
        with faults_named(f"check for a newer epoch of {term.topic_partition}"):
            term.check_fence()
    except StorageFailed as failure:
        term.closed = f"{term.topic_partition}: it is unknown whether another broker leads ({failure})"
        return failure
    except StorageError as fenced:
        return fenced
    return None
