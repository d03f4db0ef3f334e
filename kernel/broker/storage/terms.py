"""Takes over a partition: publishes an epoch and begins a term. Runs on the writer's thread.

The order of the steps makes it safe:

1. publish the epoch durably: from here on no predecessor can acknowledge anything;
2. read a snapshot of the newest predecessor that has a term: it holds everything that was ever acknowledged,
   because a write is acknowledged only after its commit and a check of the publications;
3. commit a term of our own, synced, with the chain of segments cut at the snapshot's end, the producers, and for
   pairs all of them, copied from file to file by one SQLite statement;
4. check again: another broker may have published a higher epoch, and not found our term because it did not exist yet.

A stopped writer (SIGSTOP) does not block readers, except in the instants in which it changes the header of its WAL
index; if a stop ever hits one, reading fails after some seconds and is retried (`leading.py`).

The pairs are copied in a later snapshot than the rest, from the partition's newest term in that file at the time: a
predecessor that has begun another term in between has moved them there. That can only add unacknowledged pairs:
either that term was published above ours, and step 4 finds it, or its own step 4 finds ours. The copy also determines
the successor's first offset.

A publication without a term belongs to a broker that died or was overtaken between steps 1 and 3. It has acknowledged
nothing, and is skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from kernel.broker.storage.appending import ProducerState, RememberedBatch
from kernel.broker.storage.chain import Chain, Segment, extended, from_json, to_json
from kernel.broker.storage.epochs import Epoch, PartitionEpochs, claim_of, name_topic
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError, StorageFailed
from kernel.broker.storage.files import FOLDER, SqliteTransaction, attached, faults_named, has_transactions, open_reader
from kernel.broker.storage.internal_errors import log_stopped
from kernel.broker.storage.previous_incarnations import check_never_led
from kernel.platform.syncing import synced
from kernel.records.transactions import (
    NO_TRANSACTIONS,
    OpenTransaction,
    OpenTransactions,
    no_transactions,
    oldest_first,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from uuid import UUID

    from kernel.values import TopicPartition


Done = TypeVar("Done")


@dataclass(slots=True, eq=False)
class Term:
    """One leadership of one partition by this incarnation; the writer's thread owns it.

    `end_offset`, `producers` and `transactions` are the committed state, which may briefly run ahead of what is
    acknowledged. `closed` is why the term refuses appends; an internal error sets `stopped` too.
    """

    topic_partition: TopicPartition
    topic_id: UUID
    epoch: Epoch
    epochs: PartitionEpochs
    file: str
    term: int
    start_offset: int  #: of this term, not of the log
    chain: Chain  #: what came before it
    end_offset: int
    producers: dict[int, ProducerState] = field(default_factory=dict)
    transactions: OpenTransactions = field(default_factory=no_transactions)
    closed: str | None = None
    stopped: LogStopped | None = None

    def stop(self, bug: BaseException) -> LogStopped:
        """Refuse all further writes: the state of the log can no longer be trusted."""
        if self.stopped is None:
            self.stopped = log_stopped(f"the log of {self.topic_partition}", bug)
            self.closed = self.closed or str(self.stopped)
        return self.stopped

    def refusal(self) -> StorageError:
        """The error for a write to a closed term."""
        assert self.closed is not None, "only a closed term refuses"
        return self.stopped or Fenced(self.closed)

    @property
    def log_start_offset(self) -> int:
        return self.chain[0].start if self.chain else self.start_offset

    def check_fence(self) -> None:
        """Raise Fenced and close the term if a higher epoch is published, or the topic was deleted."""
        if self.closed is None and not self.epochs.is_newest(self.epoch):
            self.closed = f"{self.topic_partition}: epoch {self.epoch} is no longer the newest, another broker leads"
        if self.closed is not None:
            raise self.refusal()


@dataclass(frozen=True, slots=True)
class Inherited:
    """The contents of a predecessor's snapshot."""

    chain: Chain
    end_offset: int
    producers: dict[int, ProducerState]
    pairs_in: str  #: the file with the pairs, '' if there are none
    transactions: OpenTransactions = field(default_factory=no_transactions)


