"""One pure member of the server design and a clock that moves by hand: tests feed events and read effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.membership.effects import Effect, Emit, Identity
from coordinator.membership.events import Closed, CoordinatorFound, CoordinatorUnknown, Polled, Ticked
from coordinator.membership.server import events
from coordinator.membership.server.member import Member, MemberSettings, State, deadline
from coordinator.membership.server.reactions import reaction
from coordinator.membership.server.table import step
from kernel.clock import NS_PER_MS, ManualClock
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from coordinator.membership.events import Event

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))

SETTINGS = MemberSettings(group="g", retry_backoff_ms=100, auto_commit_interval_ms=1000)
SESSION_TIMEOUT_MS = 3000


class Talk:
    """A conversation with one member. `did` holds the effects of the last event, `told` all trace events."""

    def __init__(self, settings: MemberSettings = SETTINGS) -> None:
        self.clock = ManualClock(monotonic_ns=1_000_000_000)
        self.member = Member(settings=settings)
        self.did: tuple[Effect, ...] = ()
        self.told: list[Emit] = []

    # -- saying --------------------------------------------------------------------------------------------------

    def say(self, event: Event) -> tuple[Effect, ...]:
        self.member, wanted = step(self.member, event, self.clock.monotonic_ns())
        self.told += [effect for effect in wanted if isinstance(effect, Emit)]
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
        return self.say(events.NothingTold(self.member.stamp))

    def stop(self, generation: int) -> tuple[Effect, ...]:
        return self.say(events.StopTold(self.member.stamp, generation))

    def start(self, generation: int, *partitions: TopicPartition) -> tuple[Effect, ...]:
        return self.say(events.StartTold(self.member.stamp, generation, dict.fromkeys(partitions, 7)))

    def stopped(self) -> tuple[Effect, ...]:
        return self.say(events.Stopped())

    def resumed(self) -> tuple[Effect, ...]:
        return self.say(events.Resumed(self.member.stamp))

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
        """Move the clock, then let the timer run."""
        self.clock.advance_ms(ms)
        return self.say(Ticked())

    def waiting(self) -> Talk:
        """Registered, and the coordinator asked."""
        self.session()
        self.registered()
        self.found()
        assert self.member.state is State.WAITING
        return self

    def started(self, *partitions: TopicPartition, generation: int = 4) -> Talk:
        """Through all of it, with a generation of its own."""
        self.waiting()
        self.start(generation, *(partitions or (P0, P1)))
        self.resumed()
        assert self.member.state is State.STARTED
        return self

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.member.state

    @property
    def identity(self) -> Identity | None:
        return self.member.identity

    def due_in_ms(self) -> float | None:
        at = deadline(self.member)
        return None if at is None else (at - self.clock.monotonic_ns()) / NS_PER_MS

    def kinds(self) -> list[str]:
        """The trace so far, phases by their names."""
        return [str(emit.fields["phase"]) if emit.kind == "phase_entered" else emit.kind for emit in self.told]

    def last(self, kind: str) -> Emit:
        return [emit for emit in self.told if emit.kind == kind][-1]
