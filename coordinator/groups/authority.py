"""Ownership as the coordinator sees it, for the trace: which member owns which partition, since which generation.

An assignment is in force from the moment it is durable until the next generation begins. PreparingRebalance clears
nothing: the coordinator still names the owners of the ending generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, MalformedMetadata, decode_assignment

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn


def name(group: Group, turn: Turn) -> None:
    """Trace the owners of assignments that are now in force. Bytes that are no consumer assignment name no owner."""
    if not turn.limits.traced or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return
    for member in group.members.values():
        try:
            partitions = decode_assignment(member.assignment).partitions
        except MalformedMetadata:
            continue
        group.named += [(topic, partition, member.id) for topic, partition in sorted(partitions)]
    for topic, partition, owner in group.named:
        _named(group, topic, partition, owner, turn)


def rename(group: Group, former: str, successor: str, turn: Turn) -> None:
    """Trace that a static member's successor owns its partitions, in the same generation."""
    renamed = []
    for topic, partition, owner in group.named:
        if owner == former:
            _cleared(group, (topic, partition, owner), group.generation, "fenced", turn)
            _named(group, topic, partition, successor, turn)
        renamed.append((topic, partition, successor if owner == former else owner))
    group.named = renamed


def clear(group: Group, generation: int, reason: str, turn: Turn) -> None:
    """Trace that all ownership ended; `generation` is the one that ended."""
    for named in group.named:
        _cleared(group, named, generation, reason, turn)
    group.named = []


def _named(group: Group, topic: str, partition: int, owner: str, turn: Turn) -> None:
    turn.trace(
        "authority_named",
        cause=f"generation:{group.generation}",
        group=group.id,
        topic=topic,
        partition=partition,
        owner=owner,
        epoch=group.generation,
    )


def _cleared(group: Group, named: tuple[str, int, str], generation: int, reason: str, turn: Turn) -> None:
    topic, partition, owner = named
    turn.trace(
        "authority_cleared",
        cause=f"generation:{group.generation}",
        group=group.id,
        topic=topic,
        partition=partition,
        owner=owner,
        epoch=generation,
        reason=reason,
    )
