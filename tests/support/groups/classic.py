"""The group machine under a manual clock, with domain verbs.

Members have short names: `join("a")` sends what member a would send, with its latest id. Answers are attributed to
members by their tokens. Writes are stored at once unless `hold` was called.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.groups import machine
from coordinator.groups.answers import JoinAnswer
from coordinator.groups.classic.group import Group
from coordinator.groups.effects import Effects, Marker, Moment, SetTimer, TimerKey, TraceEvent, Write
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.records import Change
from coordinator.groups.requests import (
    AddGroup,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    EndTransaction,
    Heartbeat,
    InitProducer,
    Join,
    Leave,
    Leaving,
    Mark,
    OffsetToCommit,
    Producer,
    Protocol,
    Request,
    Sync,
)
from coordinator.groups.server.group import AssignmentSettings
from coordinator.protocol.consumer_protocol import encode_assignment, encode_subscription
from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

GROUP = "g"
WALL_MS = 1_700_000_000_000
LIMITS = Limits(initial_rebalance_delay_ms=50, session_timeout_ms_min=10, session_timeout_ms_max=60_000, members_max=4)


def subscription(*topics: str) -> bytes:
    return encode_subscription(MemberSubscription(topics=topics), version=0)


def assignment(topic: str, *partitions: int) -> bytes:
    return encode_assignment([TopicPartition(topic, p) for p in partitions], version=0)


#: Settings of the server design, which no group here uses.
ASSIGNMENT = AssignmentSettings("range", ASSIGNORS["range"], frozenset(ASSIGNORS), 1_000)
RANGE = (Protocol("range", subscription("t")),)


@dataclass
class Asked:
    """A pending request: whose, and which."""

    who: str
    verb: str
    answer: Any = None  #: an `Answer`, once there is one
    abandoned: bool = False

    @property
    def waits(self) -> bool:
        """Whether nothing was answered yet."""
        return self.answer is None


@dataclass
class Machine:
    """One machine, by default with one group, and all effects so far."""

    limits: Limits = LIMITS
    now_ms: int = 0
    group_id: str = GROUP
    ids: dict[str, str] = field(default_factory=dict)  #: member name -> its id
    asked: dict[int, Asked] = field(default_factory=dict)
    log: dict[Any, Any] = field(default_factory=dict)
    events: list[TraceEvent] = field(default_factory=list)
    outcomes: list[Effects] = field(default_factory=list)
    holding: bool = False

    def __post_init__(self) -> None:
        self.subject = machine.Machine(self.limits, ASSIGNMENT, lambda _: 0)
        self.delivering = True  #: markers reach their group at once; otherwise they are collected in `markers`
        self.markers: list[Marker] = []
        self.writes: deque[Write] = deque()
        self._timers: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._numbers = itertools.count(1)
        self._producer_ids = itertools.count()

    # -- requests -------------------------------------------------------------------------------------------------

    def join(self, who: str, *, new: bool = False, returns: bool = True, **fields: Any) -> Asked:
        """JoinGroup of member `who`; `new` drops its id, `returns=False` is version 3."""
        number = next(self._numbers)
        request = {
            "member_id": "" if new else self.ids.get(who, ""),
            "client_id": who,
            "client_host": "/127.0.0.1",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 500,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "fresh_id": str(number),
            "must_return_with_id": returns and fields.get("instance_id") is None,
            **fields,
        }
        return self._ask(who, "join", Join(token=number, group_id=self.group_id, **request))

    def admit(self, who: str, **fields: Any) -> Asked:
        """A new dynamic member after MEMBER_ID_REQUIRED: its JoinGroup with an id is parked."""
        self.join(who, **fields)
        return self.join(who, **fields)

    def sync(self, who: str, assignments: dict[str, bytes] | None = None, **fields: Any) -> Asked:
        given = tuple((self.ids.get(name, name), data) for name, data in (assignments or {}).items())
        request = {"member_id": self.ids.get(who, who), "generation": self.group.generation if self.group else 1}
        request |= {"assignments": given, **fields}
        return self._ask(who, "sync", Sync(token=next(self._numbers), group_id=self.group_id, **request))

    def heartbeat(self, who: str, **fields: Any) -> Asked:
        request = {"member_id": self.ids.get(who, who), "generation": self.group.generation if self.group else 1}
        return self._ask(
            who, "heartbeat", Heartbeat(token=next(self._numbers), group_id=self.group_id, **{**request, **fields})
        )

    def leave(self, *who: str, instance_ids: dict[str, str] | None = None) -> Asked:
        given = instance_ids or {}
        members = tuple(Leaving(self.ids.get(name, name), given.get(name)) for name in who)
        return self._ask(
            who[0] if who else "", "leave", Leave(token=next(self._numbers), group_id=self.group_id, members=members)
        )

    def remove_instance(self, *instance_ids: str) -> Asked:
        """An administrator's LeaveGroup by instance id."""
        members = tuple(Leaving("", instance_id) for instance_id in instance_ids)
        request = Leave(token=next(self._numbers), group_id=self.group_id, members=members)
        return self._ask("admin", "leave", request)

    def commit(self, who: str, offsets: dict[str, int], **fields: Any) -> Asked:
        """Commit offsets by `topic-partition`."""
        generation = self.group.generation if self.group else 1
        given = tuple(
            OffsetToCommit(topic, int(partition), offset, metadata=fields.pop("metadata", ""))
            for (topic, _, partition), offset in ((name.rpartition("-"), o) for name, o in offsets.items())
        )
        request = {"member_id": self.ids.get(who, who), "generation": generation, "client_id": who, **fields}
        return self._ask(
            who, "commit", Commit(token=next(self._numbers), group_id=self.group_id, offsets=given, **request)
        )

    def delete_group(self) -> Asked:
        return self._ask("admin", "delete", DeleteGroup(token=next(self._numbers), group_id=self.group_id))

    def delete_offsets(self, *partitions: tuple[str, int]) -> Asked:
        request = DeleteOffsets(token=next(self._numbers), group_id=self.group_id, partitions=partitions)
        return self._ask("admin", "delete-offsets", request)

    # -- transactions ---------------------------------------------------------------------------------------------

    def init_producer(self, transactional_id: str = "x", **fields: Any) -> Asked:
        """InitProducerId; new producer ids count from 100."""
        request = {"timeout_ms": 1_000, **fields}
        if self.subject.transactions.needs_producer_id(transactional_id):
            request = {"fresh_id": 100 + next(self._producer_ids), **request}
        number = next(self._numbers)
        return self._ask("p", "init", InitProducer(token=number, transactional_id=transactional_id, **request))

    def add_group(self, producer: Producer, transactional_id: str = "x") -> Asked:
        fields: dict[str, Any] = {"transactional_id": transactional_id, "group_id": self.group_id}
        return self._ask("p", "add", AddGroup(token=next(self._numbers), producer=producer, **fields))

    def commit_in_transaction(self, producer: Producer, offsets: dict[str, int], **fields: Any) -> Asked:
        """TxnOffsetCommit of a producer that knows only the group's name; `fields` may add more."""
        return self.commit("", offsets, **{"producer": producer, "generation": -1, "member_id": "", **fields})

    def end(self, producer: Producer, *, commits: bool = True, transactional_id: str = "x") -> Asked:
        request = EndTransaction(
            token=next(self._numbers), transactional_id=transactional_id, producer=producer, commits=commits
        )
        return self._ask("p", "end", request)

    def mark(self, producer: Producer, *, commits: bool = True, epoch: int = 0) -> Asked:
        """Deliver a marker to the group's partition."""
        request = Mark(token=next(self._numbers), producer=producer, coordinator_epoch=epoch, commits=commits)
        return self._ask("coordinator", "mark", request)

    def deliver(self) -> None:
        """Deliver the collected markers; refused ones stay."""
        markers, self.markers = self.markers, []
        for marker in markers:
            asked = self.mark(marker.producer, commits=marker.commits)
            if getattr(asked.answer, "error", None) is Error.NONE:
                self.marked(marker)
            else:
                self.markers.append(marker)

    def marked(self, marker: Marker) -> None:
        """Report that all partitions have the marker."""
        self._perform(self.subject.step(partial(self.subject.transactions.marked, marker), self.now))

    def _ask(self, who: str, verb: str, request: Request) -> Asked:
        asked = self.asked[request.token] = Asked(who, verb)
        self._perform(self.subject.handle(request, self.now))
        return asked

    # -- time, storage, leadership --------------------------------------------------------------------------------

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, WALL_MS + self.now_ms)

    def wait(self, ms: int) -> None:
        """Advance the clock; timers fire when due, in order."""
        until = self.now_ms + ms
        while self._heap and self._heap[0][0] <= until:
            at_ms, _, key = heapq.heappop(self._heap)
            if self._timers.get(key) == at_ms:
                del self._timers[key]
                self.now_ms = max(self.now_ms, at_ms)
                self._perform(self.subject.timer_fired(key, self.now))
        self.now_ms = until

    def hold(self) -> None:
        """Hold back writes until `land` or `fail`."""
        self.holding = True

    def land(self) -> None:
        """Store all writes held back; later ones are stored at once."""
        self.holding = False
        self._store()

    def fail(self, error: Error = Error.NOT_COORDINATOR) -> None:
        """Refuse all writes held back."""
        self.holding = False
        while self.writes:
            self._perform(self.subject.step(partial(self.writes.popleft().not_stored, error), self.now))

    def unload(self) -> None:
        self._perform(self.subject.unload(self.now))

    def successor(self) -> Machine:
        """Another coordinator that loads the stored records."""
        other = Machine(self.limits, self.now_ms, self.group_id, ids=dict(self.ids), log=dict(self.log))
        # Do not create ids again that were handed out before.
        other._numbers, other._producer_ids = self._numbers, self._producer_ids
        changes: list[Change] = list(self.log.items())
        for change in changes:
            other.subject.apply(change)
        for event in other.subject.wake():
            other._perform(other.subject.step(event, other.now))
        return other

    # -- inspection -----------------------------------------------------------------------------------------------

    @property
    def group(self) -> Group | None:
        return self.subject.classic.groups.get(self.group_id)

    @property
    def state(self) -> str:
        return self.subject.describe(self.group_id).state.value

    def committed(self, *names: str) -> list[int | None]:
        """Offsets of `topic-partition`s."""
        split = [name.rpartition("-") for name in names]
        wanted = tuple((topic, int(partition)) for topic, _, partition in split)
        fetched: Any = self.subject.offsets.fetch(self.group_id, wanted)
        return [record.offset if record else None for _, _, record in fetched]

    def timers(self) -> dict[str, int]:
        """Milliseconds until each timer, by kind and member."""
        return {f"{key.kind.value} {key.member_id}".strip(): at - self.now_ms for key, at in self._timers.items()}

    # -- performing -----------------------------------------------------------------------------------------------

    def _perform(self, outcome: Effects) -> None:
        self.outcomes.append(outcome)
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                self._timers[timer.key] = timer.at_ms
                heapq.heappush(self._heap, (timer.at_ms, next(self._numbers), timer.key))
            else:
                self._timers.pop(timer.key, None)
        self.events += outcome.events
        for token, answer in outcome.replies:
            asked = self.asked[token]
            assert asked.answer is None, f"{asked.who}'s {asked.verb} is answered twice"
            assert not asked.abandoned, f"{asked.who}'s {asked.verb} is answered after all"
            asked.answer = answer
            if isinstance(answer, JoinAnswer) and answer.member_id and answer.error in _TELLS_AN_ID:
                self.ids[asked.who] = answer.member_id
        for token in outcome.abandoned:
            self.asked[token].abandoned = True
        self.writes += outcome.writes
        self.markers += outcome.markers
        if not self.holding:
            self._store()
        if self.markers and self.delivering and not self.holding:
            self.deliver()

    def _store(self) -> None:
        while self.writes:
            write = self.writes.popleft()
            for key, value in write.changes:
                if value is None:
                    self.log.pop(key, None)
                else:
                    self.log[key] = value
            self._perform(self.subject.step(write.stored, self.now))


