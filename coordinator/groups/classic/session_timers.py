"""Setting, moving and cancelling the lazy session timers (`member.Vigil`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.effects import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member, Vigil
    from coordinator.groups.effects import Turn


def expect_heartbeat(group: Group, member: Member, turn: Turn) -> None:
    """Restart the session of a member that has sent a request."""
    watch(group, member.id, member.vigil, member.session_timeout_ms, turn)


def watch(group: Group, member_id: str, vigil: Vigil, timeout_ms: int, turn: Turn) -> None:
    """Move the deadline; set the timer only if it is not set or would fire too late."""
    vigil.deadline_ms = turn.now.ms + timeout_ms
    if vigil.armed_ms is None or vigil.armed_ms > vigil.deadline_ms:
        _arm(group, member_id, vigil, turn)


def postponed(vigil: Vigil, deadline_ms: int) -> bool:
    """Move the deadline if the timer can stay as it is; otherwise do nothing and return False."""
    if vigil.armed_ms is None or vigil.armed_ms > deadline_ms:
        return False
    vigil.deadline_ms = deadline_ms
    return True


def is_over(group: Group, member_id: str, vigil: Vigil, turn: Turn) -> bool:
    """Whether the deadline has passed when the timer fires; if not, set the timer again."""
    vigil.armed_ms = None
    if turn.now.ms >= vigil.deadline_ms:
        return True
    _arm(group, member_id, vigil, turn)
    return False


def dismiss(group: Group, member_id: str, vigil: Vigil, turn: Turn) -> None:
    if vigil.armed_ms is not None:
        vigil.armed_ms = None
        turn.cancel_timer(TimerKey(TimerKind.SESSION, group.id, member_id))


def _arm(group: Group, member_id: str, vigil: Vigil, turn: Turn) -> None:
    vigil.armed_ms = vigil.deadline_ms
    turn.set_timer(TimerKey(TimerKind.SESSION, group.id, member_id), vigil.deadline_ms)
