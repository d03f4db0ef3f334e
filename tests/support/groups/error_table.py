"""The error table `tests/coordinator/groups/error_table.txt`, and one group for each of its columns.

The text has a block for each request: its name, then a line for each state:

    heartbeat
      absent      25
      Preparing   27; a lives
        kafka: testHeartbeatDuringPreparingRebalance testHeartbeatDuringRebalanceCausesRebalanceInProgress

A line begins with the answer: the wire's error number, `parked`, or `0` with the values returned. Then follow `->
State` if the state changes, and all other effects, in order: answers to other members, session timers that are reset
(`lives`), stored records. Nothing else may happen. A line below a cell may name the Kafka tests that it covers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic.group import Group
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey, OffsetRecord, PendingKey, ProducerKey
from coordinator.groups.requests import Producer, Protocol
from tests.support.groups.classic import Asked, Machine, assignment, subscription

NAMES = ("a", "b", "c")
INSTANCE = "i"  #: c's
OTHER_METADATA = (Protocol("range", subscription("t", "u")),)
UNCOMMON = (Protocol("else", b""),)
PRODUCER = Producer(7, 0)
SYNC_V5 = {"protocol_is_mandatory": True, "protocol_type": "consumer", "protocol_name": "range"}


# -- the columns: a leads, b's request is parked where one can be, c is static ------------------------------------


def _completing(parked: str = "b") -> Machine:
    machine = Machine()
    machine.admit("a")
    machine.admit("b")
    machine.join("c", instance_id=INSTANCE)
    machine.wait(2 * machine.limits.initial_rebalance_delay_ms)
    for name in parked:
        machine.sync(name)
    return machine


def _stable() -> Machine:
    machine = _completing("")
    machine.sync("a", {name: assignment("t", number) for number, name in enumerate(NAMES)})
    for name in "bc":
        machine.sync(name)
    machine.commit("a", {"t-0": 7})
    return machine


def _preparing() -> Machine:
    machine = _stable()
    machine.join("b", protocols=OTHER_METADATA)
    return machine


def _empty() -> Machine:
    machine = _stable()
    machine.leave("a", "b", "c")
    return machine


def _dead() -> Machine:
    machine = _stable()
    machine.unload()
    return machine


COLUMNS: Mapping[str, tuple[str, Callable[[], Machine]]] = {
    "absent": ("Dead", Machine),
    "Empty": ("Empty", _empty),
    "Preparing": ("PreparingRebalance", _preparing),
    "Completing": ("CompletingRebalance", _completing),
    "Stable": ("Stable", _stable),
    "Dead": ("Dead", _dead),
}


def in_state(column: str) -> Machine:
    """A group in that state, some time after its members' last requests."""
    state, make = COLUMNS[column]
    machine = make()
    machine.wait(5)
    assert machine.state == state, machine.state
    return machine


# -- the rows -----------------------------------------------------------------------------------------------------


def _id(machine: Machine, name: str) -> str:
    return machine.ids.get(name, f"{name}-0")


def _join(who: str, **fields: Any) -> Callable[[Machine], Asked]:
    return lambda m: m.join(who, **{"member_id": _id(m, who) if who in (*NAMES, "x") else "", **fields})


def _sync(who: str, **fields: Any) -> Callable[[Machine], Asked]:
    given = {"a": assignment("t", 0, 1), "c": assignment("t", 2)} if who == "a" else None
    return lambda m: m.sync(who, given, **fields)


def _beat(who: str, **fields: Any) -> Callable[[Machine], Asked]:
    return lambda m: m.heartbeat(who, **fields)


def _commit(who: str, **fields: Any) -> Callable[[Machine], Asked]:
    return lambda m: m.commit(who, {"t-0": 5}, **fields)


def _in_transaction(who: str = "", **fields: Any) -> Callable[[Machine], Asked]:
    """A commit by a producer that names a member, or only the group."""
    if who:
        return _commit(who, producer=PRODUCER, **fields)
    return lambda m: m.commit_in_transaction(PRODUCER, {"t-0": 5}, **fields)


