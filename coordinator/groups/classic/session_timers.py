"""Setting, moving and cancelling the lazy session timers (`member.SessionTimer`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.effects import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member, SessionTimer
    from coordinator.groups.effects import Turn


def restart_session(group: Group, member: Member, turn: Turn) -> None:
    """Restart the session of a member that has sent a request."""
    set_session_timer(group, member.id, member.session_timer, member.session_timeout_ms, turn)


def set_session_timer(group: Group, member_id: str, timer: SessionTimer, timeout_ms: int, turn: Turn) -> None:
    """Move the deadline; set the timer only if it is not set or would fire too late."""
    timer.deadline_ms = turn.now.ms + timeout_ms
    if timer.armed_ms is None or timer.armed_ms > timer.deadline_ms:
        _arm(group, member_id, timer, turn)


def postpone(timer: SessionTimer, deadline_ms: int) -> bool:
    """Move the deadline if the timer can stay as it is; otherwise do nothing and return False."""
    if timer.armed_ms is None or timer.armed_ms > deadline_ms:
        return False
    timer.deadline_ms = deadline_ms
    return True


def has_expired(group: Group, member_id: str, timer: SessionTimer, turn: Turn) -> bool:
    """Whether the deadline has passed when the timer fires; if not, set the timer again."""
    timer.armed_ms = None
    if turn.now.ms >= timer.deadline_ms:
        return True
    _arm(group, member_id, timer, turn)
    return False


def cancel_session_timer(group: Group, member_id: str, timer: SessionTimer, turn: Turn) -> None:
    if timer.armed_ms is not None:
        timer.armed_ms = None
        turn.cancel_timer(TimerKey(TimerKind.SESSION, group.id, member_id))


def _arm(group: Group, member_id: str, timer: SessionTimer, turn: Turn) -> None:
    timer.armed_ms = timer.deadline_ms
    turn.set_timer(TimerKey(TimerKind.SESSION, group.id, member_id), timer.deadline_ms)
