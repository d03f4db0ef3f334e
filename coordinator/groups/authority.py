"""Ownership as the coordinator sees it, for the trace: which member owns which partition, since which generation.

An assignment is in force from the moment it is durable until the next generation begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.groups.effects import Turn
    from kernel.trace.words import Clearing, Removal


class Owner(NamedTuple):
    """A partition and the member that owns it."""

    topic: str
    partition: int
    member_id: str


def trace_named(group_id: str, generation: int, owners: Iterable[Owner], turn: Turn) -> None:
    """The coordinator names these owners from now on."""
    for topic, partition, owner in owners:
        turn.trace(
            "authority_named",
            cause=f"generation:{generation}",
            group=group_id,
            topic=topic,
            partition=partition,
            owner=owner,
            epoch=generation,
        )


def trace_cleared(
    group_id: str,
    generation: int,
    owners: Iterable[Owner],
    reason: Clearing | Removal,
    turn: Turn,
    *,
    ended: int | None = None,
) -> None:
    """These owners no longer own their partitions; `ended` is their generation if it is not the current one."""
    for topic, partition, owner in owners:
        turn.trace(
            "authority_cleared",
            cause=f"generation:{generation}",
            group=group_id,
            topic=topic,
            partition=partition,
            owner=owner,
            epoch=generation if ended is None else ended,
            reason=reason,
        )
