"""A group coordinator's log lines, in the words of Kafka's GroupCoordinator (as 3.9.1 printed them). Pure.

They are made from the events that a partition's machine decides, so they say what happened, in its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.effects import TraceEvent
    from kernel.values import TopicPartition


def line_of(event: TraceEvent, node_id: int, partition: TopicPartition) -> str | None:
    """The line for an event of a group, whose partition of `__consumer_offsets` is given; None if it has none."""
    fields = event.fields
    said: str | None = None
    if event.kind == "group_changed":
        said = _changed(str(fields["group"]), fields, partition)
    elif event.kind == "group_member_left":
        said = _left(str(fields["group"]), str(fields["id"]), str(fields["reason"]))
    return None if said is None else f"[GroupCoordinator {node_id}]: {said}"


def _changed(group: str, fields: Mapping[str, object], partition: TopicPartition) -> str | None:
    generation, members = fields["generation"], fields["members"]
    match fields["state"]:
        case GroupState.PREPARING.value:
            return (
                f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} "
                f"({partition}) (reason: {fields['reason']})"
            )
        case GroupState.COMPLETING.value:
            return f"Stabilized group {group} generation {generation} ({partition}) with {members} members"
        case GroupState.EMPTY.value:
            return f"Group {group} with generation {generation} is now empty ({partition})"
    return None


def _left(group: str, member: str, reason: str) -> str:
    if reason == "leave":
        return f"Member {member} has left group {group} through explicit `LeaveGroup`"
    if reason == "session":
        return f"Member {member} in group {group} has failed, removing it from the group"
    return f"Member {member} is removed from group {group}: {reason}"
