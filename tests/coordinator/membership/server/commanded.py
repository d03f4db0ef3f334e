"""One pure member of the server design under a manual clock: tests feed events and read effects."""

from __future__ import annotations

from typing import Any

from coordinator.membership.effects import Effect
from coordinator.membership.events import Closed, CoordinatorUnknown, Stopped
from coordinator.membership.server import events
from coordinator.membership.server.member import ServerMember, ServerMemberSettings, ServerMemberState, deadline
from coordinator.membership.server.reactions import reaction
from coordinator.membership.server.table import step
from kernel.values import TopicPartition
from tests.coordinator.membership.talk import MemberTalk

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))

SETTINGS = ServerMemberSettings(group="g", retry_backoff_ms=100, auto_commit_interval_ms=1000)
SESSION_TIMEOUT_MS = 3000


class Talk(MemberTalk[ServerMember]):
    def __init__(self, settings: ServerMemberSettings = SETTINGS) -> None:
        super().__init__(ServerMember(settings=settings), step, deadline)

    def session(self, number: int = 1) -> tuple[Effect, ...]:
        return self.say(events.SessionBegun(number, SESSION_TIMEOUT_MS))

    def registered(self, member_id: str = "m-1") -> tuple[Effect, ...]:
        return self.say(events.Registered(self.member.stamp, member_id))

    def unknown(self) -> tuple[Effect, ...]:
        return self.say(CoordinatorUnknown("nobody"))

    def nothing(self) -> tuple[Effect, ...]:
        return self.say(events.NoCommand(self.member.stamp))

    def stop(self, generation: int) -> tuple[Effect, ...]:
        return self.say(events.StopCommanded(self.member.stamp, generation))

    def start(self, generation: int, *partitions: TopicPartition) -> tuple[Effect, ...]:
        return self.say(events.StartCommanded(self.member.stamp, generation, dict.fromkeys(partitions, 7)))

    def stopped(self) -> tuple[Effect, ...]:
        return self.say(Stopped())

    def refused(self, api: str, error: str, *, stamp: int | None = None) -> tuple[Any, ...]:
        now = self.clock.monotonic_ns()
        event = reaction(api, error, stamp=self.member.stamp if stamp is None else stamp, sent_ns=now)
        assert event is not None, (api, error)
        return self.say(event)

    def close(self) -> tuple[Effect, ...]:
        return self.say(Closed())

    def waiting(self) -> Talk:
        """Register, and send AwaitCommand."""
        self.session()
        self.registered()
        self.found()
        assert self.member.state is ServerMemberState.WAITING
        return self

    def started(self, *partitions: TopicPartition, generation: int = 4) -> Talk:
        """Register, and start these partitions in `generation`."""
        self.waiting()
        self.start(generation, *(partitions or (P0, P1)))
        self.resumed()
        assert self.member.state is ServerMemberState.STARTED
        return self

    @property
    def state(self) -> ServerMemberState:
        return self.member.state
