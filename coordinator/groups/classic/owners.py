"""The owners that the trace names for a classic group.

PreparingRebalance clears nothing: the coordinator still names the owners of the ending generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.authority import Owner, trace_cleared, trace_named
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, MalformedMetadata, decode_assignment

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn
    from kernel.trace.words import Clearing


def name(group: Group, turn: Turn) -> None:
    """Trace the owners of assignments that are now in force. Bytes that are no consumer assignment name no owner."""
    if not turn.limits.traced or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return
    for member in group.members.values():
        try:
            partitions = decode_assignment(member.assignment).partitions
        except MalformedMetadata:
            continue
        group.named += [Owner(topic, partition, member.id) for topic, partition in sorted(partitions)]
    trace_named(group.id, group.generation, group.named, turn)


def rename(group: Group, former: str, successor: str, turn: Turn) -> None:
    """Trace that a static member's successor owns its partitions, in the same generation."""
    renamed = []
    for owner in group.named:
        current = owner._replace(member_id=successor) if owner.member_id == former else owner
        if current is not owner:
            trace_cleared(group.id, group.generation, [owner], "fenced", turn)
            trace_named(group.id, group.generation, [current], turn)
        renamed.append(current)
    group.named = renamed


def clear(group: Group, ended: int, reason: Clearing, turn: Turn) -> None:
    """Trace that all ownership ended with the generation `ended`."""
    trace_cleared(group.id, group.generation, group.named, reason, turn, ended=ended)
    group.named = []
