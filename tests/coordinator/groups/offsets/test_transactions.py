"""Transactions on group offsets: the transactional id's states, its producer's epochs, and the pending offsets.

The machine plays both parts, the transactional id's partition and the group's; markers reach the group at once
unless `delivering` is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.groups.answers import CommitAnswer, TransactionAnswer
from coordinator.groups.errors import Error
from coordinator.groups.offsets.transactions import EPOCH_MAX
from coordinator.groups.records import OffsetRecord, PendingKey, Phase, TransactionKey, TransactionRecord
from coordinator.groups.requests import Producer
from tests.support.groups.classic import WALL_MS, Asked, Machine, completing, dead, empty, preparing, stable

P = Producer(100, 0)
T0 = ("t", 0)


def error(asked: Asked) -> Error:
    assert isinstance(asked.answer, TransactionAnswer)
    return asked.answer.error


def commit_error(asked: Asked) -> Error:
    assert isinstance(asked.answer, CommitAnswer)
    (only,) = {part.error for part in asked.answer.partitions}
    return only


def begun(**fields: Any) -> Machine:
    """A producer whose transaction includes the group; t-0 is pending at 5 and committed at 1."""
    machine = Machine(**fields)
    machine.commit("", {"t-0": 1}, generation=-1, member_id="")
    machine.init_producer()
    machine.add_group(P)
    assert commit_error(machine.commit_in_transaction(P, {"t-0": 5})) is Error.NONE
    return machine


def shown(machine: Machine, *, stable: bool = False) -> Any:
    """What OffsetFetch answers for t-0: an offset, None, or an error."""
    ((_, _, found),) = machine.subject.offsets.fetch(machine.group_id, (T0,), stable=stable)
    return found if found is None or isinstance(found, Error) else found.offset


def phase(machine: Machine) -> Phase:
    return machine.log[TransactionKey("x")].phase


# -- pending offsets -----------------------------------------------------------------------------------------------


@pytest.mark.kafka("testBasicFetchTxnOffsets", "testFetchPendingTxnOffsetsWithCommit")
def test_pending_offset_is_visible_only_after_its_transaction_commits():
    machine = begun()
    assert (shown(machine), shown(machine, stable=True)) == (1, Error.UNSTABLE_OFFSET_COMMIT)
    assert error(machine.end(P)) is Error.NONE
    assert (shown(machine), shown(machine, stable=True)) == (5, 5)
    assert phase(machine) is Phase.COMPLETE_COMMIT
    assert not any(isinstance(key, PendingKey) for key in machine.log)


@pytest.mark.kafka("testFetchTxnOffsetsWithAbort", "testFetchPendingTxnOffsetsWithAbort")
def test_pending_offset_is_dropped_when_its_transaction_is_aborted():
    machine = begun()
    assert error(machine.end(P, commits=False)) is Error.NONE
    assert (shown(machine), shown(machine, stable=True)) == (1, 1)
    assert phase(machine) is Phase.COMPLETE_ABORT


def test_committed_offsets_are_fetched_and_pending_ones_are_unstable():
    machine = begun()
    machine.commit("", {"u-0": 2}, generation=-1, member_id="")
    pending, settled = machine.subject.offsets.fetch("g", None, stable=True)
    assert pending == (*T0, Error.UNSTABLE_OFFSET_COMMIT)
    assert settled == ("u", 0, OffsetRecord(2, -1, "", WALL_MS))


@pytest.mark.parametrize("failover", [False, True], ids=["at once", "after a failover"])
def test_plain_commit_after_a_pending_one_survives_the_transaction(failover: bool):
    """KAFKA-5247: the later one in the log wins."""
    machine = begun()
    machine.wait(1)
    machine.commit("", {"t-0": 9}, generation=-1, member_id="")
    assert shown(machine, stable=True) is Error.UNSTABLE_OFFSET_COMMIT
    machine = machine.successor() if failover else machine
    machine.end(P)
    assert shown(machine, stable=True) == 9


@pytest.mark.kafka("testFetchTxnOffsetsMultipleProducersOneGroup")
def test_pending_offsets_of_two_producers_apply_in_the_order_sent_not_committed():
    machine = begun()
    machine.init_producer("y")
    other = Producer(101, 0)
    machine.add_group(other, "y")
    machine.commit_in_transaction(other, {"t-0": 7})
    machine.end(other, transactional_id="y")
    assert (shown(machine), shown(machine, stable=True)) == (7, Error.UNSTABLE_OFFSET_COMMIT)
    machine.end(P)
    assert shown(machine, stable=True) == 7


def test_aborted_offset_does_not_hide_an_earlier_one():
    machine = begun()
    machine.init_producer("y")
    other = Producer(101, 0)
    machine.add_group(other, "y")
    machine.commit_in_transaction(other, {"t-0": 7})
    machine.end(other, commits=False, transactional_id="y")
    machine.end(P)
    assert shown(machine) == 5


def test_deleting_a_group_deletes_its_pending_offsets():
    machine = Machine()
    machine.init_producer()
    machine.add_group(P)
    machine.commit_in_transaction(P, {"t-0": 5})
    assert machine.state == "Empty"
    machine.delete_group()
    assert machine.state == "Dead"
    assert error(machine.end(P)) is Error.NONE
    assert shown(machine) is None
    assert shown(machine.successor()) is None


def test_deleting_an_offset_deletes_the_pending_one():
    machine = begun()
    machine.delete_offsets(T0)
    assert shown(machine, stable=True) is None
    machine.end(P)
    assert shown(machine) is None
    assert shown(machine.successor(), stable=True) is None


def test_marker_waits_for_a_pending_offset_that_is_being_written():
    machine = begun()
    machine.delivering = False
    machine.end(P)
    machine.hold()
    machine.commit_in_transaction(P, {"t-0": 6})
    machine.deliver()
    assert machine.markers, "the marker has to be delivered again"
    machine.land()
    machine.deliver()
    assert not machine.markers
    assert shown(machine, stable=True) == 6


def test_pending_offsets_survive_their_coordinator():
    machine = begun().successor()
    assert (shown(machine), shown(machine, stable=True)) == (1, Error.UNSTABLE_OFFSET_COMMIT)
    machine.end(P)
    assert shown(machine, stable=True) == 5


def test_pending_offset_that_cannot_be_stored_is_refused_and_dropped():
    machine = begun()
    machine.end(P)
    machine.hold()
    asked = machine.commit_in_transaction(P, {"t-0": 8})
    machine.fail(Error.COORDINATOR_NOT_AVAILABLE)
    assert commit_error(asked) is Error.COORDINATOR_NOT_AVAILABLE
    assert shown(machine, stable=True) == 5


@pytest.mark.kafka("testTxnOffsetMetadataTooLarge")
def test_metadata_too_large_leaves_nothing_pending():
    """KAFKA-16371."""
    machine = begun()
    machine.end(P)
    asked = machine.commit_in_transaction(P, {"t-0": 6}, metadata="x" * 5_000)
    assert commit_error(asked) is Error.OFFSET_METADATA_TOO_LARGE
    assert shown(machine, stable=True) == 5


@pytest.mark.kafka("testFetchTxnOffsetsIgnoreSpuriousCommit")
def test_commit_after_an_abort_finds_nothing_to_commit():
    machine = begun()
    machine.mark(P, commits=False)
    assert error(machine.mark(P)) is Error.NONE
    assert shown(machine, stable=True) == 1


@pytest.mark.kafka("testFetchTxnOffsetsOneProducerMultipleGroups")
def test_transaction_over_two_groups_ends_for_both():
    machine = begun()
    machine.group_id = "h"
    machine.add_group(P)
    machine.commit_in_transaction(P, {"t-0": 6})
    assert shown(machine, stable=True) is Error.UNSTABLE_OFFSET_COMMIT
    machine.end(P)
    assert shown(machine, stable=True) == 6
    machine.group_id = "g"
    assert shown(machine, stable=True) == 5


# -- TxnOffsetCommit by state --------------------------------------------------------------------------------------

STATES: dict[str, Callable[[], Machine]] = {
    "absent": Machine,
    "Empty": empty,
    "Preparing": lambda: preparing("a", "b"),
    "Completing": lambda: completing("a", "b"),
    "Stable": lambda: stable("a", "b"),
    "Dead": dead,
}
NONE, UNKNOWN, GENERATION = Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION
GONE = Error.COORDINATOR_NOT_AVAILABLE
#: the identity in the request: (absent, Empty, Preparing, Completing, Stable, Dead)
TXN_CELLS: dict[str, tuple[dict[str, Any], tuple[Error, ...]]] = {
    "no ids": ({}, (NONE, NONE, NONE, NONE, NONE, GONE)),
    "a member": ({"who": "a", "generation": 1}, (GENERATION, UNKNOWN, NONE, NONE, NONE, GONE)),
    "an old generation": ({"who": "a", "generation": 0}, (GENERATION, UNKNOWN) + (GENERATION,) * 3 + (GONE,)),
    "no generation": ({"who": "a", "generation": -1}, (NONE, NONE) + (GENERATION,) * 3 + (GONE,)),
    "an unknown member": ({"member_id": "z", "generation": 1}, (GENERATION,) + (UNKNOWN,) * 4 + (GONE,)),
    "an unknown instance": (
        {"who": "a", "generation": 1, "instance_id": "i9"},
        (GENERATION,) + (UNKNOWN,) * 4 + (GONE,),
    ),
}


@pytest.mark.parametrize(
    ("says", "state", "expected"),
    [(says, state, error) for says, (_, row) in TXN_CELLS.items() for state, error in zip(STATES, row, strict=True)],
)
def test_commit_in_a_transaction_is_checked_for_members_but_not_for_the_state(says: str, state: str, expected: Error):
    machine = STATES[state]()
    fields = dict(TXN_CELLS[says][0])
    who = fields.pop("who", None)
    if who is not None:
        fields["member_id"] = machine.ids.get(who, "a-1")
    asked = machine.commit_in_transaction(P, {"t-0": 5}, **fields)
    assert commit_error(asked) is expected
    pending = any(isinstance(key, PendingKey) for key in machine.log)
    assert pending is (expected is NONE)
    if state == "absent":
        assert machine.state == ("Empty" if expected is NONE else "Dead")


def test_commit_in_a_transaction_does_not_restart_the_session():
    machine = stable("a")
    machine.wait(9_000)
    machine.commit_in_transaction(P, {"t-0": 5}, member_id=machine.ids["a"], generation=1)
    machine.wait(1_001)
    assert machine.state == "Empty"


# -- producers -----------------------------------------------------------------------------------------------------


def producer_of(asked: Asked) -> Producer:
    assert isinstance(asked.answer, TransactionAnswer)
    assert asked.answer.error is Error.NONE
    return asked.answer.producer


def test_next_incarnation_of_a_producer_gets_the_next_epoch_even_after_a_failover():
    machine = Machine()
    assert producer_of(machine.init_producer()) == Producer(100, 0)
    assert producer_of(machine.init_producer()) == Producer(100, 1)
    assert producer_of(machine.successor().init_producer()) == Producer(100, 2)
    assert producer_of(machine.init_producer("y")).id != 100


def test_replaced_producer_is_fenced():
    machine = begun()
    machine.end(P)
    assert producer_of(machine.init_producer()) == Producer(100, 1)
    assert error(machine.add_group(P)) is Error.PRODUCER_FENCED
    assert error(machine.end(P)) is Error.PRODUCER_FENCED


def test_next_incarnation_aborts_its_predecessors_transaction_and_fences_it_in_the_group():
    machine = begun()
    assert error(machine.init_producer()) is Error.CONCURRENT_TRANSACTIONS
    assert phase(machine) is Phase.COMPLETE_ABORT
    assert shown(machine, stable=True) == 1
    assert commit_error(machine.commit_in_transaction(P, {"t-0": 6})) is Error.INVALID_PRODUCER_EPOCH
    assert producer_of(machine.init_producer()) == Producer(100, 2)
    successor = machine.successor()
    assert commit_error(successor.commit_in_transaction(P, {"t-0": 6})) is Error.INVALID_PRODUCER_EPOCH


def test_producer_with_exhausted_epochs_gets_another_id():
    machine = Machine()
    machine.init_producer()
    key = TransactionKey("x")
    record = machine.log[key]
    assert isinstance(record, TransactionRecord)
    machine.log[key] = record._replace(producer_epoch=EPOCH_MAX)
    machine = machine.successor()
    assert producer_of(machine.init_producer(fresh_id=200)) == Producer(200, 0)


def test_recovering_producer_sends_its_identity():
    """KIP-360: with its epoch it gets the next one, again if the answer was lost; any other producer is fenced."""
    machine = Machine()
    machine.init_producer()
    assert producer_of(machine.init_producer(producer=P)) == Producer(100, 1)
    assert producer_of(machine.init_producer(producer=P)) == Producer(100, 1)
    assert producer_of(machine.init_producer(producer=Producer(100, 1))) == Producer(100, 2)
    assert error(machine.init_producer(producer=P)) is Error.PRODUCER_FENCED
    assert error(machine.init_producer(producer=Producer(7, 2))) is Error.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_transaction_timeout_out_of_range_is_refused(timeout_ms: int):
    assert error(Machine().init_producer(timeout_ms=timeout_ms)) is Error.INVALID_TRANSACTION_TIMEOUT


# -- the transaction -----------------------------------------------------------------------------------------------


def test_transaction_of_an_unknown_id_or_another_producer_is_refused():
    machine = Machine()
    assert error(machine.add_group(P)) is Error.INVALID_PRODUCER_ID_MAPPING
    assert error(machine.end(P)) is Error.INVALID_PRODUCER_ID_MAPPING
    machine.init_producer()
    assert error(machine.add_group(Producer(7, 0))) is Error.INVALID_PRODUCER_ID_MAPPING
    assert error(machine.end(Producer(7, 0))) is Error.INVALID_PRODUCER_ID_MAPPING


def test_end_without_a_transaction_is_refused_and_a_repeated_end_accepted():
    machine = Machine()
    machine.init_producer()
    assert error(machine.end(P)) is Error.INVALID_TXN_STATE
    machine.add_group(P)
    assert error(machine.end(P)) is Error.NONE
    assert error(machine.end(P)) is Error.NONE
    assert error(machine.end(P, commits=False)) is Error.INVALID_TXN_STATE


def test_requests_while_markers_are_written_get_concurrent_transactions():
    machine = begun()
    machine.delivering = False
    assert error(machine.end(P)) is Error.NONE
    assert phase(machine) is Phase.PREPARE_COMMIT
    assert error(machine.end(P)) is Error.CONCURRENT_TRANSACTIONS
    assert error(machine.end(P, commits=False)) is Error.INVALID_TXN_STATE
    assert error(machine.add_group(P)) is Error.CONCURRENT_TRANSACTIONS
    assert error(machine.init_producer()) is Error.CONCURRENT_TRANSACTIONS
    machine.deliver()
    assert error(machine.add_group(P)) is Error.NONE


def test_requests_while_a_step_is_being_stored_get_concurrent_transactions():
    machine = begun()
    machine.hold()
    ended = machine.end(P)
    assert ended.answer is None
    assert error(machine.end(P)) is Error.CONCURRENT_TRANSACTIONS
    assert error(machine.add_group(P)) is Error.CONCURRENT_TRANSACTIONS
    assert error(machine.init_producer()) is Error.CONCURRENT_TRANSACTIONS
    machine.land()
    assert error(ended) is Error.NONE


def test_group_is_added_once():
    machine = begun()
    assert error(machine.add_group(P)) is Error.NONE
    assert machine.log[TransactionKey("x")].groups == ("g",)


def test_step_that_cannot_be_stored_has_no_effect():
    machine = begun()
    machine.hold()
    ended = machine.end(P)
    machine.fail(Error.COORDINATOR_NOT_AVAILABLE)
    assert error(ended) is Error.COORDINATOR_NOT_AVAILABLE
    assert error(machine.end(P, commits=False)) is Error.NONE
    assert shown(machine, stable=True) == 1


def test_first_step_that_cannot_be_stored_leaves_no_transactional_id():
    machine = Machine()
    machine.hold()
    asked = machine.init_producer()
    machine.fail(Error.NOT_COORDINATOR)
    assert error(asked) is Error.NOT_COORDINATOR
    assert error(machine.add_group(P)) is Error.INVALID_PRODUCER_ID_MAPPING


def test_next_coordinator_completes_a_prepared_transaction():
    machine = begun()
    machine.delivering = False
    machine.end(P)
    successor = machine.successor()
    assert shown(successor, stable=True) == 5
    assert phase(successor) is Phase.COMPLETE_COMMIT


def test_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced():
    machine = begun()
    machine.wait(999)
    assert shown(machine, stable=True) is Error.UNSTABLE_OFFSET_COMMIT
    machine.wait(1)
    assert shown(machine, stable=True) == 1
    assert error(machine.end(P)) is Error.PRODUCER_FENCED


def test_timeout_counts_from_the_start_of_the_transaction_even_after_a_failover():
    machine = begun()
    machine.wait(900)
    successor = machine.successor()
    successor.wait(99)
    assert phase(successor) is Phase.ONGOING
    successor.wait(1)
    assert phase(successor) is Phase.COMPLETE_ABORT


def test_completion_that_cannot_be_stored_is_retried():
    machine = begun()
    machine.delivering = False
    machine.end(P)
    machine.hold()
    (marker,) = machine.markers
    machine.markers = []
    machine.marked(marker)
    machine.fail(Error.COORDINATOR_NOT_AVAILABLE)
    assert phase(machine) is Phase.PREPARE_COMMIT
    machine.wait(1_000)
    assert machine.markers == [marker]
    machine.deliver()
    assert phase(machine) is Phase.COMPLETE_COMMIT


# -- markers -------------------------------------------------------------------------------------------------------


def test_marker_of_a_replaced_coordinator_is_refused():
    machine = begun()
    assert error(machine.mark(P, commits=False, epoch=3)) is Error.NONE
    machine.commit_in_transaction(P, {"t-0": 6})
    assert error(machine.mark(P, epoch=2)) is Error.TRANSACTION_COORDINATOR_FENCED
    assert error(machine.successor().mark(P, epoch=2)) is Error.TRANSACTION_COORDINATOR_FENCED
    assert shown(machine, stable=True) is Error.UNSTABLE_OFFSET_COMMIT


def test_marker_of_an_old_producer_is_refused():
    machine = begun()
    machine.mark(Producer(100, 4), commits=False)
    assert error(machine.mark(P)) is Error.INVALID_PRODUCER_EPOCH


def test_repeated_marker_has_no_effect():
    machine = begun()
    machine.end(P)
    machine.commit("", {"t-0": 9}, generation=-1, member_id="")
    assert error(machine.mark(P)) is Error.NONE
    assert shown(machine) == 9


def test_marker_that_cannot_be_stored_leaves_the_offsets_pending():
    machine = begun()
    machine.hold()
    asked = machine.mark(P)
    machine.fail(Error.COORDINATOR_NOT_AVAILABLE)
    assert error(asked) is Error.COORDINATOR_NOT_AVAILABLE
    assert shown(machine, stable=True) is Error.UNSTABLE_OFFSET_COMMIT
    assert error(machine.mark(P)) is Error.NONE
    assert shown(machine, stable=True) == 5


def test_committed_pending_offset_is_traced_as_written():
    machine = begun()
    machine.end(P)
    written = [event for event in machine.events if event.kind == "offset_written"]
    assert [(event.fields["offset"], event.fields["by"]) for event in written] == [(1, ""), (5, "producer-100")]
