"""Taking over a partition: from a published epoch to a term of one's own. Runs on the writer's thread.

The order is what makes it safe (each step behind the one before):

1. publish the epoch, durably: from here on no predecessor can acknowledge anything;
2. read a snapshot of the newest predecessor that has a term: it holds everything that was ever acknowledged,
   because an acknowledgement needs a look at the publications *behind* its commit;
3. commit a term of our own, synced, with the chain of segments cut at the snapshot's end, the producers, and for
   pairs all of them;
4. look again: somebody may have published above us, and read past us because our term was not there yet.

A reader needs no lock that a stopped writer could hold, but for the instants in which that writer changes the header
of its WAL index; should a stop ever hit one, reading fails after some seconds and is tried again (`leading.py`).

A publication without a term belongs to a broker that died or was overtaken between 1 and 3: it has acknowledged
nothing, and is passed over.
"""

from __future__ import annotations

import json
import os
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from kernel.broker.storage.appending import ProducerState, RememberedBatch
from kernel.broker.storage.chain import Chain, Segment, extended, from_json, to_json
from kernel.broker.storage.epochs import Epoch, PartitionEpochs
from kernel.broker.storage.errors import Fenced, StorageFailed
from kernel.broker.storage.files import FOLDER, open_reader

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path
    from uuid import UUID

    from kernel.values import TopicPartition


@dataclass(slots=True, eq=False)
class Term:
    """One leadership of one partition by this incarnation; the writer's thread owns it.

    `end_offset` and `producers` are what is committed, which may run ahead of what is acknowledged by a moment.
    `closed` says why nothing may be appended any more.
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
    closed: str | None = None

    @property
    def log_start_offset(self) -> int:
        return self.chain[0].start if self.chain else self.start_offset

    def check_fence(self) -> None:
        """Raises Fenced when a higher epoch is published (or the topic is gone), and closes the term."""
        if self.closed is None and not self.epochs.is_newest(self.epoch):
            self.closed = f"{self.topic_partition}: epoch {self.epoch} is no longer the newest, another broker leads"
        if self.closed is not None:
            raise Fenced(self.closed)


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a predecessor's snapshot holds."""

    chain: Chain
    end_offset: int
    producers: dict[int, ProducerState]
    pairs: list[tuple[bytes, bytes]]


NOTHING = Inherited((), 0, {}, [])


def take_over(
    writer: sqlite3.Connection,
    data_dir: Path,
    file: str,
    topic_partition: TopicPartition,
    topic_id: UUID,
    leader_epoch: int,
) -> Term:
    """Begin a term in `file`, whose writer is `writer`. Raises Fenced, OSError, sqlite3.Error, StorageFailed."""
    epochs = PartitionEpochs(data_dir, topic_id, topic_partition.partition)
    epoch = epochs.publish(leader_epoch, file)
    inherited = _inherit(data_dir, epochs, epoch, topic_id, topic_partition.partition)
    term = _begin(writer, topic_id, topic_partition.partition, epoch, inherited)
    begun = Term(
        topic_partition=topic_partition,
        topic_id=topic_id,
        epoch=epoch,
        epochs=epochs,
        file=file,
        term=term,
        start_offset=inherited.end_offset,
        chain=inherited.chain,
        end_offset=inherited.end_offset,
        producers=dict(inherited.producers),  # a copy: `NOTHING` is shared by all first terms
    )
    begun.check_fence()
    epochs.prune_below(epoch)
    return begun


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
            # Pruned while we looked: then a newer predecessor has committed its term meanwhile. Look again.
            continue
        return NOTHING


def read_predecessor(data_dir: Path, file: str, topic_id: UUID, partition: int, epoch: Epoch) -> Inherited | None:
    """One read snapshot of a term in another incarnation's file (or our own); None when it has no such term."""
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
        # A power cut must not take from under our feet what we build on: the writer itself syncs only now and then.
        _sync(path, path.with_name(f"{path.name}-wal"))
        term, start, chain = row
        last = reader.execute(
            "SELECT last_offset FROM batch WHERE term = ? ORDER BY base_offset DESC LIMIT 1", (term,)
        ).fetchone()
        end = start if last is None else last[0] + 1
        return Inherited(
            chain=extended(from_json(chain), Segment(file, term, epoch.leader_epoch, start, end)),
            end_offset=end,
            producers=_producers(reader, term),
            pairs=reader.execute("SELECT key, value FROM pair WHERE term = ?", (term,)).fetchall(),
        )
    finally:
        reader.close()


def _sync(*files: Path) -> None:
    for file in files:
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except FileNotFoundError:
            continue  # folded back: its writer has closed it in order
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _producers(reader: sqlite3.Connection, term: int) -> dict[int, ProducerState]:
    rows = reader.execute("SELECT producer_id, producer_epoch, batches FROM producer WHERE term = ?", (term,))
    states = {
        producer_id: ProducerState(producer_epoch, tuple(RememberedBatch(*batch) for batch in json.loads(batches)))
        for producer_id, producer_epoch, batches in rows
    }
    # In the order of their last append: the order in which they are forgotten when there are too many.
    return dict(sorted(states.items(), key=lambda item: item[1].batches[-1].last_offset))


def producer_row(term: int, producer_id: int, state: ProducerState) -> tuple[int, int, int, str]:
    batches = json.dumps([astuple(batch) for batch in state.batches], separators=(",", ":"))
    return term, producer_id, state.producer_epoch, batches


def _begin(writer: sqlite3.Connection, topic_id: UUID, partition: int, epoch: Epoch, inherited: Inherited) -> int:
    """Commit the term's row with what it inherits, synced: the chain must outlive the older publications."""
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("BEGIN IMMEDIATE")
    try:
        earlier = [
            (row[0],)
            for row in writer.execute(
                "SELECT term FROM term WHERE topic_id = ? AND partition = ?", (topic_id.hex, partition)
            )
        ]
        # Our own earlier terms: their pairs and producers have just been read and are carried over.
        writer.executemany("DELETE FROM pair WHERE term = ?", earlier)
        writer.executemany("DELETE FROM producer WHERE term = ?", earlier)
        cursor = writer.execute(
            "INSERT INTO term (topic_id, partition, leader_epoch, attempt, start, chain) VALUES (?, ?, ?, ?, ?, ?)",
            (
                topic_id.hex,
                partition,
                epoch.leader_epoch,
                epoch.attempt,
                inherited.end_offset,
                to_json(inherited.chain),
            ),
        )
        term = cursor.lastrowid
        assert term is not None
        writer.executemany(
            "INSERT INTO producer VALUES (?, ?, ?, ?)",
            [producer_row(term, producer_id, state) for producer_id, state in inherited.producers.items()],
        )
        writer.executemany("INSERT INTO pair VALUES (?, ?, ?)", [(term, key, value) for key, value in inherited.pairs])
        writer.execute("COMMIT")
    finally:
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        writer.execute("PRAGMA synchronous = NORMAL")
    return term
