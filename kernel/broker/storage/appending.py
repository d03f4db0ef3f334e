"""Decides what an append does to a log's offsets, producers and transactions; the writer performs it. Pure.

Rules of idempotent producers (KIP-98; ProducerStateEntry and ProducerAppendInfo of Kafka 3.9 and 4.1):

- A producer's state in a partition is its epoch and its last five batches.
- A batch that equals one of those five (same epoch, first and last sequence) is a duplicate: it returns the offset it
  got then, and is not stored again.
- An older epoch is refused (InvalidProducerEpoch). A newer one must begin at sequence 0. An unknown producer
  may begin at any sequence (its state may have been dropped).
- Otherwise the first sequence must follow the last one; 2^31-1 is followed by 0.

Rules of transactions (KIP-98, and KIP-890 part 1 for the last one):

- The first transactional batch of a producer begins its transaction in this partition. Until a marker ends it, the
  producer may write only transactional batches.
- A marker takes one offset and ends the transaction. An abort is recorded for readers, unless there was nothing to
  abort. A marker of an older producer epoch (InvalidProducerEpoch) or coordinator epoch (CoordinatorFenced) is refused;
  one of a newer producer epoch fences the older producer, and its sequences begin at 0.
- A batch begins a transaction only if the coordinator has confirmed it (`AppendBatch.verified_at`) and no marker of
  its producer has arrived since. Otherwise a late batch of a finished transaction would begin one that never ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernel.broker.storage.errors import (
    CoordinatorFenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
)
from kernel.records.batches import AppendResult
from kernel.records.transactions import (
    NO_TRANSACTIONS,
    AbortedTransaction,
    OpenTransaction,
    OpenTransactions,
    last_stable_offset,
    no_transactions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.records.batches import AppendBatch, ProducerStamp
    from kernel.records.transactions import EndTransactionMarker

#: ProducerStateEntry.NUM_BATCHES_TO_RETAIN: a producer with five requests in flight may retry all of them.
BATCHES_REMEMBERED = 5
_SEQUENCE_END = 2**31


@dataclass(frozen=True, slots=True)
class RememberedBatch:
    """One batch of a producer: its first and last sequence, and the offsets it got."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer in one partition; `batches` has at most 5, newest last, and is empty after a fencing marker.

    `coordinator_epoch` and `marker_offset` are those of its last marker, the latter only of this leadership.
    """

    producer_epoch: int
    batches: tuple[RememberedBatch, ...]
    coordinator_epoch: int = -1
    marker_offset: int = -1

    @property
    def last_sequence(self) -> int:
        """-1 if there is none, so that 0 follows."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """The offset of its last append; -1 if no longer known."""
        return max(self.batches[-1].last_offset if self.batches else -1, self.marker_offset)


@dataclass(frozen=True, slots=True)
class Placement:
    """A batch and the offset to store it at."""

    batch: AppendBatch
    base_offset: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.batch.records - 1


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """What to store, the resulting state of the log, and the result. A duplicate has nothing to store."""

    placements: tuple[Placement, ...]
    end_offset: int
    producers: Mapping[int, ProducerState]  #: those that have changed
    result: AppendResult
    transactions: OpenTransactions = field(default_factory=no_transactions)  #: all that are open afterwards
    aborted: tuple[AbortedTransaction, ...] = ()  #: by this append


def plan_append(
    end_offset: int,
    producers: Mapping[int, ProducerState],
    batches: Sequence[AppendBatch],
    transactions: OpenTransactions = NO_TRANSACTIONS,
) -> AppendPlan:
    """Append `batches` to a log that ends at `end_offset`: all of them, or none.

    If one is a duplicate, the whole append is (clients send one batch per partition in a request).
    Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState, CoordinatorFenced; nothing has changed
    then.
    """
    assert batches, "an append has at least one batch"
    log = _Log(end_offset, producers, transactions)
    for batch in batches:
        if batch.marker is not None:
            log.add_marker(batch, batch.marker)
        elif (known := log.add(batch)) is not None:
            result = AppendResult(known.base_offset, known.last_offset, duplicate=True, transactions=transactions)
            return AppendPlan((), end_offset, {}, result, transactions)
    result = AppendResult(end_offset, log.end_offset - 1, transactions=log.transactions)
    return AppendPlan(tuple(log.placements), log.end_offset, log.changed, result, log.transactions, tuple(log.aborted))


class _Log:
    """The state of a log while batches are appended."""

    def __init__(self, end_offset: int, producers: Mapping[int, ProducerState], transactions: OpenTransactions) -> None:
        self.end_offset = end_offset
        self.transactions = transactions
        self.changed: dict[int, ProducerState] = {}
        self.placements: list[Placement] = []
        self.aborted: list[AbortedTransaction] = []
        self._producers = producers

    def add(self, batch: AppendBatch) -> RememberedBatch | None:
        """Append records. Returns the batch that they duplicate, if any; nothing is appended then."""
        if (stamp := batch.producer) is not None:
            state = self._state(stamp)
            last_sequence = advanced(stamp.base_sequence, batch.records - 1)
            if (known := _duplicate(state, stamp, last_sequence)) is not None:
                return known
            _check_epoch(state, stamp)
            _check_sequence(state, stamp)
            self._check_transaction(state, stamp, batch.verified_at)
            remembered = RememberedBatch(
                stamp.base_sequence, last_sequence, self.end_offset, self.end_offset + batch.records - 1
            )
            self.changed[stamp.producer_id] = _remembering(state, stamp.producer_epoch, remembered)
        self._place(batch)
        return None

    def add_marker(self, batch: AppendBatch, marker: EndTransactionMarker) -> None:
        """Append a control batch, and end its transaction."""
        stamp = batch.producer
        assert stamp is not None, "a marker has a producer"
        state = self._state(stamp)
        _check_epoch(state, stamp)
        if state is not None and marker.coordinator_epoch < state.coordinator_epoch:
            raise CoordinatorFenced(
                f"a coordinator at epoch {marker.coordinator_epoch} ends a transaction of producer {stamp.producer_id},"
                f" but one at epoch {state.coordinator_epoch} has ended one since"
            )
        offset = self.end_offset
        kept = state.batches if state is not None and state.producer_epoch == stamp.producer_epoch else ()
        self.changed[stamp.producer_id] = ProducerState(stamp.producer_epoch, kept, marker.coordinator_epoch, offset)
        self._place(batch)
        ended = self.transactions.get(stamp.producer_id)
        if ended is None:
            return
        self.transactions = {key: open_ for key, open_ in self.transactions.items() if key != stamp.producer_id}
        if not marker.commits:
            stable = last_stable_offset(self.transactions, self.end_offset)
            self.aborted.append(AbortedTransaction(stamp.producer_id, ended.first_offset, offset, stable))

    def _state(self, stamp: ProducerStamp) -> ProducerState | None:
        return self.changed.get(stamp.producer_id) or self._producers.get(stamp.producer_id)

    def _place(self, batch: AppendBatch) -> None:
        placement = Placement(batch, self.end_offset)
        self.placements.append(placement)
        self.end_offset = placement.last_offset + 1

    def _check_transaction(self, state: ProducerState | None, stamp: ProducerStamp, verified_at: int) -> None:
        """Check a batch against its producer's open transaction; the first transactional batch begins one."""
        known = self.transactions.get(stamp.producer_id)
        if not stamp.transactional:
            if known is not None:
                raise InvalidTransactionState(
                    f"producer {stamp.producer_id} has a transaction open since offset {known.first_offset}, and wrote"
                    " a batch that is not part of it"
                )
            return
        if known is not None and known.producer_epoch == stamp.producer_epoch:
            return
        if verified_at <= (-1 if state is None else state.marker_offset):
            raise InvalidTransactionState(
                f"producer {stamp.producer_id} epoch {stamp.producer_epoch} has no transaction open here: the partition"
                " was not added to it, or it is over"
            )
        first_offset = self.end_offset if known is None else known.first_offset
        begun = OpenTransaction(stamp.producer_epoch, first_offset)
        self.transactions = {**self.transactions, stamp.producer_id: begun}


