"""A machine of one partition of `__consumer_offsets` under a manual clock, for groups of the `consumer` design.

    at = Partition()
    at.join("a")                        # a heartbeat with the epoch 0
    at.commit("a", 1)                   # the error, as the machine gives it
    at.ask(DeleteGroup)                 # any other request to the group

Writes are stored at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from coordinator.groups.answers import Answer, CommitAnswer
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.effects import Effects, Moment, SetTimer, TimerKey, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.machine import Machine
from coordinator.groups.requests import Commit, Join, OffsetToCommit
from tests.support.groups.classic import ASSIGNMENT, LIMITS, RANGE
from tests.support.groups.consumer import SETTINGS, World

TOKENS = itertools.count(1)


@dataclass
class Partition:
    """A machine with one group in it."""

    log: dict[Any, Any] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    timers: dict[TimerKey, int] = field(default_factory=dict)
    now: Moment = field(default_factory=lambda: Moment(0, 1_000))

    def __post_init__(self) -> None:
        topics = World({"foo": 6}).topics
        self.machine = Machine(LIMITS, ASSIGNMENT, lambda _: 6, ConsumerGroups(lambda _: SETTINGS, topics))
        for change in self.log.items():
            self.machine.apply(change)
        for event in self.machine.wake():
            self.perform(self.machine.step(event, self.now))

    def perform(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
        self.answers |= dict(effects.replies)
        for write in effects.writes:
            for key, value in write.changes:
                self.log[key] = value
                if value is None:
                    del self.log[key]
            self.perform(self.machine.step(write.stored, self.now))

    def ask(self, kind: type[Any], **told: Any) -> Any:
        token = next(TOKENS)
        self.perform(self.machine.handle(kind(token=token, group_id="g", **told), self.now))
        return self.answers.get(token)

    def beat(self, member: str, epoch: int, **told: Any) -> Any:
        return self.ask(
            ConsumerHeartbeat, member_id=member, epoch=epoch, client_id="c", client_host="/h", fresh_id="f", **told
        )

    def join(self, member: str = "a", **told: Any) -> Any:
        return self.beat(member, 0, **{"rebalance_timeout_ms": 5_000, "topics": ("foo",), "owned": {}, **told})

    def expire(self) -> None:
        """Let time pass until the offsets of today have expired."""
        self.now = Moment(self.now.ms + LIMITS.retention_ms, self.now.wall_ms + LIMITS.retention_ms)
        self.perform(self.machine.timer_fired(TimerKey(TimerKind.RETENTION, ""), self.now))

    def commit(self, member: str, epoch: int, topic: str = "foo", **told: Any) -> Error:
        offsets = (OffsetToCommit(topic, 0, 7, -1, ""),)
        told = {"absent_group_is_named": True, **told}
        answer = self.ask(Commit, member_id=member, generation=epoch, offsets=offsets, **told)
        assert isinstance(answer, CommitAnswer)
        return answer.partitions[0].error

    def classic_join(self) -> Any:
        return self.ask(
            Join,
            member_id="",
            client_id="c",
            client_host="/h",
            session_timeout_ms=5_000,
            rebalance_timeout_ms=5_000,
            protocol_type="consumer",
            protocols=RANGE,
            fresh_id="f",
            must_return_with_id=False,
        )
