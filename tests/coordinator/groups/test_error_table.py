"""The error table, request by state: every cell (as in 4.1.1 where versions differ).

The table is `error_table.txt`; `tests.support.groups.error_table` describes its form and the groups of its columns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.groups.requests import Protocol
from tests.support.groups.classic import Machine, stable
from tests.support.groups.error_table import COLUMNS, REQUESTS, cells, happened, in_state, state_of

TABLE = cells(Path(__file__).with_name("error_table.txt"))
CELLS = [pytest.param(cell, id=cell.id, marks=[pytest.mark.kafka(*cell.names)] if cell.names else []) for cell in TABLE]


@pytest.mark.parametrize("cell", CELLS)
def test_error_table_cell(cell):
    machine = in_state(cell.state)
    before = state_of(machine)
    assert happened(machine, REQUESTS[cell.request]) == cell.expected
    if cell.expected.isdigit() and cell.expected not in {"0", "79"}:
        assert state_of(machine) == before, "a refused request had an effect"


def test_error_table_has_every_request_in_every_state():
    assert [(cell.request, cell.state) for cell in TABLE] == [(r, column) for r in REQUESTS for column in COLUMNS]


#: What is visible of a group: state, protocol, subscriptions, assignments, and the committed offset.
SEEN = {
    "absent": ("Dead", "", False, False, None),
    "Empty": ("Empty", "", False, False, 7),
    "Preparing": ("PreparingRebalance", "", False, True, 7),
    "Completing": ("CompletingRebalance", "", False, False, None),
    "Stable": ("Stable", "range", True, True, 7),
    "Dead": ("Dead", "", False, False, None),
}


@pytest.mark.kafka(
    "testDescribeGroupInactiveGroup",
    "testDescribeGroupStableForDynamicMember",
    "testDescribeGroupStable",
    "testDescribeGroupRebalancing",
    "testListGroups",
    "testListGroupsIncludesStableGroups",
    "testListGroupsIncludesRebalancingGroups",
    "testListGroupsWithStates",
    "testListGroupsWithTypes",
    "testFetchOffsets",
    "testFetchOffsetForUnknownPartition",
    "testFetchAllOffsets",
)
@pytest.mark.parametrize("state", SEEN)
def test_error_table_describe_list_and_offset_fetch(state):
    machine = in_state(state)
    name, protocol, subscriptions, assignments, offset = SEEN[state]
    seen = machine.subject.describe(machine.group_id)
    assert (seen.state.value, seen.protocol_name) == (name, protocol)
    assert any(member.metadata for member in seen.members) is subscriptions
    assert any(member.assignment for member in seen.members) is assignments
    assert machine.committed("t-0", "t-1") == [offset, None]
    assert len(machine.subject.offsets.fetch(machine.group_id, None)) == (0 if offset is None else 1)
    listed = [group.state.value for group in machine.subject.list() if group]
    assert listed == ([] if state == "absent" else [name])
    assert list(machine.subject.list(states=["no such state"])) == [None] * len(listed)  # each group is a step
    assert list(machine.subject.list(states=[name.upper()], types=["CLASSIC"])) == list(machine.subject.list())
    assert not list(machine.subject.list(types=["consumer"]))


#: The answers to a fetch of a partition with a pending offset: plain, and for stable offsets (KIP-447).
PENDING = {
    "absent": (None, "UNSTABLE_OFFSET_COMMIT"),
    "Empty": (7, "UNSTABLE_OFFSET_COMMIT"),
    "Preparing": (7, "UNSTABLE_OFFSET_COMMIT"),
    "Completing": (None, "UNSTABLE_OFFSET_COMMIT"),
    "Stable": (7, "UNSTABLE_OFFSET_COMMIT"),
    "Dead": (None, None),
}


@pytest.mark.parametrize("state", PENDING)
def test_error_table_offset_fetch_while_a_transaction_is_open(state):
    machine = in_state(state)
    REQUESTS["txn commit"](machine)
    committed, stable_only = PENDING[state]
    assert machine.committed("t-0") == [committed]
    ((_, _, pending), (_, _, other)) = machine.subject.offsets.fetch("g", (("t", 0), ("t", 1)), stable=True)
    assert getattr(pending, "name", None) == stable_only
    assert other is None


# -- OffsetDelete for groups of other protocol types --------------------------------------------------------------


def _workers() -> Machine:
    return stable("a", protocol_type="connect", protocols=(Protocol("sessioned", b"not for consumers"),))


@pytest.mark.kafka("testDeleteOffsetOfNonEmptyNonConsumerGroup")
def test_error_table_offsets_of_present_workers_are_not_deleted():
    machine = _workers()
    assert [int(error) for error in _deleted(machine)] == [68]


@pytest.mark.kafka("testDeleteOffsetOfEmptyNonConsumerGroup")
def test_error_table_offsets_of_workers_that_have_left_are_deleted():
    machine = _workers()
    machine.commit("a", {"t-0": 7})
    machine.leave("a")
    assert [int(error) for error in _deleted(machine)] == [0, 0]
    assert machine.committed("t-0") == [None]


@pytest.mark.kafka("testDeleteOffsetOfConsumerGroupWithUnparsableProtocol")
def test_error_table_subscriptions_that_cannot_be_read_count_as_subscribed_to_everything():
    machine = stable("a", protocols=(Protocol("range", b"\x00"),))
    assert [int(error) for error in _deleted(machine)] == [0, 86]


def _deleted(machine):
    """The response's error, then the partition's; only the former if the whole request is refused."""
    answer = machine.delete_offsets(("t", 0)).answer
    return [answer.error, *(part.error for part in answer.partitions)]
