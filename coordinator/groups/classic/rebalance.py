"""The join barrier: how a rebalance begins, waits, and ends in a new generation.

    prepare            leaves the present generation; in Empty opens the initial delay (KIP-134)
    complete_if_ready  ends the wait early once everybody has joined; asked after every join, leave and expiry
    complete           ends it: drops who did not come, elects, begins the generation, answers all parked joins

The initial delay never ends early, and goes on in a further part, within the rebalance timeout of the member
that opened it, as long as somebody new came in the last part (in 4.1.1 also for a group that was used before).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups import authority
from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic.group import InitialDelay
from coordinator.groups.classic.session_timers import dismiss, expect_heartbeat
from coordinator.groups.classic.states import State, Trigger
from coordinator.groups.errors import Error
from coordinator.groups.outcome import TimerKey, TimerKind
from coordinator.groups.records import GroupKey

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.groups.outcome import Turn


def rebalance_or_complete(group: Group, trigger: Trigger, turn: Turn) -> None:
    """After a change of members: start a rebalance, or see whether the running one is complete now."""
    if group.may_rebalance:
        prepare(group, trigger, turn)
    else:
        complete_if_ready(group, turn)


def prepare(group: Group, trigger: Trigger, turn: Turn) -> None:
    """Leave the present generation and wait for everybody to join again."""
    if group.state is State.COMPLETING:
        refuse_parked_syncs(group, Error.REBALANCE_IN_PROGRESS, turn)
    turn.cancel_timer(_sync_timer(group))
    from_empty = group.state is State.EMPTY
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
    """End the wait when nobody is missing; the initial delay is always waited out."""
    if group.state is State.PREPARING and group.all_joined and group.initial_delay is None:
        complete(group, turn)


def join_timer_fired(group: Group, turn: Turn) -> None:
    """A part of the initial delay, or the rebalance timeout, is over."""
    if group.state is not State.PREPARING:
        return
    delay = group.initial_delay
    if delay is not None and delay.member_added and delay.remaining_ms:
        part_ms = min(turn.limits.initial_rebalance_delay_ms, delay.remaining_ms)
        group.initial_delay = InitialDelay(part_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        turn.set_timer(_join_timer(group), turn.now.ms + part_ms)
    else:
        complete(group, turn)


def complete(group: Group, turn: Turn) -> None:
    """End the wait. Static members that did not come stay (KAFKA-8220), dynamic ones are dropped."""
    group.initial_delay = None
    turn.cancel_timer(_join_timer(group))
    for absent in [m for m in group.members.values() if m.parked_join is None and not m.is_static]:
        drop(group, absent, "not rejoined", turn)
    if group.members and not _leader_has_joined(group):
        # Only static members are left and none of them came: wait until they do or their sessions end.
        turn.set_timer(_join_timer(group), turn.now.ms + group.rebalance_timeout_ms())
        return
    ended = group.generation
    group.begin_generation()
    authority.clear(group, ended, "generation ended", turn)
    if group.members:
        group.move(Trigger.JOIN_COMPLETED, turn)
        _answer_joins(group, turn)
    else:
        group.move(Trigger.ALL_GONE, turn)
        turn.write((GroupKey(group.id), group.record({}, turn.now.wall_ms)))


def _leader_has_joined(group: Group) -> bool:
    """Whether the leader is there; if not, any member that is takes over."""
    leader = group.members.get(group.leader or "")
    if leader is not None and leader.parked_join is not None:
        return True
    successor = next((member for member in group.members.values() if member.parked_join is not None), None)
    if successor is not None:
        group.leader = successor.id
    return successor is not None


def _answer_joins(group: Group, turn: Turn) -> None:
    told = current_generation(group, group.members[group.leader or ""], with_members=True)
    everybody_gets = told[1:-1]
    for member in group.members.values():
        answer = told if member.id == group.leader else JoinAnswer(member.id, *everybody_gets)
        group.answer_join(member, answer, turn)
        expect_heartbeat(group, member, turn)
        member.is_new = False
        group.unsynced[member.id] = None
    turn.set_timer(_sync_timer(group), turn.now.ms + group.rebalance_timeout_ms())


def current_generation(group: Group, member: Member, *, with_members: bool) -> JoinAnswer:
    """What a member is told of the generation; the list of members goes to the leader only."""
    listed = with_members and group.leader == member.id
    return JoinAnswer(
        member_id=member.id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        members=group.profiles() if listed else (),
    )


# -- members going ------------------------------------------------------------------------------------------------


def drop(group: Group, member: Member, reason: str, turn: Turn) -> None:
    """Forget a member. Its parked join tells it to come again; its parked sync stays unanswered, as in Kafka."""
    group.answer_join(member, JoinAnswer(error=Error.UNKNOWN_MEMBER_ID, member_id=""), turn)
    if member.parked_sync is not None:
        turn.abandon(member.parked_sync)
    group.remove(member.id)
    dismiss(group, member.id, member.vigil, turn)
    turn.trace("group_member_left", group=group.id, id=member.id, reason=reason)


def drop_and_rebalance(group: Group, member: Member, reason: str, trigger: Trigger, turn: Turn) -> None:
    drop(group, member, reason, turn)
    rebalance_or_complete_unless_empty(group, trigger, turn)


def rebalance_or_complete_unless_empty(group: Group, trigger: Trigger, turn: Turn) -> None:
    """After somebody left: an Empty group has nothing to rebalance."""
    if group.state in {State.STABLE, State.COMPLETING, State.PREPARING}:
        rebalance_or_complete(group, trigger, turn)


# -- the sync phase -----------------------------------------------------------------------------------------------


def synced(group: Group, member_id: str, turn: Turn) -> None:
    """This member has sent its SyncGroup; the sync timer ends with the last one."""
    group.unsynced.pop(member_id, None)
    if not group.unsynced:
        turn.cancel_timer(_sync_timer(group))


def sync_timer_fired(group: Group, turn: Turn) -> None:
    """Members that have not sent their SyncGroup in time are removed, in Stable too (KAFKA-12890)."""
    if group.state not in {State.COMPLETING, State.STABLE} or not group.unsynced:
        return
    for member_id in list(group.unsynced):
        member = group.members.get(member_id)
        if member is None:
            group.remove(member_id)
        else:
            drop(group, member, "not synced", turn)
    prepare(group, Trigger.SYNC_EXPIRED, turn)


def propagate_assignments(group: Group, turn: Turn) -> None:
    """Answer every parked SyncGroup with its member's assignment.

    Sessions start anew: an expiry that came while the sync was parked was passed over and will not come again.
    """
    for member in group.members.values():
        if member.parked_sync is not None:
            turn.reply(member.parked_sync, sync_answer(group, member))
            member.parked_sync = None
            expect_heartbeat(group, member, turn)


def refuse_parked_syncs(group: Group, error: Error, turn: Turn) -> None:
    """The generation ends before it had an assignment, or storing it failed."""
    for member in group.members.values():
        member.assignment = b""
        if member.parked_sync is not None:
            turn.reply(member.parked_sync, SyncAnswer(error=error))
            member.parked_sync = None
            expect_heartbeat(group, member, turn)


def sync_answer(group: Group, member: Member) -> SyncAnswer:
    return SyncAnswer(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def cancel_timers(group: Group, turn: Turn) -> None:
    """The group goes away."""
    turn.cancel_timer(_join_timer(group))
    turn.cancel_timer(_sync_timer(group))
    for member in group.members.values():
        dismiss(group, member.id, member.vigil, turn)
    for member_id, vigil in group.pending.items():
        dismiss(group, member_id, vigil, turn)


def _join_timer(group: Group) -> TimerKey:
    return TimerKey(TimerKind.JOIN, group.id)


def _sync_timer(group: Group) -> TimerKey:
    return TimerKey(TimerKind.SYNC, group.id)
