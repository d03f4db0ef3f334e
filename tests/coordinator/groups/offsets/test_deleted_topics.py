"""A deleted topic takes its committed offsets with it, in groups of every kind but those of `server`."""

from __future__ import annotations

import pytest

from coordinator.groups.errors import Error
from coordinator.groups.records import OffsetKey, PendingKey
from coordinator.groups.requests import Producer
from tests.support.groups.classic import Machine, stable

P = Producer(100, 0)


def delete_topic(machine: Machine, topic: str, *, spared: frozenset[str] = frozenset()) -> None:
    offsets = machine.subject.offsets
    machine._perform(
        machine.subject.step(lambda turn: offsets.delete_of_topics({topic}, turn, spared=spared), machine.now)
    )


def stored(machine: Machine) -> set[str]:
    return {f"{key.topic}-{key.partition}" for key in machine.log if isinstance(key, OffsetKey)}


def test_offsets_of_a_deleted_topic_end_and_those_of_others_stay():
    machine = stable("a")
    machine.commit("a", {"t-0": 1, "t-1": 2, "u-0": 3})
    delete_topic(machine, "t")
    assert machine.committed("t-0", "t-1", "u-0") == [None, None, 3]
    assert stored(machine) == {"u-0"}
    assert machine.state == "Stable"


def test_member_may_commit_to_the_topic_that_takes_the_name():
    machine = stable("a")
    machine.commit("a", {"t-0": 1})
    delete_topic(machine, "t")
    machine.commit("a", {"t-0": 7})
    assert machine.committed("t-0") == [7]


def test_topic_without_offsets_is_deleted_without_a_write():
    machine = stable("a")
    machine.commit("a", {"u-0": 1})
    before = len(machine.outcomes)
    delete_topic(machine, "t")
    (outcome,) = machine.outcomes[before:]
    assert not outcome.writes


def test_commit_on_its_way_to_the_log_goes_with_its_topic():
    machine = stable("a")
    machine.hold()
    machine.commit("a", {"t-0": 1, "u-0": 2})
    delete_topic(machine, "t")
    machine.land()
    assert machine.committed("t-0", "u-0") == [None, 2]
    assert stored(machine) == {"u-0"}


def test_pending_offset_goes_with_its_topic_and_its_transaction_does_not_restore_it():
    machine = stable("a")
    machine.init_producer()
    machine.add_group(P)
    machine.commit_in_transaction(P, {"t-0": 5, "u-0": 6})
    delete_topic(machine, "t")
    assert {key.topic for key in machine.log if isinstance(key, PendingKey)} == {"u"}
    machine.end(P)
    assert machine.committed("t-0", "u-0") == [None, 6]


@pytest.mark.parametrize("error", [Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR])
def test_offsets_stay_if_their_tombstones_cannot_be_stored(error: Error):
    machine = stable("a")
    machine.commit("a", {"t-0": 1})
    machine.hold()
    delete_topic(machine, "t")
    machine.fail(error)
    assert machine.committed("t-0") == [1]
    assert stored(machine) == {"t-0"}


def test_spared_group_keeps_its_offsets():
    machine = stable("a")
    machine.commit("a", {"t-0": 1})
    delete_topic(machine, "t", spared=frozenset({machine.group_id}))
    assert machine.committed("t-0") == [1]
