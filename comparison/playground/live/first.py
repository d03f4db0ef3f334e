"""A group that nothing is known of yet. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.playground import messages
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.states import ConsumerGroupState
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import Enum


def first_group(design: str, rate: int, table: tuple[messages.StepRow, ...] = ()) -> messages.Group:
    """The group of a design before its first event."""
    coordinated = DESIGNS[design].coordinator
    return messages.Group(
        design=design,
        coordinated=coordinated,
        sessions=DESIGNS[design].zookeeper_sessions,
        states=tuple(state.value for state in _states(design)),
        coordinator=messages.Coordinator() if coordinated else None,
        table=table,
        rate=rate,
    )


def _states(design: str) -> Iterable[Enum]:
    if not DESIGNS[design].coordinator:
        return ()
    return ConsumerGroupState if DESIGNS[design].reconciles else GroupState
