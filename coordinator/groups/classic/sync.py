"""SyncGroup: the leader hands in the assignment, everybody takes his part of it away.

The group becomes Stable, and anybody is answered, only when the assignment is durable. If the group has moved
on meanwhile, the stored assignment is of a generation that is over: nobody is told of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups import authority
from coordinator.groups.answers import SyncAnswer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic.states import State, Trigger
from coordinator.groups.errors import Error
from coordinator.groups.outcome import AssignmentStored
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.outcome import Turn
    from coordinator.groups.requests import Sync


_REFUSING = {State.EMPTY: Error.UNKNOWN_MEMBER_ID, State.PREPARING: Error.REBALANCE_IN_PROGRESS}


def sync(group: Group | None, request: Sync, turn: Turn) -> None:
    """One SyncGroup."""
    refusal = _refusal(group, request)
    if refusal is not None:
        turn.reply(request.token, SyncAnswer(error=refusal))
        return
    assert group is not None, "an absent group is a refusal"
    member = group.members[request.member_id]
    rebalance.synced(group, member.id, turn)
    if group.state is State.STABLE:
        turn.reply(request.token, rebalance.sync_answer(group, member))
        return
    if member.parked_sync is not None:
        turn.abandon(member.parked_sync)  # unanswered for ever, as in Kafka
    member.parked_sync = request.token
    if member.id == group.leader:
        given = dict(request.assignments)
        record = group.record(given, turn.now.wall_ms)  # strangers are left out, who is missing gets b""
        turn.write((GroupKey(group.id), record), then=AssignmentStored(group.id, record))


def _refusal(group: Group | None, request: Sync) -> Error | None:
    """Why this SyncGroup is refused, in Kafka's order of checks."""
    if request.protocol_is_mandatory and (request.protocol_type is None or request.protocol_name is None):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is State.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    refusal = group.refusal_at(request.generation, request.member_id, request.instance_id)
    if refusal is not None:
        return refusal
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return _REFUSING.get(group.state)


def _differs(given: str | None, chosen: str | None) -> bool:
    return given is not None and chosen is not None and given != chosen


def _still_awaited(group: Group, done: AssignmentStored) -> bool:
    return group.state is State.COMPLETING and group.generation == done.record.generation


def stored(group: Group, done: AssignmentStored, turn: Turn) -> None:
    """The assignment is durable: it is in force, unless its generation is over."""
    if not _still_awaited(group, done):
        return
    group.apply(done.record)
    group.move(Trigger.ASSIGNMENT_STORED, turn)
    authority.name(group, turn)
    rebalance.propagate_assignments(group, turn)


def not_stored(group: Group, done: AssignmentStored, error: Error, turn: Turn) -> None:
    """Everybody who waits is told, and has to join again."""
    if not _still_awaited(group, done):
        return
    rebalance.refuse_parked_syncs(group, error, turn)
    rebalance.prepare(group, Trigger.STORE_FAILED, turn)
