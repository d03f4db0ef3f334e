"""The hard state: what is stored in `__consumer_offsets`, as values (`coordinator.store` has their bytes).

A key with value None is a tombstone. What is not here is not stored: pending ids, parked requests, timers,
and every protocol of a member but the chosen one (so a reloaded member supports exactly one).
"""

from __future__ import annotations

from typing import NamedTuple


class GroupKey(NamedTuple):
    """Key of a group's record (key version 2)."""

    group_id: str


class OffsetKey(NamedTuple):
    """Key of a committed offset (key version 1)."""

    group_id: str
    topic: str
    partition: int


class MemberRecord(NamedTuple):
    """One member inside a group's record."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupRecord(NamedTuple):
    """A group at the end of a rebalance; `state_wall_ms` is when it entered its state (epoch ms)."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_wall_ms: int
    members: tuple[MemberRecord, ...]


class OffsetRecord(NamedTuple):
    """A committed offset; `committed_wall_ms` is epoch milliseconds."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_wall_ms: int


Change = tuple[GroupKey, GroupRecord | None] | tuple[OffsetKey, OffsetRecord | None]
