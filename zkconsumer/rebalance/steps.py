"""One step of the rebalance table: its ZooKeeper requests, what it wants done, and where it leads.

Each step has an *entry* (`enter`: the effects that it wants performed) and an *exit* (`leave`: the machine after their
result). A step whose entry wants nothing is passed through. After the exit comes the next step of the table, or the one
that the exit jumps to; an exit that raises `AttemptFailed`, or any other `RebalanceLabError`, ends the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from zkconsumer.rebalance.effects import Effect, Operation, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkconsumer.rebalance.effects import Refusal
    from zkconsumer.rebalance.state import Rebalance, RebalanceState

Responses = tuple[Response, ...]
Effects = tuple[Effect, ...]
#: The machine after an event, and what follows from it.
Decision = tuple["Rebalance", Effects]


class AttemptFailed(RebalanceLabError):
    """The attempt cannot succeed; `outcome` is for the trace.

    `session_over`: the session of the claims has ended, so there is nothing to roll back.
    """

    def __init__(self, message: str, outcome: str = "error", *, session_over: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.session_over = session_over


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on with another step than the next one."""

    machine: Rebalance
    to: RebalanceState


@dataclass(frozen=True, slots=True)
class Step:
    """One step: entry, exit, and what the table says about them."""

    number: str  #: of the specification: R1 to R12
    phase: str  #: as the trace names it
    purpose: str  #: in a few words, for the page
    requests: str  #: to ZooKeeper
    enter: Callable[[Rebalance], Effects]
    leave: Callable[[Rebalance, Responses], Rebalance | Jump]
    jumps: tuple[RebalanceState, ...] = ()  #: where the exit can jump to
    goes_on: bool = True  #: False: the exit always jumps or fails, so the next step never follows
    jump_only: bool = False  #: reached only by a jump, never as the next step
    rolls_back: bool = False  #: when the step fails, what the attempt has claimed is deleted before it ends


#: Steps in their order.
Steps = dict["RebalanceState", Step]


def put_before(steps: Steps, place: RebalanceState, added: Steps) -> Steps:
    """The steps with more of them before `place`."""
    changed: Steps = {}
    for state, step in steps.items():
        if state is place:
            changed |= added
        changed[state] = step
    return changed


def with_attempt(machine: Rebalance, **facts: object) -> Rebalance:
    """The machine with new facts in its attempt."""
    return replace(machine, attempt=replace(machine.attempt, **facts))  # type: ignore[arg-type]  # replace checks names


def no_effects(_: Rebalance) -> Effects:
    """The entry of a step that wants nothing done."""
    return ()


def unchanged(machine: Rebalance, _: Responses) -> Rebalance:
    """The exit of a step that learns nothing."""
    return machine


def get(path: str) -> Request:
    return Request(Operation.GET_DATA, path)


def children(path: str) -> Request:
    return Request(Operation.GET_CHILDREN, path)


def present(path: str, response: Response) -> bytes:
    """The data of a node that must exist. Raises `AttemptFailed` otherwise."""
    refusal: Refusal | None = response.refusal
    if refusal is not None:
        raise AttemptFailed(f"{path} disappeared while the group was being read ({refusal})")
    return response.data