NOTHING = Inherited((), 0, {}, "")


@dataclass(frozen=True, slots=True)
class TermRequest:
    """A leadership to take over."""

    topic_partition: TopicPartition
    topic_id: UUID
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """A term's row: its number, its first offset, and the chain before it."""

    term: int
    start: int
    chain: Chain


@dataclass(frozen=True, slots=True)
class _Published:
    """A request after steps 1 and 2."""

    request: TermRequest
    epochs: PartitionEpochs
    epoch: Epoch
    inherited: Inherited


def take_over(
    writer: sqlite3.Connection, data_dir: Path, file: str, requests: Sequence[TermRequest]
) -> list[Term | StorageError]:
    """Begin terms in `file`, whose writer is `writer`; in the order of `requests`.

    One transaction for each file that pairs are copied from (one file per dead broker), and one for the rest. The
    result of a failed takeover is its error (Fenced, StorageFailed, LogStopped).
    """
    published = [_attempt(request, partial(_publish, data_dir, file, request)) for request in requests]
    ready_by_source: dict[str, dict[int, _Published]] = {}
    for place, one in enumerate(published):
        if isinstance(one, _Published):
            source = one.inherited.pairs_in
            ready_by_source.setdefault("" if source == file else source, {})[place] = one
    begun: dict[int, _Begun | StorageError] = {}
    for source, ready in ready_by_source.items():
        begun.update(zip(ready, _insert_all(writer, data_dir, source, list(ready.values())), strict=True))
    return [
        _attempt(one.request, partial(_begin, one, file, begun[place])) if isinstance(one, _Published) else one
        for place, one in enumerate(published)
    ]


def _insert_all(
    writer: sqlite3.Connection, data_dir: Path, source: str, ready: Sequence[_Published]
) -> Sequence[_Begun | StorageError]:
    """Insert the rows of terms whose pairs come from the file `source` ('': our own file, or no pairs)."""
    path = data_dir / FOLDER / source if source else None
    try:
        with faults_named("begin terms"), attached(writer, path) as schema, SqliteTransaction(writer, sync=True):
            return [_insert(writer, schema, one) for one in ready]
    except StorageFailed as failure:
        return [failure] * len(ready)
    except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
        partitions = ", ".join(str(one.request.topic_partition) for one in ready)
        return [log_stopped(f"the takeover of {partitions}", bug)] * len(ready)


def _attempt(request: TermRequest, step: Callable[[], Done]) -> Done | StorageError:
    try:
        with faults_named(f"take over {request.topic_partition} at leader epoch {request.leader_epoch}"):
            return step()
    except StorageError as error:
        return error
    except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
        return log_stopped(f"the takeover of {request.topic_partition}", bug)


def _publish(data_dir: Path, file: str, request: TermRequest) -> _Published:
    epochs = PartitionEpochs(data_dir, request.topic_id, request.topic_partition.partition)
    # The first leader, at epoch 0, has no predecessor; a later one may have none that got this far.
    if request.leader_epoch > 0 and not epochs.published():
        check_never_led(data_dir, request.topic_id, request.topic_partition.partition, epochs.folder)
    epoch = epochs.publish(request.leader_epoch, claim_of(data_dir / FOLDER / file))
    name_topic(data_dir, request.topic_id, request.topic_partition.topic)
    inherited = _inherit(data_dir, epochs, epoch, request.topic_id, request.topic_partition.partition)
    return _Published(request, epochs, epoch, inherited)


def _begin(published: _Published, file: str, begun: _Begun | StorageError) -> Term:
    if isinstance(begun, StorageError):
        raise begun
    term = Term(
        topic_partition=published.request.topic_partition,
        topic_id=published.request.topic_id,
        epoch=published.epoch,
        epochs=published.epochs,
        file=file,
        term=begun.term,
        start_offset=begun.start,
        chain=begun.chain,
        end_offset=begun.start,
        producers=dict(published.inherited.producers),  # a copy: `NOTHING` is shared by all first terms
        transactions=published.inherited.transactions,
    )
    term.check_fence()
    published.epochs.prune_below(published.epoch)
    return term


