"""Conversations with the group machine as text files: prose, commands, and their effects.

A file begins with prose (`# ...`). Then come blocks: a command line, `----`, and the recorded effects, one per line, up
to a blank line. `REWRITE=1 pytest ...` records them again: read the diff, and commit it only if it is intended.

    limits initial_rebalance_delay_ms=50     settings of the machine (first)
    join a [new] [v3] [session_timeout_ms=..] [rebalance_timeout_ms=..] [instance_id=i] [protocols=range:t,rr:u]
    admit a                                  the two JoinGroups of a new member
    sync a [a=t:0,1 b=t:2] [generation=n]    heartbeat a [generation=n]        leave a b
    commit a t-0=5 [generation=n]            delete                            describe
    wait 50 | hold | land | fail [ERROR] | unload | successor

Effects are shown in the order in which the service performs them; `*` marks the leader in a list of members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from coordinator.groups.answers import (
    Answer,
    CommitAnswer,
    DeleteGroupAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    SyncAnswer,
)
from coordinator.groups.effects import Effects, SetTimer, TraceEvent, Write
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.records import GroupKey, GroupRecord, OffsetRecord, PendingKey
from coordinator.groups.requests import Protocol
from coordinator.protocol.consumer_protocol import decode_assignment
from tests.support.groups.classic import Machine, assignment, subscription

PAUSE = "----"
RETENTION = "retention"


class Script:
    """Plays one file."""

    def __init__(self) -> None:
        self.machine = Machine()
        self._seen = 0

    def play(self, text: str) -> str:
        """The file with the same commands and their current effects."""
        prose, *blocks = re.split(r"\n\n+", text.strip())
        played = [prose]
        for block in blocks:
            commands = block.split(f"\n{PAUSE}", 1)[0].splitlines()
            effects: list[str] = []
            for command in commands:
                if not command.startswith("#"):
                    effects += self._run(command)
            played.append("\n".join([*commands, PAUSE, *effects]))
        return "\n\n".join(played) + "\n"

    def _run(self, command: str) -> Iterator[str]:
        verb, *words = command.split()
        plain = [word for word in words if "=" not in word]
        fields = {key: _value(key, value) for key, value in (word.split("=", 1) for word in words if "=" in word)}
        extra = getattr(self, f"_do_{verb.replace('-', '_')}")(plain, fields)
        yield from extra or ()
        for outcome in self.machine.outcomes[self._seen :]:
            yield from self._shown(outcome)
        self._seen = len(self.machine.outcomes)

    # -- commands ---------------------------------------------------------------------------------------------------

    def _do_limits(self, _: list[str], fields: dict[str, Any]) -> None:
        self.machine = Machine(Limits(**{"session_timeout_ms_min": 1, **fields}))

    def _do_join(self, plain: list[str], fields: dict[str, Any]) -> None:
        self.machine.join(plain[0], new="new" in plain, returns="v3" not in plain, **fields)

    def _do_admit(self, plain: list[str], fields: dict[str, Any]) -> None:
        self.machine.admit(plain[0], **fields)

    def _do_sync(self, plain: list[str], fields: dict[str, Any]) -> None:
        given = {name: fields.pop(name) for name in list(fields) if name not in ("generation", "instance_id")}
        self.machine.sync(plain[0], {name: _assignment(text) for name, text in given.items()}, **fields)

    def _do_heartbeat(self, plain: list[str], fields: dict[str, Any]) -> None:
        self.machine.heartbeat(plain[0], **fields)

    def _do_leave(self, plain: list[str], _: dict[str, Any]) -> None:
        self.machine.leave(*plain)

    def _do_commit(self, plain: list[str], fields: dict[str, Any]) -> None:
        known = {name: fields.pop(name) for name in ("generation", "instance_id", "member_id") if name in fields}
        self.machine.commit(plain[0], {name: int(value) for name, value in fields.items()}, **known)

    def _do_delete(self, _: list[str], __: dict[str, Any]) -> None:
        self.machine.delete_group()

    def _do_wait(self, plain: list[str], _: dict[str, Any]) -> None:
        self.machine.wait(int(plain[0]))

    def _do_hold(self, _: list[str], __: dict[str, Any]) -> None:
        self.machine.hold()

    def _do_land(self, _: list[str], __: dict[str, Any]) -> None:
        self.machine.land()

    def _do_fail(self, plain: list[str], _: dict[str, Any]) -> None:
        self.machine.fail(Error[plain[0]] if plain else Error.NOT_COORDINATOR)

    def _do_unload(self, _: list[str], __: dict[str, Any]) -> None:
        self.machine.unload()

    def _do_successor(self, _: list[str], __: dict[str, Any]) -> None:
        self.machine, self._seen = self.machine.successor(), 0

    def _do_describe(self, _: list[str], __: dict[str, Any]) -> Iterator[str]:
        group = self.machine.subject.describe(self.machine.group_id)
        yield f"{group.state.value} type={group.protocol_type!r} protocol={group.protocol_name!r}"
        for member in group.members:
            yield f"  {self._name(member.member_id)} {_given(member.assignment)}"
        fetched: Any = self.machine.subject.offsets.fetch(self.machine.group_id, None)
        for topic, partition, offset in fetched:
            yield f"  {topic}-{partition} at {offset.offset if offset else -1}"
        timers = {name: ms for name, ms in self.machine.timers().items() if name != RETENTION}
        yield f"  timers: {', '.join(f'{self._timer(key)} in {ms}' for key, ms in sorted(timers.items())) or 'none'}"

    # -- effects ----------------------------------------------------------------------------------------------------

    def _shown(self, outcome: Effects) -> Iterator[str]:
        now = self.machine.now_ms
        for timer in outcome.timers:
            if timer.key.kind.value == RETENTION:
                continue  # set at every load, and again whenever it fires
            name = self._timer(f"{timer.key.kind.value} {timer.key.member_id}".strip())
            yield f"set {name} at {timer.at_ms}" if isinstance(timer, SetTimer) else f"cancel {name}"
        for event in outcome.events:
            yield f"[{now}] {self._event(event)}"
        for token, answer in outcome.replies:
            asked = self.machine.asked[token]
            yield f"{asked.who} <- {asked.verb}: {self._answer(answer)}"
        for token in outcome.abandoned:
            asked = self.machine.asked[token]
            yield f"{asked.who} <- {asked.verb}: never"
        for write in outcome.writes:
            yield f"store {self._write(write)}"

    def _answer(self, answer: Answer) -> str:
        match answer:
            case JoinAnswer(error=Error.NONE):
                skip = " skip-assignment" if answer.skip_assignment else ""
                listed = " ".join(self._name(m.member_id) for m in answer.members)
                return (
                    f"{self._name(answer.member_id)} is in generation {answer.generation}, {answer.protocol_name}, "
                    f"led by {self._name(answer.leader)}{f', members {listed}' if listed else ''}{skip}"
                )
            case JoinAnswer():
                return f"{answer.error.name} id={self._name(answer.member_id)!r}"
            case SyncAnswer():
                return _given(answer.assignment) if answer.error is Error.NONE else answer.error.name
            case HeartbeatAnswer() | DeleteGroupAnswer():
                return answer.error.name
            case LeaveAnswer():
                each = " ".join(f"{self._name(m.member_id)}={m.error.name}" for m in answer.members)
                return each if answer.error is Error.NONE else answer.error.name
            case CommitAnswer():
                return " ".join(f"{p.topic}-{p.partition}={p.error.name}" for p in answer.partitions)
        return repr(answer)

    def _event(self, event: TraceEvent) -> str:
        fields = {key: value for key, value in event.fields.items() if key != "group"}
        shown = " ".join(
            f"{key}={self._name(value) if isinstance(value, str) else value}" for key, value in fields.items()
        )
        return f"{event.kind} {shown}"

    def _write(self, write: Write) -> str:
        return "; ".join(self._change(key, value) for key, value in write.changes)

    def _change(self, key: Any, value: GroupRecord | OffsetRecord | None) -> str:
        name = "group" if isinstance(key, GroupKey) else f"{key.topic}-{key.partition}"
        if isinstance(key, PendingKey):
            name = f"pending {name}"
        if isinstance(value, GroupRecord):
            each = " ".join(f"{self._name(m.member_id)}={_given(m.assignment)}" for m in value.members)
            return f"{name} generation={value.generation} {value.protocol_name} {each}".rstrip()
        return f"{name} deleted" if value is None else f"{name} at {value.offset}"

    def _timer(self, name: str) -> str:
        kind, _, member_id = name.partition(" ")
        return f"{kind} {self._name(member_id)}".strip()

    def _name(self, member_id: str) -> str:
        """Ids are a name and a number; the number is shown only if it is not the current one."""
        name = member_id.rpartition("-")[0]
        return name if name and self.machine.ids.get(name) == member_id else member_id


def _value(key: str, text: str) -> Any:
    if key == "protocols":
        named = (item.partition(":") for item in text.split(","))
        return tuple(Protocol(name, subscription(*topics.split("+"))) for name, _, topics in named)
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _assignment(text: str) -> bytes:
    topic, _, numbers = str(text).partition(":")
    return assignment(topic, *(int(n) for n in numbers.split(",") if n))


def _given(data: bytes) -> str:
    if not data:
        return "nothing"
    return ",".join(map(str, sorted(decode_assignment(data).partitions))) or "no partitions"
