"""What an append does to a log's offsets and producers: decided here, performed by the writer. Pure.

Rules of idempotent producers (KIP-98; ProducerStateEntry and ProducerAppendInfo of Kafka 3.9 and 4.1):

- A producer's state in a partition is its epoch and its last five batches.
- A batch that equals one of those five (same epoch, first and last sequence) is a duplicate: answered with the
  offset it got then, stored no second time.
- An older epoch is refused (InvalidProducerEpoch). A newer one must begin at sequence 0, unless the producer is
  unknown here, which accepts any sequence (its state may have been dropped).
- Otherwise the first sequence must follow the last one; 2^31-1 is followed by 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.broker.storage.batches import AppendResult
from kernel.broker.storage.errors import InvalidProducerEpoch, OutOfOrderSequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.broker.storage.batches import AppendBatch, ProducerStamp

#: ProducerStateEntry.NUM_BATCHES_TO_RETAIN: what a producer with five requests in flight may have to repeat.
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
    """One producer in one partition; `batches` holds 1 to 5, the newest last."""

    producer_epoch: int
    batches: tuple[RememberedBatch, ...]

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence


@dataclass(frozen=True, slots=True)
class Placement:
    """One batch and the offset it is to be stored at."""

    batch: AppendBatch
    base_offset: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.batch.records - 1


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """What to store, what the log is afterwards, and what to answer. A duplicate has nothing to store."""

    placements: tuple[Placement, ...]
    end_offset: int
    producers: Mapping[int, ProducerState]  #: those that changed
    result: AppendResult


def plan_append(end_offset: int, producers: Mapping[int, ProducerState], batches: Sequence[AppendBatch]) -> AppendPlan:
    """Place `batches` at the end of a log that ends at `end_offset`: all of them, or none.

    If any of them is a duplicate the whole append is (clients put one batch a partition in a request).
    Raises OutOfOrderSequence, InvalidProducerEpoch; nothing has changed then.
    """
    assert batches, "an append has at least one batch"
    changed: dict[int, ProducerState] = {}
    placements: list[Placement] = []
    next_offset = end_offset
    for batch in batches:
        placement = Placement(batch, next_offset)
        if (stamp := batch.producer) is not None:
            state = changed.get(stamp.producer_id) or producers.get(stamp.producer_id)
            last_sequence = advanced(stamp.base_sequence, batch.records - 1)
            if (known := _duplicate(state, stamp, last_sequence)) is not None:
                result = AppendResult(known.base_offset, known.last_offset, duplicate=True)
                return AppendPlan((), end_offset, {}, result)
            _check_sequence(state, stamp)
            remembered = RememberedBatch(
                stamp.base_sequence, last_sequence, placement.base_offset, placement.last_offset
            )
            changed[stamp.producer_id] = _remembering(state, stamp.producer_epoch, remembered)
        placements.append(placement)
        next_offset = placement.last_offset + 1
    return AppendPlan(tuple(placements), next_offset, changed, AppendResult(end_offset, next_offset - 1))


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


def _check_sequence(state: ProducerState | None, stamp: ProducerStamp) -> None:
    if state is None:
        return
    if stamp.producer_epoch < state.producer_epoch:
        raise InvalidProducerEpoch(
            f"producer {stamp.producer_id} wrote with epoch {stamp.producer_epoch}, but epoch {state.producer_epoch}"
            " has written since: this producer was replaced"
        )
    new_epoch = stamp.producer_epoch > state.producer_epoch
    expected = 0 if new_epoch else advanced(state.last_sequence, 1)
    if stamp.base_sequence != expected:
        raise OutOfOrderSequence(
            f"producer {stamp.producer_id} epoch {stamp.producer_epoch} wrote sequence {stamp.base_sequence},"
            f" expected {expected}: a batch before this one is missing"
        )


def _remembering(state: ProducerState | None, producer_epoch: int, batch: RememberedBatch) -> ProducerState:
    before = state.batches if state is not None and state.producer_epoch == producer_epoch else ()
    return ProducerState(producer_epoch, (*before, batch)[-BATCHES_REMEMBERED:])
