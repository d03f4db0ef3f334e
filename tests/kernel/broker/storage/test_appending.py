"""The pure rules of offsets, sequences and segments: tables, and a stateful search for histories that break them."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kernel.broker.storage.appending import (
    BATCHES_REMEMBERED,
    AppendPlan,
    ProducerState,
    RememberedBatch,
    advanced,
    plan_append,
)
from kernel.broker.storage.chain import Chain, Segment, extended, from_json, from_offset, to_json
from kernel.broker.storage.errors import InvalidProducerEpoch, OutOfOrderSequence
from kernel.records.batches import AppendBatch, ProducerStamp
from tests.support.properties import examples

LAST = 2**31 - 1


def stamped(sequence: int, *, records: int = 1, epoch: int = 0, producer_id: int = 1) -> AppendBatch:
    return AppendBatch(b"x" * 17, records, 0, ProducerStamp(producer_id, epoch, sequence))


def known(*ranges: tuple[int, int], epoch: int = 0) -> dict[int, ProducerState]:
    batches = tuple(RememberedBatch(first, last, 100 + first, 100 + last) for first, last in ranges)
    return {1: ProducerState(epoch, batches)}


@pytest.mark.parametrize(
    ("producers", "batch"),
    [
        ({}, stamped(0)),
        ({}, stamped(41)),  # unknown producer: any sequence, its state may have been dropped
        (known((0, 4)), stamped(5, records=3)),
        (known((LAST - 1, LAST)), stamped(0)),  # sequences wrap
        (known((LAST - 1, LAST - 1)), stamped(LAST, records=3)),  # also inside a batch
        (known((7, 9)), stamped(0, epoch=1)),
    ],
)
def test_sequence_that_follows_is_accepted(producers: dict[int, ProducerState], batch: AppendBatch) -> None:
    plan = plan_append(200, producers, [batch])
    assert (plan.result.base_offset, plan.end_offset) == (200, 200 + batch.records)
    assert plan.producers[1].batches[-1].base_offset == 200


@pytest.mark.parametrize(
    ("producers", "batch", "error"),
    [
        (known((0, 4)), stamped(6), OutOfOrderSequence),  # a gap
        (known((0, 4)), stamped(4), OutOfOrderSequence),  # overlaps, but equals no batch
        (known((0, 4)), stamped(0, records=4), OutOfOrderSequence),
        (known((0, 4)), stamped(5, epoch=1), OutOfOrderSequence),  # a new epoch begins at 0
        (known((0, 4), epoch=3), stamped(5, epoch=2), InvalidProducerEpoch),
        (known((0, 4), epoch=3), stamped(0, records=5, epoch=2), InvalidProducerEpoch),  # not even as a duplicate
        (known((LAST, LAST)), stamped(1), OutOfOrderSequence),
    ],
)
def test_sequence_that_does_not_follow_is_refused(
    producers: dict[int, ProducerState], batch: AppendBatch, error: type[Exception]
) -> None:
    with pytest.raises(error):
        plan_append(200, producers, [batch])


def test_last_five_batches_are_recognised_and_older_ones_are_not() -> None:
    producers: dict[int, ProducerState] = {}
    end = 0
    for sequence in range(0, 14, 2):
        plan = plan_append(end, producers, [stamped(sequence, records=2)])
        producers, end = {**producers, **plan.producers}, plan.end_offset
    for sequence in range(4, 14, 2):
        repeated = plan_append(end, producers, [stamped(sequence, records=2)])
        assert repeated.result.duplicate
        assert (repeated.result.base_offset, repeated.result.last_offset) == (sequence, sequence + 1)
        assert (repeated.placements, repeated.producers, repeated.end_offset) == ((), {}, end)
    with pytest.raises(OutOfOrderSequence):
        plan_append(end, producers, [stamped(2, records=2)])


def test_append_of_several_batches_is_all_or_nothing() -> None:
    plan = plan_append(10, {}, [stamped(0, records=2), AppendBatch(b"y" * 17, 3, 0), stamped(2)])
    assert [p.base_offset for p in plan.placements] == [10, 12, 15]
    assert len(plan.producers[1].batches) == 2
    with pytest.raises(OutOfOrderSequence):
        plan_append(10, {}, [stamped(0), stamped(5)])


def test_segments_are_found_by_offset_and_survive_json() -> None:
    chain: Chain = ()
    for file, start, end in (("a", 0, 4), ("b", 4, 4), ("c", 4, 9), ("d", 9, 10)):
        chain = extended(chain, Segment(file, 1, 0, start, end))
    assert [segment.file for segment in chain] == ["a", "c", "d"]
    for offset, first in ((0, "a"), (3, "a"), (4, "c"), (8, "c"), (9, "d"), (10, "d")):
        assert from_offset(chain, offset)[0].file == first
    assert from_json(to_json(chain)) == chain


class Leader:
    """The part of the log that one broker has stored, and its producer states."""

    def __init__(self, chain: Chain, end: int, producers: dict[int, ProducerState]) -> None:
        self.chain, self.start, self.end, self.producers = chain, end, end, dict(producers)
        self.rows: dict[int, tuple[int, str]] = {}

    def store(self, plan: AppendPlan, value: str) -> None:
        for placement in plan.placements:
            self.rows[placement.base_offset] = (placement.batch.records, value)
        self.end = plan.end_offset
        self.producers.update(plan.producers)


class LogHistory(RuleBasedStateMachine):
    """Leaders replace each other; the old one may go on storing (unacknowledged), producers repeat anything."""

    @initialize()
    def first_leader(self) -> None:
        self.leaders = [Leader((), 0, {})]
        self.acknowledged: dict[int, str] = {}
        self.sent: dict[tuple[int, int], tuple[int, int, str]] = {}  # (producer, sequence) -> records, offset, value
        self.next_sequence = [0, 0]
        self.repeats = 0

    @property
    def leader(self) -> Leader:
        return self.leaders[-1]

    @rule(records=st.integers(1, 4))
    def append_without_a_producer(self, records: int) -> None:
        value = f"plain{self.leader.end}"
        plan = plan_append(self.leader.end, self.leader.producers, [AppendBatch(b"z" * 17, records, 0)])
        self.leader.store(plan, value)
        self.acknowledged[plan.result.base_offset] = value

    @rule(producer_id=st.integers(0, 1), records=st.integers(1, 4))
    def append_in_sequence(self, producer_id: int, records: int) -> None:
        sequence = self.next_sequence[producer_id]
        value = f"p{producer_id}:{sequence}"
        batch = stamped(sequence, records=records, producer_id=producer_id)
        plan = plan_append(self.leader.end, self.leader.producers, [batch])
        assert not plan.result.duplicate
        self.leader.store(plan, value)
        self.acknowledged[plan.result.base_offset] = value
        self.sent[producer_id, sequence] = (records, plan.result.base_offset, value)
        self.next_sequence[producer_id] = advanced(sequence, records)

    @rule(producer_id=st.integers(0, 1), back=st.integers(1, BATCHES_REMEMBERED))
    def repeat_one_of_the_last_five(self, producer_id: int, back: int) -> None:
        mine = [key for key in self.sent if key[0] == producer_id]
        if len(mine) < back:
            return
        key = mine[-back]
        records, offset, _ = self.sent[key]
        batch = stamped(key[1], records=records, producer_id=producer_id)
        plan = plan_append(self.leader.end, self.leader.producers, [batch])
        assert plan.result.duplicate
        assert plan.result.base_offset == offset
        assert plan.end_offset == self.leader.end

    @rule(producer_id=st.integers(0, 1), ahead=st.integers(1, 9))
    def skip_ahead_is_refused(self, producer_id: int, ahead: int) -> None:
        if self.next_sequence[producer_id] == 0:
            return
        batch = stamped(self.next_sequence[producer_id] + ahead, producer_id=producer_id)
        with pytest.raises(OutOfOrderSequence):
            plan_append(self.leader.end, self.leader.producers, [batch])

    @rule(zombie_records=st.integers(0, 5))
    def leadership_moves_and_the_old_leader_stores_on(self, zombie_records: int) -> None:
        old = self.leader
        cut = old.end
        chain = extended(old.chain, Segment(str(len(self.leaders) - 1), 1, len(self.leaders), old.start, cut))
        self.leaders.append(Leader(from_json(to_json(chain)), cut, old.producers))
        if zombie_records:
            plan = plan_append(old.end, old.producers, [AppendBatch(b"z" * 17, zombie_records, 0)])
            old.store(plan, "zombie")

    @invariant()
    def everything_acknowledged_is_read_once_and_no_zombie(self) -> None:
        own = Segment(str(len(self.leaders) - 1), 1, 0, self.leader.start, self.leader.end)
        read: dict[int, str] = {}
        position = 0
        for segment in extended(self.leader.chain, own):
            rows = self.leaders[int(segment.file)].rows
            for base_offset in sorted(offset for offset in rows if offset < segment.end):
                records, value = rows[base_offset]
                assert base_offset == position, "a gap or an overlap"
                read[base_offset] = value
                position += records
        assert position == self.leader.end
        assert read == self.acknowledged


LogHistory.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestLogHistory = LogHistory.TestCase
