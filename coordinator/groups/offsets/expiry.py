"""Which committed offsets are too old to be kept (KIP-211), and which groups have nothing left to live for.

Empty group that had members    since it became Empty
Stable consumer group           topics that nobody is subscribed to, since they were committed
group without a protocol type   since they were committed
every other state               never (KAFKA-13636): who subscribes to what is open

An offset with a pending one in a transaction stays. A group that is Empty and has no offset left ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.states import State
from coordinator.groups.offsets.offsets import is_subscribed
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.classic.group import Group
    from coordinator.groups.records import OffsetRecord


def expired(
    group: Group, offsets: Mapping[tuple[str, int], OffsetRecord], *, wall_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """The partitions whose offsets are `retention_ms` old or older, as the group's state counts their age."""
    if not group.protocol_type:
        return [at for at, record in offsets.items() if wall_ms - record.committed_wall_ms >= retention_ms]
    if group.state is State.EMPTY:
        if group.state_wall_ms >= 0:
            return list(offsets) if wall_ms - group.state_wall_ms >= retention_ms else []
        # A record of before 2.1 does not say when.
        return [at for at, record in offsets.items() if wall_ms - record.committed_wall_ms >= retention_ms]
    if group.state is not State.STABLE or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return []
    return [
        at
        for at, record in offsets.items()
        if wall_ms - record.committed_wall_ms >= retention_ms and not is_subscribed(group, at[0])
    ]
