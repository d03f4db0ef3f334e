"""A static member that returns without an id replaces the holder of its instance id (KIP-345).

The former holder is fenced at once. In Stable there is no rebalance if the elected protocol stays the same. In
CompletingRebalance there always is one, because the leader may be assigning to the old id (KAFKA-9801). In
PreparingRebalance the newcomer's JoinGroup is parked like the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic import owners, rebalance
from coordinator.groups.classic.session_timers import cancel_session_timer, restart_session
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.effects import Write
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Join


def replace(group: Group, request: Join, former: Member, member_id: str, turn: Turn) -> None:
    """Fence `former`, replace it by `member_id`, and rebalance if needed."""
    former_leader = group.leader or ""
    if former.parked_join is not None:
        turn.reply(former.parked_join, JoinAnswer(error=Error.FENCED_INSTANCE_ID, member_id=former.id))
    if former.parked_sync is not None:
        turn.reply(former.parked_sync, SyncAnswer(error=Error.FENCED_INSTANCE_ID))
    successor = group.replace(former, member_id)
    former.parked_join = former.parked_sync = None
    cancel_session_timer(group, former.id, former.session_timer, turn)
    turn.trace("group_member_left", group=group.id, id=former.id, reason="fenced")
    turn.trace("group_member_joined", group=group.id, id=member_id)
    # Still with the former session timeout: 4.1.1 uses the new one from the next heartbeat on.
    restart_session(group, successor, turn)
    group.update(successor, request)
    group.park_join(successor, request.token)
    if group.state is GroupState.PREPARING:
        rebalance.complete_if_ready(group, turn)
    elif group.state is GroupState.STABLE and group.elected_protocol() == group.protocol_name:
        assignments = {member.id: member.assignment for member in group.members.values()}
        record = group.record(assignments, turn.now.wall_ms)
        change = (GroupKey(group.id), record)
        turn.write(ReplacementWrite((change,), group, request, member_id, former, former_leader))
    else:
        rebalance.prepare(group, GroupTrigger.MEMBER_REPLACED, turn)


@dataclass(frozen=True, slots=True, eq=False)
class ReplacementWrite(Write):
    """A static member returned with a new id, without a rebalance. `former` is restored if that cannot be stored."""

    group: Group
    request: Join
    member_id: str
    former: Member
    former_leader: str

    is_from_client: ClassVar[bool] = True

    def stored(self, turn: Turn) -> None:
        """The newcomer gets the current generation, if it still waits."""
        group, member = self.group, self._waiting_member()
        if member is None or group.state is not GroupState.STABLE:
            return
        owners.rename(group, self.former.id, member.id, turn)
        leads = group.leader == member.id
        if self.request.may_skip_assignment:
            answer = rebalance.current_generation(group, member, with_members=True)
            # The leader needs the members to watch their topics, but must not assign (KIP-814).
            answer = answer._replace(skip_assignment=leads)
        else:
            # Up to v8 a restarted leader gets the old leader's id, so that it takes itself for a follower and
            # does not assign again: the assignment has not changed.
            plain = rebalance.current_generation(group, member, with_members=False)
            answer = plain._replace(leader=self.former_leader)
        group.answer_join(member, answer, turn)
        if member.session_timer.armed_ms is None:  # its session expired while it waited, which was ignored then
            restart_session(group, member, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        """Undo the replacement (as 4.1.1 does: with the protocols from before the update)."""
        group, member = self.group, self._waiting_member()
        if member is None:
            return
        group.answer_join(member, JoinAnswer(error=error, member_id=""), turn)
        cancel_session_timer(group, member.id, member.session_timer, turn)
        reverted = group.replace(member, self.former.id)
        group.take_back(reverted, self.former)
        restart_session(group, reverted, turn)

    def _waiting_member(self) -> Member | None:
        """The newcomer, if this request of it still waits."""
        member = self.group.members.get(self.member_id)
        return member if member is not None and member.parked_join == self.request.token else None

    def __str__(self) -> str:
        return f"the return of a static member to group {self.group.id!r}"
