"""SyncGroup: the leader sends the assignment, every member gets its part.

The group becomes Stable and answers only when the assignment is durable. If its generation has ended by then, the
stored assignment has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coordinator.groups.answers import SyncAnswer
from coordinator.groups.classic import owners, rebalance
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.effects import Write
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn
    from coordinator.groups.records import GroupRecord
    from coordinator.groups.requests import Sync


_REFUSING = {GroupState.EMPTY: Error.UNKNOWN_MEMBER_ID, GroupState.PREPARING: Error.REBALANCE_IN_PROGRESS}


def sync(group: Group | None, request: Sync, turn: Turn) -> None:
    """One SyncGroup."""
    refusal = _refusal(group, request)
    if refusal is not None:
        turn.reply(request.token, SyncAnswer(error=refusal))
        return
    assert group is not None, "an absent group is a refusal"
    member = group.members[request.member_id]
    rebalance.synced(group, member.id, turn)
    if group.state is GroupState.STABLE:
        turn.reply(request.token, rebalance.sync_answer(group, member))
        return
    if member.parked_sync is not None:
        turn.abandon(member.parked_sync)  # never answered, as in Kafka
    member.parked_sync = request.token
    if member.id == group.leader:
        given = dict(request.assignments)
        record = group.record(given, turn.now.wall_ms)  # non-members are left out, missing members get b""
        turn.write(AssignmentWrite(((GroupKey(group.id), record),), group, record))


def _refusal(group: Group | None, request: Sync) -> Error | None:
    """The error for this SyncGroup, if any, in Kafka's order of checks."""
    if request.lacks_protocol:
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    refusal = group.refusal_at(request.generation, request.member_id, request.instance_id)
    if refusal is not None:
        return refusal
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return _REFUSING.get(group.state)


def _differs(given: str | None, chosen: str | None) -> bool:
    return given is not None and chosen is not None and given != chosen


@dataclass(frozen=True, slots=True, eq=False)
class AssignmentWrite(Write):
    """The assignment that a leader's SyncGroup hands in. It counts only while its generation still waits for it."""

    group: Group
    record: GroupRecord

    is_from_client: ClassVar[bool] = True

    def stored(self, turn: Turn) -> None:
        """The assignment is in force."""
        if self._is_outdated():
            return
        self.group.apply(self.record)
        self.group.move(GroupTrigger.ASSIGNMENT_STORED, turn)
        owners.name(self.group, turn)
        rebalance.propagate_assignments(self.group, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        """Waiting members get the error and have to rejoin."""
        if self._is_outdated():
            return
        rebalance.refuse_parked_syncs(self.group, error, turn)
        rebalance.prepare(self.group, GroupTrigger.STORE_FAILED, turn)

    def _is_outdated(self) -> bool:
        return self.group.state is not GroupState.COMPLETING or self.group.generation != self.record.generation

    def __str__(self) -> str:
        return f"the assignment of group {self.group.id!r}, of {len(self.record.members)} members,"
