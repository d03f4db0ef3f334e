"""The error table, request by state: every cell of it (KIP-62 and on; where versions differ, as 4.1.1).

A column is a group in one state, made of members a (leader) and b; `absent` is none at all. A cell says what the
request is answered, or `parked`. Where a request is refused, the group must be exactly as before.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from coordinator.group.errors import Error
from coordinator.group.records import OffsetRecord
from coordinator.group.requests import Protocol
from tests.support.group_machine import (
    Asked,
    Machine,
    assignment,
    completing,
    dead,
    empty,
    preparing,
    stable,
    subscription,
)

if TYPE_CHECKING:
    from collections.abc import Callable

STATES: dict[str, Callable[[], Machine]] = {
    "absent": Machine,
    "Empty": empty,
    "Preparing": lambda: preparing("a", "b"),
    "Completing": lambda: completing("a", "b"),
    "Stable": lambda: stable("a", "b"),
    "Dead": dead,
}

NEW_METADATA = (Protocol("range", subscription("t", "u")),)
ANOTHER_PROTOCOL = (Protocol("else", b""),)
TOO_LONG = "x" * 5_000


def _commit(**fields: Any) -> Callable[[Machine], Asked]:
    return lambda m: m.commit(fields.get("who", "a"), {"t-0": 5}, **{k: v for k, v in fields.items() if k != "who"})


REQUESTS: dict[str, Callable[[Machine], Asked]] = {
    "join new, v4+": lambda m: m.join("c"),
    "join new, v3": lambda m: m.join("c", returns=False),
    "join new static": lambda m: m.join("c", instance_id="i"),
    "join known leader, same metadata": lambda m: m.join("a", member_id=m.ids.get("a", "a-1")),
    "join known follower, same metadata": lambda m: m.join("b", member_id=m.ids.get("b", "b-1")),
    "join known follower, new metadata": lambda m: m.join("b", member_id=m.ids.get("b", "b-1"), protocols=NEW_METADATA),
    "join unknown id": lambda m: m.join("x", member_id="x-9"),
    "join known id, foreign instance": lambda m: m.join("a", member_id=m.ids.get("a", "a-1"), instance_id="i"),
    "join new, other type": lambda m: m.join("c", protocol_type="connect"),
    "join new, no common protocol": lambda m: m.join("c", protocols=ANOTHER_PROTOCOL),
    "join new, no protocols": lambda m: m.join("c", protocols=()),
    "join new, session too short": lambda m: m.join("c", session_timeout_ms=9),
    "join new, session too long": lambda m: m.join("c", session_timeout_ms=60_001),
    "sync follower": lambda m: m.sync("b"),
    "sync leader": lambda m: m.sync("a", {"a": assignment("t", 0)}),
    "sync unknown member": lambda m: m.sync("x"),
    "sync old generation": lambda m: m.sync("a", generation=0),
    "sync v5 without protocol": lambda m: m.sync("a", protocol_is_mandatory=True),
    "sync v5, other protocol": lambda m: m.sync(
        "a", protocol_is_mandatory=True, protocol_type="consumer", protocol_name="else"
    ),
    "heartbeat": lambda m: m.heartbeat("a"),
    "heartbeat unknown member": lambda m: m.heartbeat("x"),
    "heartbeat old generation": lambda m: m.heartbeat("a", generation=0),
    "heartbeat unknown instance": lambda m: m.heartbeat("a", instance_id="i"),
    "leave": lambda m: m.leave("a"),
    "leave unknown member": lambda m: m.leave("x"),
    "leave unknown instance": lambda m: m.remove_instance("i"),
    "commit": _commit(),
    "commit unknown member": _commit(who="x"),
    "commit old generation": _commit(generation=0),
    "commit v9": _commit(absent_group_is_named=True),
    "commit without generation or ids": _commit(who="", member_id="", generation=-1),
    "commit without generation, known id": _commit(generation=-1),
    "commit without generation, unknown id": _commit(who="x", generation=-1),
    "commit with too much metadata": _commit(metadata=TOO_LONG),
    "delete group": lambda m: m.delete_group(),
    "delete offsets of a subscribed topic": lambda m: m.delete_offsets(("t", 0)),
    "delete offsets of another topic": lambda m: m.delete_offsets(("v", 0)),
}

NONE, PARKED = "NONE", "parked"
UNKNOWN, GENERATION, REBALANCE = "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"
GONE, INCONSISTENT, NOT_FOUND = "COORDINATOR_NOT_AVAILABLE", "INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"
SESSION, ID, NON_EMPTY = "INVALID_SESSION_TIMEOUT", "MEMBER_ID_REQUIRED", "NON_EMPTY_GROUP"
SUBSCRIBED, METADATA = "GROUP_SUBSCRIBED_TO_TOPIC", "OFFSET_METADATA_TOO_LARGE"

#: request: (absent, Empty, Preparing, Completing, Stable, Dead)
CELLS: dict[str, tuple[str, str, str, str, str, str]] = {
    "join new, v4+": (ID, ID, ID, ID, ID, GONE),
    "join new, v3": (PARKED, PARKED, PARKED, PARKED, PARKED, GONE),
    "join new static": (PARKED, PARKED, PARKED, PARKED, PARKED, GONE),
    "join known leader, same metadata": (UNKNOWN, UNKNOWN, NONE, NONE, PARKED, GONE),
    "join known follower, same metadata": (UNKNOWN, UNKNOWN, PARKED, NONE, NONE, GONE),
    "join known follower, new metadata": (UNKNOWN, UNKNOWN, PARKED, PARKED, PARKED, GONE),
    "join unknown id": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "join known id, foreign instance": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "join new, other type": (ID, ID, INCONSISTENT, INCONSISTENT, INCONSISTENT, GONE),
    "join new, no common protocol": (ID, ID, INCONSISTENT, INCONSISTENT, INCONSISTENT, GONE),
    "join new, no protocols": (INCONSISTENT, INCONSISTENT, INCONSISTENT, INCONSISTENT, INCONSISTENT, GONE),
    "join new, session too short": (SESSION, SESSION, SESSION, SESSION, SESSION, SESSION),
    "join new, session too long": (SESSION, SESSION, SESSION, SESSION, SESSION, SESSION),
    "sync follower": (UNKNOWN, UNKNOWN, REBALANCE, PARKED, NONE, GONE),
    "sync leader": (UNKNOWN, UNKNOWN, REBALANCE, NONE, NONE, GONE),
    "sync unknown member": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "sync old generation": (UNKNOWN, UNKNOWN, GENERATION, GENERATION, GENERATION, GONE),
    "sync v5 without protocol": (INCONSISTENT, INCONSISTENT, INCONSISTENT, INCONSISTENT, INCONSISTENT, INCONSISTENT),
    "sync v5, other protocol": (UNKNOWN, UNKNOWN, INCONSISTENT, INCONSISTENT, INCONSISTENT, GONE),
    "heartbeat": (UNKNOWN, UNKNOWN, REBALANCE, NONE, NONE, GONE),
    "heartbeat unknown member": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "heartbeat old generation": (UNKNOWN, UNKNOWN, GENERATION, GENERATION, GENERATION, GONE),
    "heartbeat unknown instance": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "leave": (UNKNOWN, UNKNOWN, NONE, NONE, NONE, GONE),
    "leave unknown member": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "leave unknown instance": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit": (GENERATION, UNKNOWN, NONE, REBALANCE, NONE, GONE),
    "commit unknown member": (GENERATION, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit old generation": (GENERATION, UNKNOWN, GENERATION, GENERATION, GENERATION, GONE),
    "commit v9": (NOT_FOUND, UNKNOWN, NONE, REBALANCE, NONE, GONE),
    "commit without generation or ids": (NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit without generation, known id": (NONE, NONE, GENERATION, GENERATION, GENERATION, GONE),
    "commit without generation, unknown id": (NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit with too much metadata": (GENERATION, UNKNOWN, METADATA, REBALANCE, METADATA, GONE),
    "delete group": (NOT_FOUND, NONE, NON_EMPTY, NON_EMPTY, NON_EMPTY, NOT_FOUND),
    "delete offsets of a subscribed topic": (NOT_FOUND, NONE, SUBSCRIBED, SUBSCRIBED, SUBSCRIBED, NOT_FOUND),
    "delete offsets of another topic": (NOT_FOUND, NONE, NONE, NONE, NONE, NOT_FOUND),
}

TABLE = [
    (request, state, expected) for request, row in CELLS.items() for state, expected in zip(STATES, row, strict=True)
]
HARMLESS = {
    UNKNOWN, GENERATION, GONE, INCONSISTENT, NOT_FOUND, SESSION, NON_EMPTY, SUBSCRIBED, METADATA
}  # fmt: skip


def _said(asked: Asked) -> str:
    """The error of an answer: its own, or its only part's."""
    answer: Any = asked.answer
    if answer is None:
        return PARKED
    if getattr(answer, "error", Error.NONE) is not Error.NONE:
        return str(answer.error.name)
    parts = getattr(answer, "partitions", ()) or (getattr(answer, "members", ()) if asked.verb == "leave" else ())
    (error,) = {part.error for part in parts} or {Error.NONE}
    return str(error.name)


