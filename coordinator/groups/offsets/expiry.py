"""Which committed offsets have expired (KIP-211): how the retention time is measured.

Empty group that had members     since it became Empty
Stable consumer group            since the commit, for topics without subscribers
group without a protocol type    since the commit
group of the `consumer` design   since the commit, for topics without subscribers
every other state                never (KAFKA-13636): subscriptions are not settled

Offsets with a pending offset in a transaction do not expire. An Empty group without offsets ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.states import GroupState
from coordinator.groups.offsets.offsets import is_subscribed
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.classic.group import Group
    from coordinator.groups.records import OffsetRecord


def expired(
    group: Group, offsets: Mapping[tuple[str, int], OffsetRecord], *, wall_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """The partitions whose offsets are at least `retention_ms` old, by the rule for the group's state."""
    if not group.protocol_type:
        return [at for at, record in offsets.items() if wall_ms - record.committed_wall_ms >= retention_ms]
    if group.state is GroupState.EMPTY:
        if group.state_wall_ms >= 0:
            return list(offsets) if wall_ms - group.state_wall_ms >= retention_ms else []
        # Records from before 2.1 lack the time.
        return [at for at, record in offsets.items() if wall_ms - record.committed_wall_ms >= retention_ms]
    if group.state is not GroupState.STABLE or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return []
    return [
        at
        for at, record in offsets.items()
        if wall_ms - record.committed_wall_ms >= retention_ms and not is_subscribed(group, at[0])
    ]