REQUESTS: Mapping[str, Callable[[Machine], Asked]] = {
    "join new, v4+": _join("d"),
    "join new, v3": _join("d", returns=False),
    "join new static": _join("d", instance_id="new"),
    "join static, known instance": _join("d", instance_id=INSTANCE),
    "join static, known instance, v9": _join("d", instance_id=INSTANCE, may_skip_assignment=True),
    "join static, known instance, new metadata": _join("d", instance_id=INSTANCE, protocols=OTHER_METADATA),
    "join leader, same metadata": _join("a"),
    "join leader, new metadata": _join("a", protocols=OTHER_METADATA),
    "join follower, same metadata": _join("c", instance_id=INSTANCE),
    "join follower, new metadata": _join("c", instance_id=INSTANCE, protocols=OTHER_METADATA),
    "join parked follower, same metadata": _join("b", protocols=OTHER_METADATA),
    "join unknown id": _join("x"),
    "join unknown id and instance": _join("x", instance_id="else"),
    "join unknown id, known instance": _join("x", instance_id=INSTANCE),
    "join known id, unknown instance": _join("a", instance_id="else"),
    "join leader, another's instance": _join("a", instance_id=INSTANCE),
    "join follower, another's instance": _join("b", instance_id=INSTANCE),
    "join new, other type": _join("d", protocol_type="connect"),
    "join new, no type": _join("d", protocol_type=""),
    "join new, no protocols": _join("d", protocols=()),
    "join new, no common protocol": _join("d", protocols=UNCOMMON),
    "join known, no common protocol": _join("a", protocols=UNCOMMON),
    "join new, session too short": _join("d", session_timeout_ms=9),
    "join unknown id, session too long": _join("x", session_timeout_ms=60_001),
    "sync leader": _sync("a"),
    "sync leader, v5": _sync("a", **SYNC_V5),
    "sync follower": _sync("c"),
    "sync parked follower": _sync("b"),
    "sync unknown id": _sync("x"),
    "sync old generation": _sync("a", generation=0),
    "sync unknown id, old generation": _sync("x", generation=0),
    "sync unknown instance": _sync("a", instance_id="else"),
    "sync another's instance": _sync("a", instance_id=INSTANCE),
    "sync another's instance, old generation": _sync("a", instance_id=INSTANCE, generation=0),
    "sync v5, no type": _sync("a", protocol_is_mandatory=True, protocol_name="range"),
    "sync v5, no name, unknown id": _sync("x", protocol_is_mandatory=True, protocol_type="consumer"),
    "sync v5, other type": _sync("a", **SYNC_V5 | {"protocol_type": "connect"}),
    "sync v5, other name": _sync("a", **SYNC_V5 | {"protocol_name": "else"}),
    "heartbeat": _beat("a"),
    "heartbeat of a parked member": _beat("b"),
    "heartbeat static": _beat("c", instance_id=INSTANCE),
    "heartbeat unknown id": _beat("x"),
    "heartbeat old generation": _beat("a", generation=0),
    "heartbeat next generation": _beat("a", generation=2),
    "heartbeat unknown instance": _beat("a", instance_id="else"),
    "heartbeat another's instance": _beat("a", instance_id=INSTANCE),
    "leave": lambda m: m.leave("a"),
    "leave of a parked member": lambda m: m.leave("b"),
    "leave by instance": lambda m: m.remove_instance(INSTANCE),
    "leave of all": lambda m: m.leave("a", "b", "c"),
    "leave unknown id": lambda m: m.leave("x"),
    "leave unknown instance": lambda m: m.remove_instance("else"),
    "leave another's instance": lambda m: m.leave("a", instance_ids={"a": INSTANCE}),
    "commit": _commit("a"),
    "commit v9": _commit("a", absent_group_is_named=True),
    "commit static": _commit("c", instance_id=INSTANCE),
    "commit unknown id": _commit("x"),
    "commit old generation": _commit("a", generation=0),
    "commit unknown instance": _commit("a", instance_id="else"),
    "commit another's instance": _commit("a", instance_id=INSTANCE),
    "commit without generation": lambda m: m.commit("", {"t-0": 5}, member_id="", generation=-1),
    "commit without generation, known id": _commit("a", generation=-1),
    "commit without generation, unknown id": _commit("x", generation=-1),
    "commit without generation, unknown instance": lambda m: m.commit(
        "", {"t-0": 5}, member_id="", instance_id="else", generation=-1
    ),
    "commit too much metadata": _commit("a", metadata="x" * 5_000),
    "txn commit": _in_transaction(),
    "txn commit of a member": _in_transaction("a"),
    "txn commit static": _in_transaction("c", instance_id=INSTANCE),
    "txn commit unknown id": _in_transaction("x"),
    "txn commit old generation": _in_transaction("a", generation=0),
    "txn commit unknown instance": _in_transaction("a", instance_id="else"),
    "txn commit another's instance": _in_transaction("a", instance_id=INSTANCE),
    "txn commit too much metadata": _in_transaction(metadata="x" * 5_000),
    "delete group": lambda m: m.delete_group(),
    "delete offset, subscribed": lambda m: m.delete_offsets(("t", 0)),
    "delete offset, not subscribed": lambda m: m.delete_offsets(("v", 0)),
}


