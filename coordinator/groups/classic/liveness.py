"""Member liveness: Heartbeat, LeaveGroup, and the session timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.answers import LeaveAnswer, Left, heartbeat_answer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic.session_timers import cancel_session_timer, has_expired, restart_session
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.errors import Error

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Heartbeat, Leave, Leaving


def heartbeat(group: Group | None, request: Heartbeat, turn: Turn) -> None:
    """One Heartbeat. NONE in CompletingRebalance too (KAFKA-10134); PreparingRebalance renews the session as well."""
    error = _heartbeat_refusal(group, request)
    if error is None:
        assert group is not None, "an absent group is a refusal"
        restart_session(group, group.members[request.member_id], turn)
        error = Error.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING else Error.NONE
    turn.reply(request.token, heartbeat_answer(error))


def _heartbeat_refusal(group: Group | None, request: Heartbeat) -> Error | None:
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    return group.refusal_at(request.generation, request.member_id, request.instance_id)


def leave(group: Group | None, request: Leave, turn: Turn) -> None:
    """One LeaveGroup. All its members leave before the one rebalance starts."""
    if group is None:
        gone = tuple(Left(*leaving, Error.UNKNOWN_MEMBER_ID) for leaving in request.members)
        turn.reply(request.token, LeaveAnswer(members=gone))
        return
    if group.state is GroupState.DEAD:
        turn.reply(request.token, LeaveAnswer(error=Error.COORDINATOR_NOT_AVAILABLE))
        return
    left = tuple(Left(*leaving, _leave_one(group, leaving, turn)) for leaving in request.members)
    turn.reply(request.token, LeaveAnswer(members=left))
    if any(member.error is Error.NONE for member in left):
        rebalance.rebalance_or_complete_unless_empty(group, GroupTrigger.MEMBER_LEFT, turn)


def _leave_one(group: Group, leaving: Leaving, turn: Turn) -> Error:
    """Remove one member. Administrators send an instance id and no member id (KIP-345)."""
    member_id = leaving.member_id
    if not member_id:
        holder = group.instances.get(leaving.instance_id) if leaving.instance_id is not None else None
        if holder is None:
            return Error.UNKNOWN_MEMBER_ID
        member_id = holder
    elif (timer := group.pending.get(member_id)) is not None:
        group.remove(member_id)
        cancel_session_timer(group, member_id, timer, turn)
        return Error.NONE
    else:
        refusal = group.refusal(member_id, leaving.instance_id)
        if refusal is not None:
            return refusal
    rebalance.drop(group, group.members[member_id], "leave", turn)
    return Error.NONE


def session_timer_fired(group: Group, member_id: str, turn: Turn) -> None:
    """The timer of a member or a pending id is due; its session may have been renewed since it was set."""
    pending = group.pending.get(member_id)
    if pending is not None:
        if has_expired(group, member_id, pending, turn):
            group.remove(member_id)
            rebalance.complete_if_ready(group, turn)
        return
    member = group.members.get(member_id)
    if member is None or not has_expired(group, member_id, member.session_timer, turn):
        return
    waits_for_us = member.parked_join is not None or member.parked_sync is not None
    if waits_for_us and not member.is_new:
        return  # its session restarts when its request is answered
    rebalance.drop_and_rebalance(group, member, "session", GroupTrigger.SESSION_EXPIRED, turn)
