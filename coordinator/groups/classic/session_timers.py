"""Session timers: lazy ones, so that a heartbeat costs an assignment (`member.Vigil`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.outcome import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member, Vigil
    from coordinator.groups.outcome import Turn


def expect_heartbeat(group: Group, member: Member, turn: Turn) -> None:
    """The member has shown itself alive: its session starts anew."""
    watch(group, member.id, member.vigil, member.session_timeout_ms, turn)


def watch(group: Group, member_id: str, vigil: Vigil, timeout_ms: int, turn: Turn) -> None:
    """Move the deadline; set the timer only if none is set, or the one that is set would fire too late."""
    vigil.deadline_ms = turn.now.ms + timeout_ms
    if vigil.armed_ms is None or vigil.armed_ms > vigil.deadline_ms:
        _arm(group, member_id, vigil, turn)


def postponed(vigil: Vigil, deadline_ms: int) -> bool:
    """As `watch`, where that needs no timer to be set; False: one has to be set, and nothing was done."""
    if vigil.armed_ms is None or vigil.armed_ms > deadline_ms:
        return False
    vigil.deadline_ms = deadline_ms
    return True


def is_over(group: Group, member_id: str, vigil: Vigil, turn: Turn) -> bool:
    """The timer fired: whether the deadline has come; if not, the timer is set again for it."""
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
