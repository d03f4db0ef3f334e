"""Build a member's trace events, and put effects before those of a step; for every kind of member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from coordinator.membership.effects import Effect, Emit, Fail

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.membership.events import Refusal


class Traced(Protocol):
    """What trace events need of a member."""

    @property
    def member_id(self) -> str: ...

    @property
    def cause(self) -> str: ...

    @property
    def attempt(self) -> int: ...


M = TypeVar("M", bound=Traced)


def preceded(step: tuple[M, tuple[Effect, ...]], before: Iterable[Effect]) -> tuple[M, tuple[Effect, ...]]:
    """Return `step` with the effects `before` in front of the step's."""
    return step[0], (*before, *step[1])


def enter(member: Traced, phase: str) -> Emit:
    """Trace that the running attempt enters `phase`."""
    return emit(member, "phase_entered", phase=phase, attempt=member.attempt)


def emit(member: Traced, kind: str, **fields: object) -> Emit:
    """Trace an event of this member, under its current identity."""
    return Emit(kind, member.member_id, member.cause, fields)


def refused(member: Traced, group: str, event: Refusal) -> tuple[Emit, Fail]:
    """Trace that the group refused this member for good, once, and tell the application."""
    return emit(member, "member_refused", group=group, api=event.api, error=event.error), Fail(event.api, event.error)
