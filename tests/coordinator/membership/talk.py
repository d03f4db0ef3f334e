"""A conversation with one pure member under a manual clock: tests feed events and read effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from coordinator.membership.effects import Effect, Emit, Identity
from coordinator.membership.events import CoordinatorFound, Event, Polled, Resumed, Ticked
from kernel.clock import NS_PER_MS
from tests.support.time.manual_clock import ManualClock


class PureMember(Protocol):
    """What members of all designs have."""

    @property
    def stamp(self) -> int: ...
    @property
    def identity(self) -> Identity | None: ...


M = TypeVar("M", bound=PureMember)


class MemberTalk(Generic[M]):
    """`did` holds the effects of the last event, `emitted` all trace events."""

    def __init__(
        self,
        member: M,
        step: Callable[[M, Event, int], tuple[M, tuple[Effect, ...]]],
        deadline: Callable[[M], int | None],
    ) -> None:
        self.clock = ManualClock(monotonic_ns=1_000_000_000)
        self.member = member
        self.did: tuple[Any, ...] = ()
        self.emitted: list[Emit] = []
        self._step = step
        self._deadline = deadline

    def say(self, event: Event) -> tuple[Any, ...]:
        self.member, wanted = self._step(self.member, event, self.clock.monotonic_ns())
        self.emitted += [effect for effect in wanted if isinstance(effect, Emit)]
        self.did = tuple(effect for effect in wanted if not isinstance(effect, Emit))
        return self.did

    def poll(self) -> tuple[Any, ...]:
        return self.say(Polled())

    def found(self, node: int = 1) -> tuple[Any, ...]:
        return self.say(CoordinatorFound(node))

    def resumed(self) -> tuple[Any, ...]:
        return self.say(Resumed(self.member.stamp))

    def after(self, ms: int) -> tuple[Any, ...]:
        """Advance the clock, then fire the timer."""
        self.clock.advance_ms(ms)
        return self.say(Ticked())

    @property
    def identity(self) -> Identity | None:
        return self.member.identity

    def due_in_ms(self) -> float | None:
        at = self._deadline(self.member)
        return None if at is None else (at - self.clock.monotonic_ns()) / NS_PER_MS

    def kinds(self) -> list[str]:
        """The kinds of events traced so far; phases by their names."""
        return [str(emit.fields["phase"]) if emit.kind == "phase_entered" else emit.kind for emit in self.emitted]

    def last(self, kind: str) -> Emit:
        return [emit for emit in self.emitted if emit.kind == kind][-1]