_TELLS_AN_ID = {Error.NONE, Error.MEMBER_ID_REQUIRED}


def stable(*names: str, limits: Limits = LIMITS, **fields: Any) -> Machine:
    """A Stable group at generation 1; the first name leads, and member n has partition n."""
    machine = completing(*names, limits=limits, **fields)
    leader, *followers = names
    machine.sync(leader, {name: assignment("t", number) for number, name in enumerate(names)})
    for name in followers:
        machine.sync(name)
    assert machine.state == "Stable", machine.state
    return machine


def completing(*names: str, limits: Limits = LIMITS, **fields: Any) -> Machine:
    """A group at generation 1 that waits for its leader's assignment."""
    machine = Machine(limits)
    for name in names:
        machine.admit(name, **fields)
    machine.wait(2 * limits.initial_rebalance_delay_ms)
    assert machine.state == "CompletingRebalance", machine.state
    return machine


def preparing(*names: str) -> Machine:
    """A group that was Stable; the last of `names` has rejoined with new metadata, the others have not."""
    machine = stable(*names)
    machine.join(names[-1], protocols=(Protocol("range", subscription("t", "u")),))
    assert machine.state == "PreparingRebalance", machine.state
    return machine


def empty(limits: Limits = LIMITS) -> Machine:
    """A group that all members have left."""
    machine = stable("a", limits=limits)
    machine.leave("a")
    assert machine.state == "Empty", machine.state
    return machine


def dead(limits: Limits = LIMITS) -> Machine:
    """A group whose partition was unloaded (only the machine itself can reach it)."""
    machine = stable("a", limits=limits)
    machine.unload()
    return machine
