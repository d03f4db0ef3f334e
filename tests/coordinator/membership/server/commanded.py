"""One pure member of the server design under a manual clock: tests feed events and read effects."""

from __future__ import annotations

from typing import Any

from coordinator.membership.effects import Effect, Emit, Identity
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorUnknown,
    Event,
    Polled,
    Resumed,
    Stopped,
    Ticked,
)
from coordinator.membership.server import events
from coordinator.membership.server.member import ServerMember, ServerMemberSettings, ServerMemberState, deadline
from coordinator.membership.server.reactions import reaction
from coordinator.membership.server.table import step
from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from tests.support.time.manual_clock import ManualClock

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))

SETTINGS = ServerMemberSettings(group="g", retry_backoff_ms=100, auto_commit_interval_ms=1000)
SESSION_TIMEOUT_MS = 3000


class Talk:
    """A conversation with one member. `did` holds the effects of the last event, `traced` all trace events."""

    def __init__(self, settings: ServerMemberSettings = SETTINGS) -> None:
        self.clock = ManualClock(monotonic_ns=1_000_000_000)
        self.member = ServerMember(settings=settings)
        self.did: tuple[Effect, ...] = ()
        self.emitted: list[Emit] = []

    # -- events --------------------------------------------------------------------------------------------------

    def say(self, event: Event) -> tuple[Effect, ...]:
        self.member, wanted = step(self.member, event, self.clock.monotonic_ns())
        self.emitted += [effect for effect in wanted if isinstance(effect, Emit)]
        self.did = tuple(effect for effect in wanted if not isinstance(effect, Emit))
        return self.did

    def session(self, number: int = 1) -> tuple[Effect, ...]:
        return self.say(events.SessionBegun(number, SESSION_TIMEOUT_MS))

    def registered(self, member_id: str = "m-1") -> tuple[Effect, ...]:
        return self.say(events.Registered(self.member.stamp, member_id))

    def found(self, node: int = 1) -> tuple[Effect, ...]:
        return self.say(CoordinatorFound(node))

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

    def resumed(self) -> tuple[Effect, ...]:
        return self.say(Resumed(self.member.stamp))

    def refused(self, api: str, error: str, *, stamp: int | None = None) -> tuple[Any, ...]:
        now = self.clock.monotonic_ns()
        event = reaction(api, error, stamp=self.member.stamp if stamp is None else stamp, sent_ns=now)
        assert event is not None, (api, error)
        return self.say(event)

    def poll(self) -> tuple[Effect, ...]:
        return self.say(Polled())

    def close(self) -> tuple[Effect, ...]:
        return self.say(Closed())

    def after(self, ms: int) -> tuple[Effect, ...]:
        """Advance the clock, then fire the timer."""
        self.clock.advance_ms(ms)
        return self.say(Ticked())

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

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ServerMemberState:
        return self.member.state

    @property
    def identity(self) -> Identity | None:
        return self.member.identity

    def due_in_ms(self) -> float | None:
        at = deadline(self.member)
        return None if at is None else (at - self.clock.monotonic_ns()) / NS_PER_MS

    def kinds(self) -> list[str]:
        """The kinds of events traced so far; phases by their names."""
        return [str(emit.fields["phase"]) if emit.kind == "phase_entered" else emit.kind for emit in self.emitted]

    def last(self, kind: str) -> Emit:
        return [emit for emit in self.emitted if emit.kind == kind][-1]
