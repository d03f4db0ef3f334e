"""Transactions in one partition: rules for appends, the last stable offset, and what survives a change of leader."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kernel.broker.storage.appending import AppendPlan, ProducerState, plan_append
from kernel.broker.storage.errors import (
    CoordinatorFenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    StorageError,
)
from kernel.broker.storage.files import FOLDER
from kernel.broker.storage.storage import Storage
from kernel.records.batches import NOT_VERIFIED, AppendBatch, ProducerStamp
from kernel.records.transactions import (
    AbortedTransaction,
    EndTransactionMarker,
    OpenTransaction,
    OpenTransactions,
    last_stable_offset,
)
from tests.support.brokers.stored import TOPIC_ID, TP, batch, cells
from tests.support.properties import examples


def data(
    sequence: int = 0, *, epoch: int = 0, producer_id: int = 1, records: int = 1, verified_at: int = 10**6
) -> AppendBatch:
    stamp = ProducerStamp(producer_id, epoch, sequence, transactional=True)
    return AppendBatch(batch("x").payload, records, 0, stamp, verified_at=verified_at)


def plain(sequence: int, *, producer_id: int = 1) -> AppendBatch:
    return AppendBatch(batch("x").payload, 1, 0, ProducerStamp(producer_id, 0, sequence))


def marker(commits: bool, *, epoch: int = 0, producer_id: int = 1, coordinator_epoch: int = 0) -> AppendBatch:
    stamp = ProducerStamp(producer_id, epoch, -1, transactional=True)
    return AppendBatch(batch("end").payload, 1, 0, stamp, EndTransactionMarker(commits, coordinator_epoch))


class Partition:
    """A log in memory."""

    def __init__(self) -> None:
        self.end = 0
        self.producers: dict[int, ProducerState] = {}
        self.transactions: OpenTransactions = {}
        self.aborted: list[AbortedTransaction] = []

    def add(self, *batches: AppendBatch) -> AppendPlan:
        plan = plan_append(self.end, self.producers, batches, self.transactions)
        self.end, self.transactions = plan.end_offset, plan.transactions
        self.producers |= plan.producers
        self.aborted += plan.aborted
        return plan

    @property
    def stable(self) -> int:
        return last_stable_offset(self.transactions, self.end)


def test_oldest_open_transaction_holds_the_last_stable_offset_until_its_marker():
    log = Partition()
    log.add(AppendBatch(b"plain" * 4, 3, 0))
    log.add(data(records=2))
    log.add(data(producer_id=2))
    assert (log.end, log.stable) == (6, 3)
    log.add(marker(True, producer_id=2))
    assert (log.end, log.stable) == (7, 3)
    log.add(marker(True))
    assert (log.end, log.stable) == (8, 8)
    assert not log.aborted


def test_aborted_transactions_are_listed_in_the_order_of_their_markers():
    log = Partition()
    log.add(data())
    log.add(data(producer_id=2))
    log.add(data(producer_id=3))
    log.add(marker(False, producer_id=2))
    log.add(marker(False))
    assert log.aborted == [
        AbortedTransaction(2, first_offset=1, last_offset=3, last_stable_offset=0),
        AbortedTransaction(1, first_offset=0, last_offset=4, last_stable_offset=2),
    ]
    assert log.stable == 2


def test_marker_without_a_transaction_takes_an_offset_and_aborts_nothing():
    log = Partition()
    log.add(marker(False))
    log.add(data())
    log.add(marker(True))
    log.add(marker(False))  # repeated by a coordinator that got no answer
    assert (log.end, log.stable, log.aborted) == (4, 4, [])


def test_sequences_continue_after_a_marker_of_the_same_epoch_and_restart_after_a_fencing_one():
    log = Partition()
    log.add(data(0, records=2))
    log.add(marker(True))
    log.add(data(2))
    log.add(marker(False, epoch=1))  # by the coordinator, after a timeout
    with pytest.raises(InvalidProducerEpoch):
        log.add(data(3))
    with pytest.raises(OutOfOrderSequence):
        log.add(data(3, epoch=1))
    log.add(data(0, epoch=2))
    assert log.transactions == {1: OpenTransaction(2, 5)}


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (plain(1), InvalidTransactionState),
        (marker(True, epoch=-1), InvalidProducerEpoch),
        (data(1, epoch=1, verified_at=NOT_VERIFIED), OutOfOrderSequence),
        (data(0, epoch=1, verified_at=NOT_VERIFIED), InvalidTransactionState),
        (data(0, producer_id=2, verified_at=NOT_VERIFIED), InvalidTransactionState),
    ],
    ids=[
        "a batch outside of the transaction",
        "a marker of an older epoch",
        "a newer epoch out of order",
        "a newer epoch that was not verified",
        "a transaction that was not verified",
    ],
)
def test_batch_that_does_not_belong_to_the_transaction_is_refused(refused: AppendBatch, error: type[StorageError]):
    log = Partition()
    log.add(data())
    before = (log.end, dict(log.transactions), dict(log.producers))
    with pytest.raises(error):
        log.add(refused)
    assert (log.end, dict(log.transactions), dict(log.producers)) == before


def test_batch_verified_before_the_marker_begins_no_transaction_after_it():
    """KIP-890: it was delayed while the coordinator aborted the transaction."""
    log = Partition()
    log.add(data(0, verified_at=0))
    late = data(1, verified_at=log.end)
    log.add(marker(False))
    with pytest.raises(InvalidTransactionState):
        log.add(late)
    assert log.stable == log.end
    log.add(data(1, verified_at=log.end))
    assert log.stable == 2


def test_marker_of_a_replaced_coordinator_is_refused():
    log = Partition()
    log.add(marker(True, coordinator_epoch=5))
    log.add(data())
    with pytest.raises(CoordinatorFenced):
        log.add(marker(False, coordinator_epoch=4))
    assert log.transactions == {1: OpenTransaction(0, 1)}
    log.add(marker(True, coordinator_epoch=5))
    assert not log.transactions


def test_repeated_batch_of_an_ended_transaction_is_a_duplicate_and_begins_none():
    log = Partition()
    log.add(data(0))
    log.add(marker(True))
    assert log.add(data(0, verified_at=NOT_VERIFIED)).result.duplicate
    assert log.stable == log.end == 2


class Transactions(RuleBasedStateMachine):
    """Three producers, compared with what follows from the log itself."""

    @initialize()
    def empty(self) -> None:
        self.log = Partition()
        self.next_sequence = [0, 0, 0]
        self.begun: dict[int, int] = {}
        self.ends: list[tuple[int, int, int, bool]] = []  # producer, first offset, marker's offset, commits

    @rule(producer_id=st.integers(0, 2), records=st.integers(1, 3))
    def write(self, producer_id: int, records: int) -> None:
        sequence = self.next_sequence[producer_id]
        self.begun.setdefault(producer_id, self.log.end)
        self.log.add(data(sequence, producer_id=producer_id, records=records))
        self.next_sequence[producer_id] += records

    @rule(producer_id=st.integers(0, 2), commits=st.booleans())
    def end(self, producer_id: int, commits: bool) -> None:
        if (first := self.begun.pop(producer_id, None)) is not None:
            self.ends.append((producer_id, first, self.log.end, commits))
        self.log.add(marker(commits, producer_id=producer_id))

    @rule()
    def write_outside(self) -> None:
        self.log.add(AppendBatch(b"plain" * 4, 1, 0))

    @rule(producer_id=st.integers(0, 2))
    @precondition(lambda self: self.begun)
    def write_outside_of_an_open_transaction_is_refused(self, producer_id: int) -> None:
        if producer_id in self.begun:
            with pytest.raises(InvalidTransactionState):
                self.log.add(plain(self.next_sequence[producer_id], producer_id=producer_id))

    @invariant()
    def stable_offset_and_aborts_are_those_of_the_log(self) -> None:
        assert self.log.stable == min(self.begun.values(), default=self.log.end)
        aborted = [(p, first, last) for p, first, last, commits in self.ends if not commits]
        assert [(a.producer_id, a.first_offset, a.last_offset) for a in self.log.aborted] == aborted
        for at, found in enumerate(self.log.aborted):
            later = self.log.aborted[at + 1 :]
            assert all(found.last_stable_offset <= one.first_offset for one in later)


Transactions.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestTransactions = Transactions.TestCase


# -- storage ---------------------------------------------------------------------------------------------------------


async def test_committed_reader_stops_at_the_last_stable_offset_and_learns_of_aborts(tmp_path: Path):
    storage = Storage(tmp_path, 1)
    await storage.start()
    log = await storage.take_over(TP, TOPIC_ID, 0)
    moved: list[int] = []
    log.on_advance(lambda: moved.append(log.last_stable_offset))
    await log.append([data(0)])
    await log.append([data(0, producer_id=2)])
    assert (log.end_offset, log.last_stable_offset) == (2, 0)
    assert await log.read_committed(0, 10**6) == (b"", ())
    await log.append([marker(False)])
    read, aborted = await log.read_committed(0, 10**6)
    assert [offset for offset, _, _ in cells(read)] == [0]
    assert aborted == [AbortedTransaction(1, 0, 2, 1)]
    await log.append([marker(True, producer_id=2)])
    read, aborted = await log.read_committed(1, 10**6)
    assert [offset for offset, _, _ in cells(read)] == [1, 2, 3]
    assert aborted == [AbortedTransaction(1, 0, 2, 1)]
    assert await log.read_committed(4, 10**6) == (b"", ())
    assert moved == [0, 0, 1, 4]
    await storage.close()


async def test_successor_goes_on_with_open_transactions_and_still_lists_what_was_aborted(tmp_path: Path):
    first, second, third = (Storage(tmp_path, node) for node in (1, 2, 3))
    for storage in (first, second, third):
        await storage.start()
    log = await first.take_over(TP, TOPIC_ID, 0)
    await log.append([data(0)])
    await log.append([marker(False, coordinator_epoch=7)])
    await log.append([data(1)])
    log = await second.take_over(TP, TOPIC_ID, 1)
    assert (log.last_stable_offset, log.end_offset) == (2, 3)
    assert log.has_transaction(1, 0)
    assert not log.has_transaction(1, 1)
    await log.append([data(2, verified_at=NOT_VERIFIED)])
    with pytest.raises(CoordinatorFenced):
        await log.append([marker(False, coordinator_epoch=6)])
    await log.append([marker(False, coordinator_epoch=7)])
    log = await third.take_over(TP, TOPIC_ID, 2)
    assert log.last_stable_offset == log.end_offset == 5
    read, aborted = await log.read_committed(0, 10**6)
    assert [offset for offset, _, _ in cells(read)] == [0, 1, 2, 3, 4]
    assert [(one.first_offset, one.last_offset) for one in aborted] == [(0, 1), (2, 4)]
    for storage in (first, second, third):
        await storage.close()


async def test_abort_stored_by_a_paused_leader_after_the_cut_is_ignored(tmp_path: Path):
    old, new = Storage(tmp_path, 1), Storage(tmp_path, 2)
    await old.start()
    await new.start()
    before = await old.take_over(TP, TOPIC_ID, 0)
    await before.append([data(0)])
    log = await new.take_over(TP, TOPIC_ID, 1)
    with pytest.raises(StorageError):
        await before.append([marker(False)])
    await log.append([marker(True)])
    read, aborted = await log.read_committed(0, 10**6)
    assert [offset for offset, _, _ in cells(read)] == [0, 1]
    assert aborted == []
    await old.close()
    await new.close()


async def test_file_without_transactions_is_taken_over(tmp_path: Path):
    old, new = Storage(tmp_path, 1, "old"), Storage(tmp_path, 2)
    await old.start()
    log = await old.take_over(TP, TOPIC_ID, 0)
    await log.append([plain(0)])
    await old.close()
    with sqlite3.connect(tmp_path / FOLDER / old.file) as file:
        file.execute("ALTER TABLE producer DROP COLUMN coordinator_epoch")
        file.execute("ALTER TABLE producer DROP COLUMN transaction_start")
        file.execute("DROP TABLE aborted")
        file.execute("PRAGMA user_version = 0")
    file.close()
    await new.start()
    log = await new.take_over(TP, TOPIC_ID, 1)
    await log.append([plain(1)])
    read, aborted = await log.read_committed(0, 10**6)
    assert [offset for offset, _, _ in cells(read)] == [0, 1]
    assert aborted == []
    await new.close()