def advanced(sequence: int, by: int) -> int:
    """`sequence` plus `by`, wrapping from 2^31-1 to 0 (DefaultRecordBatch.incrementSequence)."""
    return (sequence + by) % _SEQUENCE_END


def _duplicate(state: ProducerState | None, stamp: ProducerStamp, last_sequence: int) -> RememberedBatch | None:
    if state is None or state.producer_epoch != stamp.producer_epoch:
        return None
    for known in state.batches:
        if (known.first_sequence, known.last_sequence) == (stamp.base_sequence, last_sequence):
            return known
    return None


def _check_epoch(state: ProducerState | None, stamp: ProducerStamp) -> None:
    if state is not None and stamp.producer_epoch < state.producer_epoch:
        raise InvalidProducerEpoch(
            f"producer {stamp.producer_id} wrote with epoch {stamp.producer_epoch}, but epoch {state.producer_epoch}"
            " has written since: this producer was replaced"
        )


def _check_sequence(state: ProducerState | None, stamp: ProducerStamp) -> None:
    if state is None:
        return
    new_epoch = stamp.producer_epoch > state.producer_epoch
    expected = 0 if new_epoch else advanced(state.last_sequence, 1)
    if stamp.base_sequence != expected:
        raise OutOfOrderSequence(
            f"producer {stamp.producer_id} epoch {stamp.producer_epoch} wrote sequence {stamp.base_sequence},"
            f" expected {expected}: a batch before this one is missing"
        )


def _remembering(state: ProducerState | None, producer_epoch: int, batch: RememberedBatch) -> ProducerState:
    if state is None:
        return ProducerState(producer_epoch, (batch,))
    before = state.batches if state.producer_epoch == producer_epoch else ()
    return replace(state, producer_epoch=producer_epoch, batches=(*before, batch)[-BATCHES_REMEMBERED:])