def _inherit(data_dir: Path, epochs: PartitionEpochs, epoch: Epoch, topic_id: UUID, partition: int) -> Inherited:
    while True:
        try:
            for older in reversed(epochs.published()):
                if older < epoch:
                    file = epochs.file_of(older)
                    found = read_predecessor(data_dir, file, topic_id, partition, older)
                    if found is not None:
                        return found
        except FileNotFoundError:
            # Pruned since: a newer predecessor has committed its term. Read again.
            continue
        return NOTHING


def read_predecessor(data_dir: Path, file: str, topic_id: UUID, partition: int, epoch: Epoch) -> Inherited | None:
    """Read one snapshot of a term from another incarnation's file (or our own); None if it has no such term."""
    path = data_dir / FOLDER / file
    if not path.exists():
        raise StorageFailed(
            f"{path} is missing: it holds records of partition {partition} of topic {topic_id} that were acknowledged"
            " at epoch " + str(epoch) + ". Put it back, or delete the topic."
        )
    reader = open_reader(path)
    try:
        reader.execute("BEGIN")
        row = reader.execute(
            "SELECT term, start, chain FROM term"
            " WHERE topic_id = ? AND partition = ? AND leader_epoch = ? AND attempt = ?",
            (topic_id.hex, partition, epoch.leader_epoch, epoch.attempt),
        ).fetchone()
        if row is None:
            return None
        # What we build on must survive a power cut: the writer itself syncs only now and then.
        synced(path, *(wal for wal in [path.with_name(f"{path.name}-wal")] if wal.exists()))
        term, start, chain = row
        end = max(start, _end_of_batches(reader, term), _end_of_pairs(reader, "main", term))
        return Inherited(
            chain=extended(from_json(chain), Segment(file, term, epoch.leader_epoch, start, end)),
            end_offset=end,
            producers=_producers(reader, term),
            pairs_in=file if _has_pairs(reader, term) else "",
            transactions=_transactions(reader, term),
        )
    finally:
        reader.close()


def _end_of_batches(reader: sqlite3.Connection, term: int) -> int:
    """The offset after the last one; 0 if there is none."""
    newest = "SELECT last_offset FROM batch WHERE term = ? ORDER BY base_offset DESC LIMIT 1"
    last = reader.execute(newest, (term,)).fetchone()
    return 0 if last is None else int(last[0]) + 1


def _end_of_pairs(connection: sqlite3.Connection, schema: str, term: int) -> int:
    """As `_end_of_batches`. The newest pair is never deleted."""
    newest = f"SELECT coalesce(max(at_offset), -1) FROM {_pairs(connection, schema)} WHERE term = ?"
    [(last,)] = connection.execute(newest, (term,)).fetchall()
    return int(last) + 1


def _pairs(connection: sqlite3.Connection, schema: str) -> str:
    """The pairs of a file as a table. In old files, pairs have no offsets: they are numbered in the order of keys."""
    columns = {name for _, name, *_ in connection.execute(f"PRAGMA {schema}.table_info(pair)")}
    if "at_offset" in columns:
        return f"{schema}.pair"
    numbered = "row_number() OVER (PARTITION BY term ORDER BY key) - 1"
    return f"(SELECT term, key, value, {numbered} AS at_offset, -1 AS timestamp_ms FROM {schema}.pair)"


def _has_pairs(reader: sqlite3.Connection, term: int) -> bool:
    return reader.execute("SELECT 1 FROM pair WHERE term = ? LIMIT 1", (term,)).fetchone() is not None


