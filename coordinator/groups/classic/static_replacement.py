"""A static member that comes back without an id takes the place of the one that holds its instance id (KIP-345).

The one that holds it is fenced at once. In Stable the group goes on without a rebalance if the vote for the
protocol would not change; in CompletingRebalance the leader may be assigning to the old id, so there always is
one (KAFKA-9801); while joins are parked the newcomer parks too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups import authority
from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic.session_timers import dismiss, expect_heartbeat
from coordinator.groups.classic.states import State, Trigger
from coordinator.groups.errors import Error
from coordinator.groups.outcome import ReplacementStored
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.groups.outcome import Turn
    from coordinator.groups.requests import Join


def replace(group: Group, request: Join, former: Member, member_id: str, turn: Turn) -> None:
    """Fence `former`, put `member_id` in its place, and rebalance if that is needed."""
    former_leader = group.leader or ""
    if former.parked_join is not None:
        turn.reply(former.parked_join, JoinAnswer(error=Error.FENCED_INSTANCE_ID, member_id=former.id))
    if former.parked_sync is not None:
        turn.reply(former.parked_sync, SyncAnswer(error=Error.FENCED_INSTANCE_ID))
    successor = group.replace(former, member_id)
    former.parked_join = former.parked_sync = None
    dismiss(group, former.id, former.vigil, turn)
    turn.trace("group_member_left", group=group.id, id=former.id, reason="fenced")
    turn.trace("group_member_joined", group=group.id, id=member_id)
    # Still the former's session timeout: 4.1.1 takes the new one only with the next heartbeat.
    expect_heartbeat(group, successor, turn)
    group.update(successor, request)
    group.park_join(successor, request.token)
    if group.state is State.PREPARING:
        rebalance.complete_if_ready(group, turn)
    elif group.state is State.STABLE and group.elected_protocol() == group.protocol_name:
        assignments = {member.id: member.assignment for member in group.members.values()}
        record = group.record(assignments, turn.now.wall_ms)
        turn.write(
            (GroupKey(group.id), record),
            then=ReplacementStored(request, record, member_id, former, former_leader),
        )
    else:
        rebalance.prepare(group, Trigger.MEMBER_REPLACED, turn)


def stored(group: Group, done: ReplacementStored, turn: Turn) -> None:
    """Durable: the newcomer is told the current generation, if it still waits for it."""
    member = group.members.get(done.member_id)
    if member is None or member.parked_join != done.request.token or group.state is not State.STABLE:
        return
    authority.rename(group, done.former.id, member.id, turn)
    leads = group.leader == member.id
    if done.request.may_skip_assignment:
        answer = rebalance.current_generation(group, member, with_members=True)
        # The leader learns the members to watch their topics, but is not to assign (KIP-814).
        answer = answer._replace(skip_assignment=leads)
    else:
        # Up to v8 a restarted leader is told the old leader's id, so that it takes itself for a follower and
        # does not assign anew: the assignment has not changed.
        plain = rebalance.current_generation(group, member, with_members=False)
        answer = plain._replace(leader=done.former_leader)
    group.answer_join(member, answer, turn)
    if member.vigil.armed_ms is None:  # its session's end came while it waited, and was passed over
        expect_heartbeat(group, member, turn)


def not_stored(group: Group, done: ReplacementStored, error: Error, turn: Turn) -> None:
    """Take everything back (as 4.1.1 does: with the protocols from before the update)."""
    member = group.members.get(done.member_id)
    if member is None or member.parked_join != done.request.token:
        return
    group.answer_join(member, JoinAnswer(error=error, member_id=""), turn)
    dismiss(group, member.id, member.vigil, turn)
    reverted = group.replace(member, done.former.id)
    group.take_back(reverted, done.former)
    expect_heartbeat(group, reverted, turn)
