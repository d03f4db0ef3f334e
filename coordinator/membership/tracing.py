"""What the moves of every design's member are put together with: events for the trace, and effects that come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from coordinator.membership.effects import Effect, Emit

if TYPE_CHECKING:
    from collections.abc import Iterable


class Traced(Protocol):
    """A member as far as the trace goes."""

    @property
    def member_id(self) -> str: ...

    @property
    def cause(self) -> str: ...

    @property
    def attempt(self) -> int: ...


M = TypeVar("M", bound=Traced)


def preceded(step: tuple[M, tuple[Effect, ...]], before: Iterable[Effect]) -> tuple[M, tuple[Effect, ...]]:
    """The same step, with effects that are performed before its own."""
    return step[0], (*before, *step[1])


def enter(member: Traced, phase: str) -> Emit:
    """The running attempt comes to its next phase."""
    return emit(member, "phase_entered", phase=phase, attempt=member.attempt)


def emit(member: Traced, kind: str, **fields: object) -> Emit:
    """An event of this member, under the identity that it has here."""
    return Emit(kind, member.member_id, member.cause, fields)
