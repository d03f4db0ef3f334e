"""What the authority says of ownership, for the trace: who is named for which partition, and since which generation.

An assignment stands from the moment it is durable until the next generation begins. While a rebalance is being
prepared nothing is cleared: the coordinator still names the owners of the generation that ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, MalformedMetadata, decode_assignment

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.outcome import Turn


def name(group: Group, turn: Turn) -> None:
    """The group's assignments are in force. Bytes that are no consumer assignment name nobody."""
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
    """A static member's place was taken: what was its is its successor's, in the same generation."""
    renamed = []
    for topic, partition, owner in group.named:
        if owner == former:
            _cleared(group, (topic, partition, owner), group.generation, "fenced", turn)
            _named(group, topic, partition, successor, turn)
        renamed.append((topic, partition, successor if owner == former else owner))
    group.named = renamed


def clear(group: Group, generation: int, reason: str, turn: Turn) -> None:
    """Nobody is named any more; `generation` is the one that ended."""
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