# -- effects ------------------------------------------------------------------------------------------------------


def happened(machine: Machine, request: Callable[[Machine], Asked]) -> str:
    """Send the request, and describe the effects in the words of the text."""
    state, log = machine.state, dict(machine.log)
    sessions, waiting = _sessions(machine.group), [asked for asked in machine.asked.values() if asked.answer is None]
    asked = request(machine)
    answer = _answered(machine, asked) + (f" -> {machine.state}" if machine.state != state else "")
    others = [f"{each.who}'s {each.verb} {said}" for each in waiting if (said := _answered(machine, each)) != "parked"]
    after = _sessions(machine.group)
    lives = [f"{_short(machine, i)} lives" for i, at in after.items() if i in sessions and at != sessions[i]]
    changed = [key for key in {**log, **machine.log} if machine.log.get(key) != log.get(key)]
    stored = [_change(key, machine.log.get(key)) for key in changed]
    return "; ".join([answer, *others, *lives, *stored])


def _sessions(group: Group | None) -> dict[str, int]:
    return {} if group is None else {member.id: member.session_timer.deadline_ms for member in group.members.values()}


def _answered(machine: Machine, asked: Asked) -> str:
    if asked.answer is None:
        return "never" if asked.abandoned else "parked"
    answer: Any = asked.answer
    number = int(getattr(answer, "error", Error.NONE))
    if isinstance(answer, JoinAnswer) and not number:
        members = "+".join(_short(machine, m.member_id) for m in answer.members)
        skip = ", skip" if answer.skip_assignment else ""
        joined = f"generation {answer.generation} led by {_short(machine, answer.leader)}"
        return f"0 {joined}{f' of {members}' if members else ''}{skip}"
    if isinstance(answer, SyncAnswer) and not number:
        return f"0 {'something' if answer.assignment else 'nothing'}"
    parts = getattr(answer, "partitions", ()) or getattr(answer, "members", ())
    return str(number) if number or not parts else "+".join(str(int(part.error)) for part in parts)


def _short(machine: Machine, member_id: str) -> str:
    return next((name for name, known in machine.ids.items() if known == member_id), member_id.rpartition("-")[0])


def _change(key: Any, value: Any) -> str:
    if isinstance(key, ProducerKey):
        return "producer stored"
    if isinstance(key, PendingKey):
        return f"{key.topic}-{key.partition} pending at {value.offset}"
    name = "group" if isinstance(key, GroupKey) else f"{key.topic}-{key.partition}"
    if value is None:
        return f"{name} removed"
    return f"{name} stored" if not isinstance(value, OffsetRecord) else f"{name} at {value.offset}"


def state_of(machine: Machine) -> Group | None:
    """A copy for comparison, without the deadlines."""
    group = copy.deepcopy(machine.group)
    for member in group.members.values() if group else ():
        member.session_timer.deadline_ms = 0
    return group


# -- the text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One line of the text."""

    request: str
    state: str
    expected: str
    names: tuple[str, ...] = ()  #: of Kafka's tests

    @property
    def id(self) -> str:
        return f"{self.request} in {self.state}"


def cells(path: Path) -> list[Cell]:
    """The cells in the order of the text."""
    found: list[Cell] = []
    request = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split(maxsplit=1)
        if not words or line.startswith("#"):
            continue
        if not line.startswith(" "):
            request = line
        elif words[0] == "kafka:":
            cell = found.pop()
            found.append(replace(cell, names=(*cell.names, *words[1].split())))
        else:
            state, expected = words
            found.append(Cell(request, state, expected))
    return found
