"""A member's two timers: its session, and the time that it has for giving partitions up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.member import SessionTimer
from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.effects import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember
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
    """Of a member that is removed."""
    timer = group.sessions.pop(member_id, None)
    if timer is not None and timer.armed_ms is not None:
        turn.cancel_timer(TimerKey(TimerKind.CONSUMER_SESSION, group.id, member_id))
    if group.revocations.pop(member_id, None) is not None:
        turn.cancel_timer(_revocation(group, member_id))


def _arm(group: ConsumerGroup, member_id: str, timer: SessionTimer, turn: Turn) -> None:
    timer.armed_ms = timer.deadline_ms
    turn.set_timer(TimerKey(TimerKind.CONSUMER_SESSION, group.id, member_id), timer.deadline_ms)


def _revocation(group: ConsumerGroup, member_id: str) -> TimerKey:
    return TimerKey(TimerKind.REVOCATION, group.id, member_id)
