"""JoinGroup: who is admitted, under which id, and whether that starts a rebalance.

new dynamic member    v4+: first gets an id (MEMBER_ID_REQUIRED, KIP-394), and joins when it returns with it
new static member     admitted at once; a known instance id replaces its holder (KIP-345, `static_replacement`)
known member          parked in PreparingRebalance; otherwise it starts a rebalance only if it leads or has changed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic import static_replacement as replacement
from coordinator.groups.classic.member import Member, SessionTimer
from coordinator.groups.classic.session_timers import cancel_session_timer, set_session_timer
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.errors import Error
from coordinator.groups.requests import UNKNOWN_MEMBER

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Join


def join(group: Group, request: Join, turn: Turn) -> None:
    """One JoinGroup whose group exists and whose session timeout is in range."""
    is_new = request.member_id == UNKNOWN_MEMBER
    if group.state is GroupState.DEAD:
        refuse(request, Error.COORDINATOR_NOT_AVAILABLE, turn)
    elif not _has_room(group, request.member_id, turn):
        former = group.members.get(request.member_id)
        if former is not None:
            rebalance.drop(group, former, "group is full", turn)
        group.remove(request.member_id)
        turn.reply(request.token, JoinAnswer(error=Error.GROUP_MAX_SIZE_REACHED, member_id=""))
    elif (size := request.size) > turn.limits.member_bytes_max:
        _turn_away(group, request, Error.MESSAGE_TOO_LARGE, turn)
    elif _bytes_with(group, request, size) > turn.limits.group_bytes_max:
        _turn_away(group, request, Error.GROUP_MAX_SIZE_REACHED, turn)
    elif not group.accepts(request.protocol_type, request.protocols):
        refuse(request, Error.INCONSISTENT_GROUP_PROTOCOL, turn)
    elif is_new and request.instance_id is not None:
        _join_new_static(group, request, turn)
    elif is_new:
        _join_new_dynamic(group, request, turn)
    elif request.member_id in group.pending:
        _join_pending(group, request, turn)
    else:
        _join_known(group, request, turn)


def session_is_out_of_range(request: Join, turn: Turn) -> bool:
    limits = turn.limits
    return not limits.session_timeout_ms_min <= request.session_timeout_ms <= limits.session_timeout_ms_max


def refuse(request: Join, error: Error, turn: Turn) -> None:
    """Answer with an error and the member id of the request."""
    turn.reply(request.token, JoinAnswer(error=error, member_id=request.member_id))


def _turn_away(group: Group, request: Join, error: Error, turn: Turn) -> None:
    """Refuse a member whose metadata is too large, and remove it, so that its partitions are reassigned."""
    turn.reply(request.token, JoinAnswer(error=error, member_id=""))
    if (pending := group.pending.pop(request.member_id, None)) is not None:
        cancel_session_timer(group, request.member_id, pending, turn)
        rebalance.complete_if_ready(group, turn)
    elif group.refusal(request.member_id, request.instance_id) is None:
        former = group.members[request.member_id]
        rebalance.drop_and_rebalance(group, former, "metadata too large", GroupTrigger.MEMBER_LEFT, turn)


def _bytes_with(group: Group, request: Join, size: int) -> int:
    """The group's size in bytes if this member had `size`.

    Kafka has no such limit: 4.1.1 accepts whatever fits a request, and when the group is too large for one record it
    refuses every SyncGroup with UNKNOWN_SERVER_ERROR. One member could thus stop all others.
    """
    holder = group.instances.get(request.instance_id, "") if request.instance_id is not None else request.member_id
    former = group.members.get(holder)
    return group.size + size - (0 if former is None else former.size)


def _has_room(group: Group, member_id: str, turn: Turn) -> bool:
    """group.max.size (KAFKA-7641). In PreparingRebalance the first members to rejoin get the places."""
    members_max = turn.limits.members_max
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING:
        return (member is not None and member.parked_join is not None) or group.joined < members_max
    return member is not None or len(group.members) < members_max


def _join_new_static(group: Group, request: Join, turn: Turn) -> None:
    assert request.instance_id is not None, "an instance id is what makes a member static"
    member_id = f"{request.instance_id}-{request.fresh_id}"
    former = group.members.get(group.instances.get(request.instance_id, ""))
    if former is None:
        _admit(group, request, member_id, turn)
    else:
        replacement.replace(group, request, former, member_id, turn)


def _join_new_dynamic(group: Group, request: Join, turn: Turn) -> None:
    member_id = f"{request.client_id}-{request.fresh_id}"
    if not request.must_return_with_id:
        _admit(group, request, member_id, turn)
        return
    timer = group.pending[member_id] = SessionTimer()
    set_session_timer(group, member_id, timer, request.session_timeout_ms, turn)
    turn.reply(request.token, JoinAnswer(error=Error.MEMBER_ID_REQUIRED, member_id=member_id))


def _join_pending(group: Group, request: Join, turn: Turn) -> None:
    if request.instance_id is not None:
        # A static member never has a pending id. Kafka throws here, and this is its answer to an exception.
        turn.reply(request.token, JoinAnswer(error=Error.UNKNOWN_SERVER_ERROR, member_id=""))
        return
    _admit(group, request, request.member_id, turn)


def _admit(group: Group, request: Join, member_id: str, turn: Turn) -> None:
    member = Member.joining(request, member_id)
    if group.initial_delay is not None:
        group.initial_delay.member_added = True
    if (pending := group.pending.get(member_id)) is not None:
        member.session_timer = pending
    group.add(member, request.protocol_type, request.token)
    turn.trace("group_member_joined", group=group.id, id=member_id)
    # Its connection is muted while the request is parked, so a dead client would go unnoticed. A live one rejoins
    # (KAFKA-7610).
    set_session_timer(group, member_id, member.session_timer, turn.limits.new_member_join_timeout_ms, turn)
    rebalance.rebalance_or_complete(group, GroupTrigger.MEMBER_ADDED, turn)


def _join_known(group: Group, request: Join, turn: Turn) -> None:
    refusal = group.refusal(request.member_id, request.instance_id)
    if refusal is not None:
        refuse(request, refusal, turn)
        return
    member = group.members[request.member_id]
    unchanged = member.protocols == request.protocols
    leads = group.leader == member.id
    if group.state is GroupState.PREPARING:
        _park(group, member, request, turn)
        rebalance.complete_if_ready(group, turn)
    elif group.state is GroupState.COMPLETING and unchanged:
        # The answer was lost, or the client gave up waiting.
        turn.reply(request.token, rebalance.current_generation(group, member, with_members=True))
    elif group.state is GroupState.STABLE and unchanged and not leads:
        turn.reply(request.token, rebalance.current_generation(group, member, with_members=False))
    else:
        _park(group, member, request, turn)
        rebalance.prepare(group, GroupTrigger.LEADER_REJOINED if unchanged else GroupTrigger.MEMBER_CHANGED, turn)


def _park(group: Group, member: Member, request: Join, turn: Turn) -> None:
    if member.parked_join is not None:
        turn.abandon(member.parked_join)  # the first JoinGroup is never answered, as in Kafka
    group.update(member, request)
    group.park_join(member, request.token)