@pytest.mark.parametrize(("request_name", "state", "expected"), TABLE, ids=[f"{r} in {s}" for r, s, _ in TABLE])
def test_error_table_cell(request_name: str, state: str, expected: str):
    machine = STATES[state]()
    before = copy.deepcopy(machine.shard.groups)
    log = dict(machine.log)
    asked = REQUESTS[request_name](machine)
    assert _said(asked) == expected
    if expected in HARMLESS:
        after = machine.shard.groups
        if state == "absent":  # a first JoinGroup makes the group even when it is refused, as in Kafka
            after = {k: g for k, g in after.items() if g.members or g.pending}
        else:
            _forget_deadlines(before), _forget_deadlines(after)
            assert machine.log == log
        assert after == before


#: What is seen of a group with a committed offset: its state, protocol, subscriptions, assignments, and the offset.
SEEN = {
    "absent": ("Dead", "", False, False, None),
    "Empty": ("Empty", "", False, False, 7),
    "Preparing": ("PreparingRebalance", "", False, True, 7),
    "Completing": ("CompletingRebalance", "", False, False, 7),
    "Stable": ("Stable", "range", True, True, 7),
    "Dead": ("Dead", "", False, False, None),
}


@pytest.mark.parametrize("state", SEEN)
def test_error_table_what_describe_list_and_offset_fetch_show(state: str):
    machine = STATES[state]()
    if state != "absent":
        machine.shard.offsets[machine.group_id] = {("t", 0): OffsetRecord(7, -1, "", 0)}
    name, protocol, subscriptions, assignments, offset = SEEN[state]
    seen = machine.shard.describe(machine.group_id)
    assert (seen.state.value, seen.protocol_name) == (name, protocol)
    assert any(member.metadata for member in seen.members) is subscriptions
    assert any(member.assignment for member in seen.members) is assignments
    ((topic, partition, fetched),) = machine.shard.fetch_offsets(machine.group_id, (("t", 0),))
    assert (topic, partition, fetched.offset if fetched else None) == ("t", 0, offset)
    everything = machine.shard.fetch_offsets(machine.group_id, None)
    assert len(everything) == (0 if offset is None else 1)
    listed = [group.state.value for group in machine.shard.list()]
    assert listed == ([] if state == "absent" else [name])
    assert not machine.shard.list(states=["no such state"])
    assert machine.shard.list(states=[name.upper()], types=["CLASSIC"]) == machine.shard.list()


def _forget_deadlines(groups: dict[str, Any]) -> None:
    """A refused commit still shows that its sender is alive."""
    for group in groups.values():
        for member in group.members.values():
            member.vigil.deadline_ms = 0


def test_error_table_names_every_request_and_state():
    assert CELLS.keys() == REQUESTS.keys()
    assert {len(row) for row in CELLS.values()} == {len(STATES)}
