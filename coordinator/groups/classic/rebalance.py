"""The join barrier: how a rebalance begins, waits, and ends in a new generation.

    prepare            leaves the current generation; from Empty it starts the initial delay (KIP-134)
    complete_if_ready  ends the wait once all members have joined; called after every join, leave and expiry
    complete           ends it: drops absent members, elects, begins the generation, answers all parked joins

The initial delay never ends early. It is extended, up to the rebalance timeout of the member that started it, while
new members keep joining (in 4.1.1 also for a group that was used before).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic import owners
from coordinator.groups.classic.group import InitialDelay
from coordinator.groups.classic.session_timers import cancel_session_timer, restart_session, set_session_timer
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.effects import TimerKey, TimerKind, Write
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.groups.effects import Turn
    from kernel.trace.words import Removal


def rebalance_or_complete(group: Group, trigger: GroupTrigger, turn: Turn) -> None:
    """After a change of members: start a rebalance, or complete the running one if it is ready."""
    if group.may_rebalance:
        prepare(group, trigger, turn)
    else:
        complete_if_ready(group, turn)


def prepare(group: Group, trigger: GroupTrigger, turn: Turn) -> None:
    """Leave the current generation and wait for all members to rejoin."""
    if group.state is GroupState.COMPLETING:
        refuse_parked_syncs(group, Error.REBALANCE_IN_PROGRESS, turn)
    turn.cancel_timer(_sync_timer(group))
    from_empty = group.state is GroupState.EMPTY
    group.move(trigger, turn)
    if from_empty:
        delay_ms = turn.limits.initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms() - delay_ms, 0))
        turn.set_timer(_join_timer(group), turn.now.ms + delay_ms)
    elif group.all_joined:
        complete(group, turn)
    else:
        turn.set_timer(_join_timer(group), turn.now.ms + group.rebalance_timeout_ms())


def complete_if_ready(group: Group, turn: Turn) -> None:
    """End the wait if all members have joined; the initial delay never ends early."""
    if group.state is GroupState.PREPARING and group.all_joined and group.initial_delay is None:
        complete(group, turn)


def join_timer_fired(group: Group, turn: Turn) -> None:
    """A part of the initial delay, or the rebalance timeout, has passed."""
    if group.state is not GroupState.PREPARING:
        return
    delay = group.initial_delay
    if delay is not None and delay.member_added and delay.remaining_ms:
        part_ms = min(turn.limits.initial_rebalance_delay_ms, delay.remaining_ms)
        group.initial_delay = InitialDelay(part_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        turn.set_timer(_join_timer(group), turn.now.ms + part_ms)
    else:
        complete(group, turn)


def complete(group: Group, turn: Turn) -> None:
    """End the wait. Absent dynamic members are dropped, static ones stay (KAFKA-8220)."""
    group.initial_delay = None
    turn.cancel_timer(_join_timer(group))
    for absent in [m for m in group.members.values() if m.parked_join is None and not m.is_static]:
        drop(group, absent, "not rejoined", turn)
    if group.members and not _leader_has_joined(group):
        # Only static members are left and none has joined: wait until one does or their sessions expire.
        turn.set_timer(_join_timer(group), turn.now.ms + group.rebalance_timeout_ms())
        return
    ended = group.generation
    group.begin_generation()
    owners.clear(group, ended, "generation ended", turn)
    if group.members:
        group.move(GroupTrigger.JOIN_COMPLETED, turn)
        _answer_joins(group, turn)
    else:
        group.move(GroupTrigger.ALL_GONE, turn)
        turn.write(Write(((GroupKey(group.id), group.record({}, turn.now.wall_ms)),)))


def _leader_has_joined(group: Group) -> bool:
    """Whether a joined member leads. If the leader is absent, the first joined member succeeds it."""
    leader = group.members.get(group.leader or "")
    if leader is not None and leader.parked_join is not None:
        return True
    successor = next((member for member in group.members.values() if member.parked_join is not None), None)
    if successor is not None:
        group.leader = successor.id
    return successor is not None


def _answer_joins(group: Group, turn: Turn) -> None:
    leaders_answer = current_generation(group, group.members[group.leader or ""], with_members=True)
    shared = leaders_answer[1:-1]
    for member in group.members.values():
        answer = leaders_answer if member.id == group.leader else JoinAnswer(member.id, *shared)
        group.answer_join(member, answer, turn)
        if member.is_new and turn.limits.sessions_begin_late:
            cancel_session_timer(group, member.id, member.session_timer, turn)  # KAFKA-9752
        else:
            restart_session(group, member, turn)
        member.is_new = False
        group.unsynced[member.id] = None
    turn.set_timer(_sync_timer(group), turn.now.ms + group.rebalance_timeout_ms())


def current_generation(group: Group, member: Member, *, with_members: bool) -> JoinAnswer:
    """The JoinGroup answer in the current generation; only the leader gets the list of members."""
    listed = with_members and group.leader == member.id
    return JoinAnswer(
        member_id=member.id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        members=group.profiles() if listed else (),
    )


# -- removing members ------------------------------------------------------------------------------------------------


def drop(group: Group, member: Member, reason: Removal, turn: Turn) -> None:
    """Remove a member. Its parked join gets UNKNOWN_MEMBER_ID; its parked sync is never answered, as in Kafka."""
    group.answer_join(member, JoinAnswer(error=Error.UNKNOWN_MEMBER_ID, member_id=""), turn)
    if member.parked_sync is not None:
        turn.abandon(member.parked_sync)
    group.remove(member.id)
    cancel_session_timer(group, member.id, member.session_timer, turn)
    turn.trace("group_member_left", group=group.id, id=member.id, reason=reason)


def drop_and_rebalance(group: Group, member: Member, reason: Removal, trigger: GroupTrigger, turn: Turn) -> None:
    drop(group, member, reason, turn)
    rebalance_or_complete_unless_empty(group, trigger, turn)


def rebalance_or_complete_unless_empty(group: Group, trigger: GroupTrigger, turn: Turn) -> None:
    """After a member left: an Empty group has nothing to rebalance."""
    if group.state in {GroupState.STABLE, GroupState.COMPLETING, GroupState.PREPARING}:
        rebalance_or_complete(group, trigger, turn)


# -- the sync phase -----------------------------------------------------------------------------------------------


def synced(group: Group, member_id: str, turn: Turn) -> None:
    """The member has sent its SyncGroup. The last one cancels the sync timer."""
    group.unsynced.pop(member_id, None)
    if not group.unsynced:
        turn.cancel_timer(_sync_timer(group))


def sync_timer_fired(group: Group, turn: Turn) -> None:
    """Remove members that have not sent their SyncGroup in time, in Stable too (KAFKA-12890)."""
    if group.state not in {GroupState.COMPLETING, GroupState.STABLE} or not group.unsynced:
        return
    for member_id in list(group.unsynced):
        member = group.members.get(member_id)
        if member is None:
            group.remove(member_id)
        else:
            drop(group, member, "not synced", turn)
    prepare(group, GroupTrigger.SYNC_EXPIRED, turn)


def propagate_assignments(group: Group, turn: Turn) -> None:
    """Answer every parked SyncGroup with its member's assignment.

    Sessions restart: an expiry while the sync was parked was ignored, and its timer is not set again.
    """
    for member in group.members.values():
        if member.parked_sync is not None:
            turn.reply(member.parked_sync, sync_answer(group, member))
            member.parked_sync = None
            restart_session(group, member, turn)


def refuse_parked_syncs(group: Group, error: Error, turn: Turn) -> None:
    """Fail parked SyncGroups: the generation ended without an assignment, or storing it failed."""
    for member in group.members.values():
        member.assignment = b""
    answer_parked_syncs(group, error, turn)


def answer_parked_syncs(group: Group, error: Error, turn: Turn) -> None:
    """With an error; assignments stay what they are."""
    for member in group.members.values():
        if member.parked_sync is not None:
            turn.reply(member.parked_sync, SyncAnswer(error=error))
            member.parked_sync = None
            restart_session(group, member, turn)


def sync_answer(group: Group, member: Member) -> SyncAnswer:
    return SyncAnswer(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def cancel_timers(group: Group, turn: Turn) -> None:
    """For a group that is deleted or unloaded."""
    turn.cancel_timer(_join_timer(group))
    turn.cancel_timer(_sync_timer(group))
    for member in group.members.values():
        cancel_session_timer(group, member.id, member.session_timer, turn)
    for member_id, timer in group.pending.items():
        cancel_session_timer(group, member_id, timer, turn)


def resume_timers(group: Group, turn: Turn) -> None:
    """For a group whose timers were cancelled, and that goes on after all."""
    for member in group.members.values():
        restart_session(group, member, turn)
    for member_id, timer in group.pending.items():
        set_session_timer(group, member_id, timer, max(timer.deadline_ms - turn.now.ms, 0), turn)
    timeout_ms = group.rebalance_timeout_ms()
    if group.initial_delay is not None:
        turn.set_timer(_join_timer(group), turn.now.ms + group.initial_delay.delay_ms)
    elif group.state is GroupState.PREPARING:
        turn.set_timer(_join_timer(group), turn.now.ms + timeout_ms)
    if group.unsynced:
        turn.set_timer(_sync_timer(group), turn.now.ms + timeout_ms)


def _join_timer(group: Group) -> TimerKey:
    return TimerKey(TimerKind.JOIN, group.id)


def _sync_timer(group: Group) -> TimerKey:
    return TimerKey(TimerKind.SYNC, group.id)