def _producers(reader: sqlite3.Connection, term: int) -> dict[int, ProducerState]:
    coordinator_epoch = "coordinator_epoch" if has_transactions(reader) else "-1"
    rows = reader.execute(
        f"SELECT producer_id, producer_epoch, batches, {coordinator_epoch} FROM producer WHERE term = ?", (term,)
    )
    states = {
        producer_id: ProducerState(epoch, tuple(RememberedBatch(*batch) for batch in json.loads(batches)), coordinator)
        for producer_id, epoch, batches, coordinator in rows
    }
    # In the order of their last append, in which they are forgotten when there are too many.
    return dict(sorted(states.items(), key=lambda item: item[1].last_offset))


def _transactions(reader: sqlite3.Connection, term: int) -> OpenTransactions:
    if not has_transactions(reader):
        return NO_TRANSACTIONS
    rows = reader.execute(
        "SELECT producer_id, producer_epoch, transaction_start FROM producer"
        " WHERE term = ? AND transaction_start IS NOT NULL",
        (term,),
    )
    return oldest_first({producer_id: OpenTransaction(epoch, start) for producer_id, epoch, start in rows})


#: `dataclasses.astuple` copies each number, and every append stores five batches.
_numbers_of = attrgetter(*(field.name for field in fields(RememberedBatch)))
_ENCODED = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` would make one for each append


def producer_row(
    term: int, producer_id: int, state: ProducerState, transactions: OpenTransactions
) -> tuple[int, int, int, str, int, int | None]:
    """In the order of the table's columns."""
    batches = _ENCODED(list(map(_numbers_of, state.batches)))
    transaction = transactions.get(producer_id)
    start = None if transaction is None else transaction.first_offset
    return term, producer_id, state.producer_epoch, batches, state.coordinator_epoch, start


def _insert(writer: sqlite3.Connection, schema: str, published: _Published) -> _Begun:
    """Insert the term's row and what it inherits. The commit is synced: the chain must outlive older publications.

    `schema` is the schema with the pairs: the attached file, or our own.
    """
    topic_id, partition = published.request.topic_id.hex, published.request.topic_partition.partition
    epoch, inherited = published.epoch, published.inherited
    own = writer.execute("SELECT term FROM term WHERE topic_id = ? AND partition = ?", (topic_id, partition)).fetchall()
    newest = f"SELECT max(term) FROM {schema}.term WHERE topic_id = ? AND partition = ?"
    [(source,)] = writer.execute(newest, (topic_id, partition)).fetchall()  # before ours exists
    cursor = writer.execute(
        "INSERT INTO term (topic_id, partition, leader_epoch, attempt, start, chain) VALUES (?, ?, ?, ?, ?, ?)",
        (topic_id, partition, epoch.leader_epoch, epoch.attempt, inherited.end_offset, to_json(inherited.chain)),
    )
    term = cursor.lastrowid
    assert term is not None
    writer.executemany(
        "INSERT INTO producer VALUES (?, ?, ?, ?, ?, ?)",
        [
            producer_row(term, producer_id, state, inherited.transactions)
            for producer_id, state in inherited.producers.items()
        ],
    )
    begun = _Begun(term, inherited.end_offset, inherited.chain)
    if inherited.pairs_in:
        # In storage order, so that rows are appended without searching.
        writer.execute(
            "INSERT INTO pair SELECT ?, key, value, at_offset, timestamp_ms"
            f" FROM {_pairs(writer, schema)} WHERE term = ? ORDER BY key",
            (term, source),
        )
        begun = _after_the_copy(writer, begun)
    # Our own earlier terms: whatever counts has just been copied.
    writer.executemany("DELETE FROM pair WHERE term = ?", own)
    writer.executemany("DELETE FROM producer WHERE term = ?", own)
    return begun


def _after_the_copy(writer: sqlite3.Connection, begun: _Begun) -> _Begun:
    """Begin after the copied pairs: they come from a later snapshot than the inherited end."""
    end = _end_of_pairs(writer, "main", begun.term)
    if end <= begun.start:
        return begun
    assert begun.chain, "pairs come from an earlier term"
    chain = (*begun.chain[:-1], replace(begun.chain[-1], end=end))
    writer.execute("UPDATE term SET start = ?, chain = ? WHERE term = ?", (end, to_json(chain), begun.term))
    return _Begun(begun.term, end, chain)
