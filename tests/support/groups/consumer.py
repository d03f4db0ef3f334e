"""Groups of the `consumer` design under a manual clock, with a cluster whose topics tests change.

    world = World({"foo": 6})
    world.join("a", "foo")                         # the answer; members have short names
    world.beat("a", owned={"foo": [0, 1]})         # with the epoch that it knows
    world.advance(45_000)                          # timers fire
    world.log                                      # {key: record}, as stored

Writes are stored at once, or by `settle` after `hold`.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.groups.answers import ConsumerHeartbeatAnswer
from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
from coordinator.groups.consumer.topics import Topic, Topics
from coordinator.groups.consumer_records import ConsumerKey, ConsumerRecord, RegexRecord
from coordinator.groups.effects import Moment, Search, SetTimer, TimerKey, TraceEvent, Turn, Write
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.partitions import Partitions, partitions
from coordinator.service.topic_regex import compiled, problem

GROUP = "g"
WALL_MS = 1_700_000_000_000
SETTINGS = ConsumerSettings(session_timeout_ms=3_000, heartbeat_interval_ms=500, members_max=4)


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def topic_name(identity: bytes) -> str:
    return identity.decode().rstrip(".")


def owned_by_name(owned: Mapping[str, Iterable[int]] | None) -> Partitions | None:
    return None if owned is None else partitions((topic_id(name), numbers) for name, numbers in owned.items())


def by_name(given: Partitions | None) -> dict[str, list[int]] | None:
    return None if given is None else {topic_name(topic): sorted(given[topic]) for topic in sorted(given)}


def found_topics(asked: Search, names: Iterable[str], wall_ms: int) -> dict[str, RegexRecord]:
    return {
        regex: RegexRecord(
            tuple(sorted(name for name in names if compiled(regex).fullmatch(name.encode()))), asked.version, wall_ms
        )
        for regex in asked.regexes
    }


@dataclass
class World:
    """One partition of `__consumer_offsets`, and all that its groups ask for."""

    sizes: dict[str, int]
    settings: ConsumerSettings = SETTINGS
    now_ms: int = 0
    view: object = None  #: another one when the broker learns that topics have changed
    own: dict[str, ConsumerSettings] = field(default_factory=dict)  #: of single groups
    log: dict[Any, Any] = field(default_factory=dict)
    written: list[tuple[ConsumerKey, ConsumerRecord | None]] = field(default_factory=list)
    held: deque[Write] | None = None
    answers: dict[int, ConsumerHeartbeatAnswer] = field(default_factory=dict)
    timers: dict[TimerKey, int] = field(default_factory=dict)
    events: list[TraceEvent] = field(default_factory=list)
    searches: deque[Search] = field(default_factory=deque)  #: for topics, that were asked for and not made
    names_version: int = 1  #: of the topics
    epochs: dict[str, int] = field(default_factory=dict)  #: as the members know them

    def __post_init__(self) -> None:
        self.topics = Topics(
            self._find,
            lambda identity: name if (name := topic_name(identity)) in self.sizes else None,
            lambda: self.view,
            lambda: self.names_version,
        )
        self.groups = ConsumerGroups(lambda group_id: self.own.get(group_id, self.settings), self.topics)
        self._tokens = itertools.count(1)

    def _find(self, name: str) -> Topic | None:
        size = self.sizes.get(name)
        return None if size is None else Topic(topic_id(name), size)

    @property
    def group(self) -> ConsumerGroup:
        return self.groups.groups[GROUP]

    # -- requests ---------------------------------------------------------------------------------------------------

    def send(self, member: str, epoch: int, **told: Any) -> int:
        """A heartbeat; returns its token."""
        token = next(self._tokens)
        request = ConsumerHeartbeat(
            token=token,
            group_id=told.pop("group", GROUP),
            member_id=member,
            epoch=epoch,
            client_id=told.pop("client_id", member),
            client_host="/127.0.0.1",
            fresh_id="fresh",
            regex_problem=problem(told.get("topic_regex") or ""),
            **told,
        )
        self.step(partial(self.groups.heartbeat, request))
        return token

    def ask(self, member: str, epoch: int, **told: Any) -> ConsumerHeartbeatAnswer:
        answer = self.answers[self.send(member, epoch, **told)]
        if answer.error is Error.NONE:
            self.epochs[member] = answer.epoch
        return answer

    def join(self, member: str, *topics: str, **told: Any) -> ConsumerHeartbeatAnswer:
        return self.ask(member, 0, **{"rebalance_timeout_ms": 5_000, "topics": topics, "owned": {}, **told})

    def beat(
        self, member: str, owned: Mapping[str, Iterable[int]] | None = None, **told: Any
    ) -> ConsumerHeartbeatAnswer:
        return self.ask(member, self.epochs[member], owned=owned_by_name(owned), **told)

    def leave(self, member: str, epoch: int = -1, **told: Any) -> ConsumerHeartbeatAnswer:
        return self.ask(member, epoch, **told)

    # -- what the doing code does -----------------------------------------------------------------------------------

    def step(self, event: Callable[[Turn], None]) -> None:
        turn = Turn(Moment(self.now_ms, WALL_MS + self.now_ms), Limits())
        event(turn)
        effects = turn.effects()
        self.events += effects.events
        self.searches += effects.searches
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
            else:
                self.timers.pop(timer.key, None)
        for token, answer in effects.replies:
            assert token not in self.answers, f"request {token} is answered twice"
            assert isinstance(answer, ConsumerHeartbeatAnswer)
            self.answers[token] = answer
        for write in effects.writes:
            if self.held is None:
                self.store(write)
            else:
                self.held.append(write)

    def search(self) -> None:
        """Make the searches that were asked for."""
        while self.searches:
            asked = self.searches.popleft()
            found = found_topics(asked, self.sizes, WALL_MS + self.now_ms)
            self.step(partial(self.groups.matched, asked.group_id, found))

    def store(self, write: Write) -> None:
        for key, record in write.changes:
            self.written.append((key, record))
            if record is None:
                self.log.pop(key, None)
            else:
                self.log[key] = record
        self.step(write.stored)

    def hold(self) -> None:
        self.held = deque()

    def settle(self, error: Error | None = None) -> None:
        """Store what was held, or fail."""
        held, self.held = self.held or deque(), None
        for write in held:
            if error is None:
                self.store(write)
            else:
                self.step(partial(write.not_stored, error))

    def advance(self, ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now_ms + ms
        while due := [
            (at_ms, key.kind.value, key.member_id, key) for key, at_ms in self.timers.items() if at_ms <= end
        ]:
            at_ms, _, _, key = heapq.nsmallest(1, due)[0]
            self.now_ms = max(self.now_ms, at_ms)
            del self.timers[key]
            self.step(partial(self.groups.timer_fired, key))
        self.now_ms = end

    def successor(self) -> World:
        """Another coordinator, with the log of this one."""
        other = World(
            self.sizes, self.settings, self.now_ms, own=self.own, log=dict(self.log), epochs=dict(self.epochs)
        )
        for key, record in sorted(self.log.items(), key=repr):
            other.groups.apply(key, record)
        for event in other.groups.wake():
            other.step(event)
        return other
