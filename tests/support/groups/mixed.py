"""A partition of `__consumer_offsets` under a manual clock, whose group has members of both protocols.

    at = MixedPartition()
    at.form("a", "b")                              # a Stable classic group, with foo shared out
    at.consumer("m")                               # the answer to a heartbeat with the epoch 0
    at.join("a"), at.sync("a"), at.beat("a")       # classic requests, with the generation that the member knows
    at.advance(5_000)                              # timers fire
    at.fails(Error.NOT_COORDINATOR, lambda: ...)   # what is written meanwhile is refused

Member ids are those that the tests choose: classic members join with `must_return_with_id` off.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.groups.answers import Answer, JoinAnswer
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
from coordinator.groups.effects import Effects, Moment, SetTimer, TimerKey, Write
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.machine import Machine
from coordinator.groups.requests import Commit, Heartbeat, Join, Leave, Leaving, OffsetToCommit, Protocol, Sync
from coordinator.protocol.consumer_protocol import decode_assignment, encode_assignment, encode_subscription
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.support.groups.classic import ASSIGNMENT, LIMITS
from tests.support.groups.consumer import SETTINGS, World, owned_by_name

GROUP = "g"
SIZES = {"foo": 6, "bar": 3, "t1": 4}


def subscription(*topics: str, owned: Mapping[str, Iterable[int]] | None = None, version: int = 1) -> bytes:
    partitions = tuple(TopicPartition(topic, n) for topic, numbers in (owned or {}).items() for n in numbers)
    return encode_subscription(MemberSubscription(topics=topics, owned=partitions), version=version)


def assignment(**numbers: Iterable[int]) -> bytes:
    return encode_assignment(TopicPartition(topic, n) for topic, ns in numbers.items() for n in ns)


def assigned(data: bytes) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(decode_assignment(data).partitions):
        found.setdefault(topic, []).append(number)
    return found


@dataclass
class MixedPartition:
    settings: ConsumerSettings = SETTINGS
    limits: Limits = LIMITS
    log: dict[Any, Any] = field(default_factory=dict)
    batches: list[tuple[Any, ...]] = field(default_factory=list)  #: as written
    answers: dict[int, Answer] = field(default_factory=dict)
    timers: dict[TimerKey, int] = field(default_factory=dict)
    events: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)  #: generations, as the members know them
    instances: dict[str, str] = field(default_factory=dict)  #: of static members
    now_ms: int = 0
    held: deque[Write] | None = None

    def __post_init__(self) -> None:
        groups = ConsumerGroups(lambda _: self.settings, World(dict(SIZES)).topics)
        self.machine = Machine(self.limits, ASSIGNMENT, lambda topic: SIZES.get(topic, 0), groups)
        self._tokens = itertools.count(1)
        for change in self.log.items():
            self.machine.apply(change)
        for event in self.machine.wake():
            self.perform(self.machine.step(event, self.now))

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, 1_700_000_000_000 + self.now_ms)

    @property
    def group(self) -> Any:
        return self.machine.consumer.groups[GROUP]

    @property
    def classic(self) -> Any:
        return self.machine.classic.groups[GROUP]

    @property
    def kind(self) -> str:
        """Whose group it is in ListGroups, and its state."""
        (row,) = [row for row in self.machine.list() if row is not None]
        return f"{row.type} {row.state.value}"

    # -- requests ---------------------------------------------------------------------------------------------------

    def send(self, kind: type[Any], **told: Any) -> int:
        token = next(self._tokens)
        self.perform(self.machine.handle(kind(token=token, group_id=GROUP, **told), self.now))
        return token

    def ask(self, kind: type[Any], **told: Any) -> Any:
        """The answer, None while the request is parked."""
        return self.answers.get(self.send(kind, **told))

    def consumer(
        self, member: str, epoch: int = 0, owned: Mapping[str, Iterable[int]] | None = None, **told: Any
    ) -> Any:
        """ConsumerGroupHeartbeat."""
        if epoch == 0:
            told = {"rebalance_timeout_ms": 5_000, "topics": ("foo",), **told}
            owned = owned or {}
        return self.ask(
            ConsumerHeartbeat,
            member_id=member,
            epoch=epoch,
            client_id=told.pop("client_id", member),
            client_host="/h",
            fresh_id="fresh",
            owned=owned_by_name(owned),
            **told,
        )

    def send_join(
        self,
        member: str = "",
        *topics: str,
        owned: Mapping[str, Iterable[int]] | None = None,
        protocols: tuple[Protocol, ...] | None = None,
        **told: Any,
    ) -> int:
        """JoinGroup; the id of a new member is the last part of its name."""
        metadata = subscription(*(topics or ("foo",)), owned=owned)
        if (instance_id := told.get("instance_id")) is not None and member:
            self.instances[member] = instance_id
        defaults: dict[str, Any] = {
            "member_id": member,
            "client_id": "c",
            "client_host": "/h",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 4_000,
            "protocol_type": "consumer",
            "protocols": protocols or (Protocol("range", metadata),),
            "fresh_id": f"fresh{next(self._tokens)}",
            "must_return_with_id": False,
            "instance_id": self.instances.get(member),
        }
        return self.send(Join, **defaults | told)

    def join(self, member: str = "", *topics: str, **told: Any) -> JoinAnswer:
        answer: Any = self.answers.get(self.send_join(member, *topics, **told))
        if answer is not None and answer.generation >= 0:
            self.epochs[answer.member_id] = answer.generation
            if told.get("instance_id") is not None:
                self.instances[answer.member_id] = told["instance_id"]
        return answer

    def sync(self, member: str, **told: Any) -> Any:
        defaults = {
            "member_id": member,
            "generation": self.epochs.get(member, 0),
            "instance_id": self.instances.get(member),
        }
        return self.ask(Sync, **defaults | told)

    def beat(self, member: str, **told: Any) -> Error:
        defaults = {
            "member_id": member,
            "generation": self.epochs.get(member, 0),
            "instance_id": self.instances.get(member),
        }
        error: Error = self.ask(Heartbeat, **defaults | told).error
        return error

    def leave(self, *members: str | Leaving) -> list[Error]:
        named = tuple(Leaving(m) if isinstance(m, str) else m for m in members)
        return [left.error for left in self.ask(Leave, members=named).members]

    def commit(self, member: str, epoch: int, **told: Any) -> Error:
        answer = self.ask(
            Commit, member_id=member, generation=epoch, offsets=(OffsetToCommit("foo", 0, 7, -1, ""),), **told
        )
        error: Error = answer.partitions[0].error
        return error

    def form(self, *members: str, sync: bool = True, **told: Any) -> list[str]:
        """A classic group of new members with foo shared out among them; their ids."""
        tokens = [self.send_join(client_id=member, **told) for member in members]
        self.advance(LIMITS.initial_rebalance_delay_ms * 3)
        ids = []
        for token in tokens:
            answer: Any = self.answers[token]
            ids.append(answer.member_id)
            self.epochs[answer.member_id] = answer.generation
        if sync:
            share = len(ids) and 6 // len(ids)
            parts = [(one, assignment(foo=range(i * share, (i + 1) * share))) for i, one in enumerate(ids)]
            self.sync(ids[0], assignments=tuple(parts))
            for follower in ids[1:]:
                self.sync(follower)
        return ids

    # -- what the doing code does -----------------------------------------------------------------------------------

    def perform(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
            else:
                self.timers.pop(timer.key, None)
        self.events += [(event.kind, event.fields) for event in effects.events]
        for token, answer in effects.replies:
            assert token not in self.answers, f"request {token} is answered twice"
            self.answers[token] = answer
        for write in effects.writes:
            if self.held is None:
                self.store(write)
            else:
                self.held.append(write)

    def store(self, write: Write) -> None:
        self.batches.append(write.changes)
        for key, value in write.changes:
            self.log[key] = value
            if value is None:
                del self.log[key]
        self.perform(self.machine.step(write.stored, self.now))

    def hold(self) -> None:
        self.held = deque()

    def settle(self, *errors: Error | None) -> None:
        """Store what was held, or refuse it with the error in the same place; the last one is for all that were held.

        What is written meanwhile comes behind.
        """
        held = self.held
        assert held is not None, "hold comes first"
        for at in range(len(held)):
            write, error = held.popleft(), errors[min(at, len(errors) - 1)] if errors else None
            if error is None:
                self.store(write)
            else:
                self.perform(self.machine.step(partial(write.not_stored, error), self.now))
        self.held = None
        for write in held:
            self.store(write)

    def fails(self, error: Error, request: Callable[[], Any]) -> int:
        """What is written by this is refused; the token of the last request."""
        self.hold()
        request()
        self.settle(error)
        return max(self.answers)

    def advance(self, ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now_ms + ms
        while due := [(at, key.kind.value, key.member_id, key) for key, at in self.timers.items() if at <= end]:
            at, _, _, key = heapq.nsmallest(1, due)[0]
            self.now_ms = max(self.now_ms, at)
            del self.timers[key]
            self.perform(self.machine.timer_fired(key, self.now))
        self.now_ms = end

    def successor(self) -> MixedPartition:
        """Another coordinator, with the log of this one."""
        return MixedPartition(
            self.settings,
            self.limits,
            log=dict(self.log),
            epochs=dict(self.epochs),
            instances=dict(self.instances),
            now_ms=self.now_ms,
        )
