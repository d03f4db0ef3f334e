"""What the authority says of ownership, for the trace: who is named for which partition, and since which generation.

An assignment stands from the moment it is durable until the next generation begins. While a rebalance is being
prepared nothing is cleared: the coordinator still names the owners of the generation that ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.protocol import CONSUMER_PROTOCOL_TYPE, MalformedMetadata, decode_assignment

if TYPE_CHECKING:
    from coordinator.group.group import Group
    from coordinator.group.outcome import Turn


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
        turn.trace(
            "authority_named",
            cause=f"generation:{group.generation}",
            group=group.id,
            topic=topic,
            partition=partition,
            owner=owner,
            epoch=group.generation,
        )


def clear(group: Group, generation: int, reason: str, turn: Turn) -> None:
    """Nobody is named any more; `generation` is the one that ended."""
    for topic, partition, owner in group.named:
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
    group.named = []
