"""Offsets expire by the state of their group (KIP-211), and groups with them; a manual clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.records import GroupKey, OffsetKey
from coordinator.groups.requests import Producer, Protocol
from tests.support.groups.classic import LIMITS, Machine, stable, subscription

RETENTION, CHECK = 5_000, 1_000
SHORT = replace(LIMITS, retention_ms=RETENTION, retention_check_ms=CHECK)


def loaded(machine: Machine) -> Machine:
    """The same group at a coordinator that has just taken over: from then on it looks for expired offsets."""
    return machine.successor()


def offsets(machine: Machine) -> set[str]:
    return {f"{topic}-{partition}" for topic, partition in machine.subject.offsets.by_group.get(machine.group_id, {})}


def stored(machine: Machine) -> set[str]:
    return {f"{key.topic}-{key.partition}" for key in machine.log if isinstance(key, OffsetKey)}


def admin_commit(machine: Machine, *names: str) -> None:
    machine.commit("", dict.fromkeys(names, 1), generation=-1, member_id="")


def test_offsets_of_a_simple_group_expire_by_commit_time_and_the_group_with_the_last():
    machine = loaded(Machine(SHORT))
    admin_commit(machine, "t-0")
    machine.wait(2_500)
    admin_commit(machine, "t-1")
    machine.wait(RETENTION - 2_501)
    assert offsets(machine) == {"t-0", "t-1"}
    machine.wait(CHECK)
    assert offsets(machine) == stored(machine) == {"t-1"}
    assert machine.state == "Empty"
    machine.wait(RETENTION)
    assert not offsets(machine)
    assert (machine.state, machine.log) == ("Dead", {})


def test_offsets_of_an_empty_group_expire_by_the_time_since_it_became_empty():
    machine = loaded(stable("a", limits=SHORT))
    machine.commit("a", {"t-0": 1})
    machine.wait(2 * RETENTION - 1_000)
    machine.leave("a")
    assert machine.state == "Empty"
    machine.wait(RETENTION - 1)
    assert offsets(machine) == {"t-0"}
    machine.wait(CHECK)
    assert not stored(machine)
    assert GroupKey("g") not in machine.log
    assert machine.state == "Dead"


def test_time_since_a_group_became_empty_survives_its_coordinator():
    machine = stable("a", limits=SHORT)
    machine.commit("a", {"t-0": 1})
    machine.leave("a")
    machine.wait(RETENTION - CHECK)
    machine = loaded(machine)
    machine.wait(CHECK)
    assert not offsets(machine)


def test_stable_group_keeps_the_offsets_of_its_subscribed_topics():
    machine = loaded(stable("a", limits=SHORT))
    machine.commit("a", {"t-0": 1, "u-0": 1})
    for _ in range(3):
        machine.wait(RETENTION - 1)
        machine.heartbeat("a")
    assert offsets(machine) == stored(machine) == {"t-0"}
    assert machine.state == "Stable"


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", b""), ("consumer", b"junk")], ids=["of another type", "unreadable"]
)
def test_stable_group_with_unknown_subscriptions_keeps_everything(protocol_type: str, metadata: bytes):
    fields = {"protocol_type": protocol_type, "protocols": (Protocol("range", metadata),)}
    machine = loaded(stable("a", limits=SHORT, **fields))
    machine.commit("a", {"t-0": 1, "u-0": 1})
    machine.wait(RETENTION)
    machine.heartbeat("a")
    machine.wait(RETENTION)
    assert offsets(machine) == {"t-0", "u-0"}


@pytest.mark.parametrize("members", ["a", "ab"], ids=["CompletingRebalance", "PreparingRebalance"])
def test_nothing_expires_during_a_rebalance(members: str):
    """KAFKA-13636; with one member the join is complete at once, and the group waits for its assignment."""
    slow = {"rebalance_timeout_ms": 60_000}
    machine = stable(*members, limits=SHORT, **slow)
    machine.commit("a", {"u-0": 1})
    machine = loaded(machine)
    machine.join(members[-1], protocols=(Protocol("range", subscription("t", "v")),), **slow)
    for _ in range(2):
        machine.wait(RETENTION)
        machine.heartbeat("a")
    assert machine.state == ("PreparingRebalance" if len(members) == 2 else "CompletingRebalance")
    assert offsets(machine) == {"u-0"}


def test_commit_being_written_is_not_expired():
    machine = loaded(Machine(SHORT))
    admin_commit(machine, "t-0")
    machine.wait(RETENTION - 1)
    machine.hold()
    admin_commit(machine, "t-0")
    machine.wait(CHECK)
    machine.land()
    assert offsets(machine) == stored(machine) == {"t-0"}


def test_offset_with_a_pending_one_does_not_expire():
    machine = loaded(Machine(SHORT))
    admin_commit(machine, "t-0", "t-1")
    machine.commit_in_transaction(Producer(100, 0), {"t-0": 5, "u-0": 5})
    machine.wait(2 * RETENTION)
    assert offsets(machine) == {"t-0"}
    machine.mark(Producer(100, 0), commits=False)
    machine.wait(CHECK)
    assert not offsets(machine)
    assert machine.state == "Dead"


def test_empty_group_without_offsets_is_removed_at_the_next_check():
    machine = loaded(stable("a", limits=SHORT))
    machine.leave("a")
    machine.wait(CHECK)
    assert (machine.state, machine.log) == ("Dead", {})


def test_group_whose_removal_cannot_be_stored_stays():
    machine = loaded(Machine(SHORT))
    admin_commit(machine, "t-0")
    machine.wait(RETENTION - 1)
    machine.hold()
    machine.wait(CHECK)
    assert machine.state == "Dead"
    machine.fail()
    assert machine.state == "Empty"
    assert offsets(machine) == {"t-0"}
    machine.wait(CHECK)
    assert not offsets(machine)
