"""Limits on metadata: of one member, and of all of a group together; exceeding them affects no other member."""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.groups.errors import Error
from coordinator.groups.requests import Protocol
from coordinator.service.limits import METADATA_BYTES_MIN, limits_of
from kernel.broker.settings.configuration import BrokerConfig
from tests.support.groups.classic import LIMITS, RANGE, Machine, assignment, stable

#: Room for three small members with all their ids, or for one with 500 bytes and another one.
TIGHT = dataclasses.replace(LIMITS, member_bytes_max=600, group_bytes_max=700)


def bringing(size: int, *names: str) -> tuple[Protocol, ...]:
    """Subscriptions of so many bytes, one for each name."""
    return tuple(Protocol(name, bytes(size)) for name in names)


def counted(machine: Machine) -> int:
    return sum(member.size for member in machine.group.members.values())


# -- one member -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocols", [bringing(601, "range"), bringing(301, "range", "sticky")])
def test_new_member_with_too_much_metadata_is_refused_before_it_gets_an_id(protocols):
    machine = stable("a", limits=TIGHT)
    before = (machine.state, machine.group.generation, dict(machine.group.members), dict(machine.group.pending))
    refused = machine.join("b", protocols=protocols).answer
    assert (refused.error, refused.member_id) == (Error.MESSAGE_TOO_LARGE, "")
    assert before == (machine.state, machine.group.generation, machine.group.members, machine.group.pending)
    assert machine.heartbeat("a").answer.error is Error.NONE


def test_pending_id_that_returns_with_too_much_metadata_is_removed_and_delays_no_rebalance():
    machine = stable("a", limits=TIGHT)
    machine.join("b")
    waiting = machine.join("a", protocols=bringing(10, "range"))  # a rebalance that waits for the id
    assert waiting.waits
    assert machine.join("b", protocols=bringing(601, "range")).answer.error is Error.MESSAGE_TOO_LARGE
    assert (waiting.answer.error, machine.group.pending) == (Error.NONE, {})


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_member_that_rejoins_with_too_much_metadata_is_removed_and_others_get_its_partitions(instance_id):
    machine = stable("a", "b", limits=TIGHT, instance_id=None)
    machine.join("c", instance_id=instance_id)
    for name in "abc":
        machine.join(name, **({"instance_id": instance_id} if name == "c" else {}))
    for name in "abc":
        machine.sync(name, **({"instance_id": instance_id} if name == "c" else {}))
    assert machine.state == "Stable"
    given = {"instance_id": instance_id, "protocols": bringing(601, "range")}
    assert machine.join("c", **given).answer.error is Error.MESSAGE_TOO_LARGE
    assert (machine.state, len(machine.group.members)) == ("PreparingRebalance", 2)
    answers = [machine.join(name).answer for name in "ab"]
    assert answers[-1].error is Error.NONE
    assert machine.group.size == counted(machine)


def test_too_much_metadata_with_another_members_instance_id_removes_no_member():
    machine = Machine(limits=TIGHT)
    machine.join("a", instance_id="i")
    machine.wait(100)
    machine.sync("a", {"a": assignment("t", 0)}, instance_id="i")
    refused = machine.join("x", instance_id="i", protocols=bringing(601, "range"))
    assert refused.answer.error is Error.MESSAGE_TOO_LARGE
    assert machine.heartbeat("a", instance_id="i").answer.error is Error.NONE


# -- the whole group --------------------------------------------------------------------------------------------------


def test_group_accepts_members_up_to_its_total_metadata_and_again_after_a_leave():
    machine = Machine(limits=TIGHT)
    first = machine.admit("a", protocols=bringing(500, "range"))
    second = machine.admit("b")
    assert machine.join("c", protocols=bringing(100, "range")).answer.error is Error.GROUP_MAX_SIZE_REACHED
    machine.wait(100)
    assert [asked.answer.error for asked in (first, second)] == [Error.NONE] * 2
    machine.leave("a")
    machine.join("c", protocols=bringing(100, "range"))
    assert machine.join("c", protocols=bringing(100, "range")).answer is None  # it was admitted, and waits for b
    assert machine.join("b").answer.error is Error.NONE
    assert (set(machine.group.members), machine.group.size) == ({machine.ids["b"], machine.ids["c"]}, counted(machine))


def test_rejoining_member_is_not_counted_twice():
    machine = stable("a", "b", limits=TIGHT, protocols=bringing(230, "range"))
    assert machine.group.size > TIGHT.group_bytes_max / 2
    answers = [machine.join(name, protocols=bringing(231, "range")) for name in "ab"]
    assert {asked.answer.error for asked in answers} == {Error.NONE}
    assert machine.group.size == counted(machine)


def test_restarted_static_member_is_counted_once():
    machine = Machine(limits=TIGHT)
    for _ in range(3):
        asked = machine.join("a", new=True, instance_id="i", protocols=bringing(400, "range"))
        machine.wait(600)
        assert asked.answer.error is Error.NONE
        assert machine.group.size == counted(machine)


def test_loaded_group_counts_its_members_metadata():
    machine = stable("a", "b", limits=TIGHT)
    loaded = machine.successor()
    assert loaded.group.size == machine.group.size == counted(machine)
    loaded.leave("a")
    assert loaded.group.size == counted(loaded)


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "member_bytes", "group_bytes"),
    [
        ({}, 524_294, 786_441),
        ({"message.max.bytes": "16777216"}, 8_388_608, 12_582_912),
        ({"message.max.bytes": "3000"}, METADATA_BYTES_MIN, METADATA_BYTES_MIN),
        ({"group.member.metadata.max.bytes": "10", "group.metadata.max.bytes": "20"}, 10, 20),
    ],
)
def test_limits_follow_the_largest_record_unless_they_are_set(settings, member_bytes, group_bytes):
    config, _ = BrokerConfig.from_settings(settings)
    limits = limits_of(config, traced=False)
    assert (limits.member_bytes_max, limits.group_bytes_max) == (member_bytes, group_bytes)


def test_thousands_of_small_members_have_room_within_the_default():
    machine = Machine(limits=dataclasses.replace(limits_of(BrokerConfig.from_settings({})[0], traced=False)))
    asked = [machine.join(f"consumer-{n}", returns=False, protocols=RANGE) for n in range(5_000)]
    assert {each.answer for each in asked} == {None}
    assert len(machine.group.members) == 5_000
