"""A member's timers: its session, and the time that it has for giving partitions up.

A member of the classic protocol has time for joining again and for its SyncGroup instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.member import SessionTimer
from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.effects import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer.requests import ConsumerSettings
    from coordinator.groups.effects import Turn


def restart_session(group: ConsumerGroup, member_id: str, timeout_ms: int, turn: Turn) -> None:
    """Move the deadline; the timer is set again only if it would fire too late."""
    timer = group.sessions.setdefault(member_id, SessionTimer())
    timer.deadline_ms = turn.now.ms + timeout_ms
    if timer.armed_ms is None or timer.armed_ms > timer.deadline_ms:
        _arm(group, member_id, timer, turn)


def session_has_expired(group: ConsumerGroup, member_id: str, turn: Turn) -> bool:
    """Whether the deadline has passed when the timer fires; if not, the timer is set again."""
    timer = group.sessions.get(member_id)
    if timer is None:
        return False
    timer.armed_ms = None
    if turn.now.ms < timer.deadline_ms:
        _arm(group, member_id, timer, turn)
        return False
    return True


def time_revocation(group: ConsumerGroup, member: ConsumerMember, turn: Turn) -> None:
    """Limit the time for giving partitions up to the member's rebalance timeout, from the latest command on."""
    if member.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
        group.revocations[member.id] = member.epoch
        turn.set_timer(_revocation(group, member.id), turn.now.ms + member.rebalance_timeout_ms)
    elif group.revocations.pop(member.id, None) is not None:
        turn.cancel_timer(_revocation(group, member.id))


def revocation_is_late(group: ConsumerGroup, member_id: str) -> bool:
    """Whether the member has still not given up its partitions when the timer fires."""
    epoch, member = group.revocations.pop(member_id, None), group.members.get(member_id)
    return member is not None and member.epoch == epoch


def cancel_timers(group: ConsumerGroup, member_id: str, turn: Turn) -> None:
    """Cancel every timer of a member that is removed."""
    timer = group.sessions.pop(member_id, None)
    if timer is not None and timer.armed_ms is not None:
        turn.cancel_timer(TimerKey(TimerKind.CONSUMER_SESSION, group.id, member_id))
    if group.revocations.pop(member_id, None) is not None:
        turn.cancel_timer(_revocation(group, member_id))
    for kind in (TimerKind.REJOIN, TimerKind.RESYNC):
        cancel_deadline(group, kind, member_id, turn)


def session_timeout_ms(member: ConsumerMember, settings: ConsumerSettings) -> int:
    """A member of the classic protocol brings its own."""
    return settings.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms


def set_deadline(group: ConsumerGroup, kind: TimerKind, member_id: str, timeout_ms: int, turn: Turn) -> None:
    """For a member of the classic protocol; one that is set already is moved."""
    key = TimerKey(kind, group.id, member_id)
    group.deadlines.add(key)
    turn.set_timer(key, turn.now.ms + timeout_ms)


def has_deadline(group: ConsumerGroup, kind: TimerKind, member_id: str) -> bool:
    return TimerKey(kind, group.id, member_id) in group.deadlines


def cancel_deadline(group: ConsumerGroup, kind: TimerKind, member_id: str, turn: Turn) -> None:
    key = TimerKey(kind, group.id, member_id)
    if key in group.deadlines:
        group.deadlines.discard(key)
        turn.cancel_timer(key)


def is_late(group: ConsumerGroup, key: TimerKey, turn: Turn) -> bool:
    """Whether the member has to be removed now that this timer fires."""
    if key.kind is TimerKind.CONSUMER_SESSION:
        return session_has_expired(group, key.member_id, turn)
    if key.kind is TimerKind.REVOCATION:
        return revocation_is_late(group, key.member_id)
    was_set = key in group.deadlines
    group.deadlines.discard(key)
    return was_set


def _arm(group: ConsumerGroup, member_id: str, timer: SessionTimer, turn: Turn) -> None:
    timer.armed_ms = timer.deadline_ms
    turn.set_timer(TimerKey(TimerKind.CONSUMER_SESSION, group.id, member_id), timer.deadline_ms)


def _revocation(group: ConsumerGroup, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.REVOCATION, group.id, member_id)
