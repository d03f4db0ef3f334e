"""One row of the rebalance table: a step with its ZooKeeper requests, what it wants, and where its answers lead.

For each step there is an *entry* (`enter`: the effects that it wants performed) and an *exit* (`leave`: the machine
after the answers). A step whose entry wants nothing is passed through. An exit that raises `AttemptFailed`, or any
other of our errors, ends the attempt. Otherwise the next row of the table follows, unless the exit answers with a
`Jump`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from zkconsumer.rebalance.effects import Answer, Effect, Operation, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from zkconsumer.rebalance.effects import Refusal
    from zkconsumer.rebalance.state import Rebalance, State

Answers = tuple[Answer, ...]
Effects = tuple[Effect, ...]


class AttemptFailed(RebalanceLabError):
    """The attempt cannot succeed; `outcome` is what the trace says of it.

    `gone` is said when the session that claimed is over: then there is nothing to give back.
    """

    def __init__(self, message: str, outcome: str = "error", *, gone: bool = False) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.gone = gone


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on somewhere else than in the next row."""

    machine: Rebalance
    to: State


@dataclass(frozen=True, slots=True)
class Row:
    """The specification's number, the trace's phase, the ZooKeeper requests, entry and exit.

    A row that stands `aside` is only jumped to. Where a failure `gives_back`, what the attempt has claimed is
    deleted before it ends.
    """

    number: str
    phase: str
    requests: str
    enter: Callable[[Rebalance], Effects]
    leave: Callable[[Rebalance, Answers], Rebalance | Jump]
    aside: bool = False
    gives_back: bool = False


def learned(machine: Rebalance, **what: object) -> Rebalance:
    """The machine with what the attempt has learned."""
    return replace(machine, attempt=replace(machine.attempt, **what))  # type: ignore[arg-type]  # names are checked by replace


def nothing(_: Rebalance) -> Effects:
    """The entry of a step that asks for nothing."""
    return ()


def passed(machine: Rebalance, _: Answers) -> Rebalance:
    """The exit of a step from which nothing is learned."""
    return machine


def get(path: str) -> Request:
    return Request(Operation.GET_DATA, path)


def children(path: str) -> Request:
    return Request(Operation.GET_CHILDREN, path)


def present(path: str, answer: Answer) -> bytes:
    """The data of a node that has to be there."""
    refusal: Refusal | None = answer.refusal
    if refusal is not None:
        raise AttemptFailed(f"{path} has gone while the group was read ({refusal})")
    return answer.data
