"""Actions of a classic member that subscribes to other topics or none, is closed, or fails for good.

Each takes (member, event, now in monotonic ns) and returns the new member and the effects, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership import tracing
from coordinator.membership.classic import holdings, moves
from coordinator.membership.classic.member import Member, MemberState
from coordinator.membership.tracing import emit, preceded
from kernel.values import replaced

if TYPE_CHECKING:
    from coordinator.membership.classic import events
    from coordinator.membership.classic.holdings import Step
    from coordinator.membership.effects import Effect
    from coordinator.membership.events import Closed, Refused, Stopped

#: States in which no commit gets through: it would queue behind a request that is parked or about to be.
_REBALANCING = frozenset({MemberState.SEEKING, *moves.BETWEEN_JOIN_AND_SYNC})

# -- other topics, or a rejoin with the same --------------------------------------------------------------------------


def subscription_changed(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    """Remember the topics: the next JoinGroup names them; one sent earlier is found outdated after its Sync."""
    return replaced(member, topics=event.topics), ()


def subscription_changed_within(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    """Rejoin: the group knows other topics of this member."""
    changed = replaced(member, topics=event.topics)
    return (changed, ()) if event.topics == member.topics else moves.want_rejoin(changed, moves.SUBSCRIPTION_CHANGED)


def rejoin_wanted(member: Member, event: events.RejoinWanted, _: int) -> Step:
    return moves.want_rejoin(member, event.trigger)


# -- out of the group -------------------------------------------------------------------------------------------------


def unsubscribed(member: Member, _: events.Unsubscribed, __: int) -> Step:
    """Leave as in a close, but without a commit, and a later subscription joins again: as in Kafka 4.1.1."""
    return _leave(replaced(member, topics=None), MemberState.UNSUBSCRIBING, "unsubscribed")


def close(member: Member, _: Closed, __: int) -> Step:
    return _leave(member, MemberState.CLOSING, "closed")


def _leave(member: Member, state: MemberState, why: str) -> Step:
    leaving = replaced(
        member, state=state, assigned=holdings.NOTHING, attempt=0, rejoin_needed=False, trigger="subscribe"
    )
    ended = moves.emit_ended(member, "error", why, "superseded") if member.attempt else ()
    if member.state in moves.REVOKING:  # the running revocation serves for leaving as well
        return leaving, ended
    lost: tuple[Effect, ...] = ()
    if member.state in _REBALANCING:  # as ConsumerCoordinator.onLeavePrepare: the generation may be over already
        leaving, lost = holdings.lose_all(member, leaving)
    return preceded(_revoke_then_leave(leaving), (*ended, *lost))


def stopped(member: Member, _: Stopped, __: int) -> Step:
    without, emitted = holdings.released(member)
    return preceded(_revoke_then_leave(without), emitted)


def _revoke_then_leave(member: Member) -> Step:
    if member.owned:
        return holdings.release(member, member.owned, commit=member.state is MemberState.CLOSING)
    if member.state is MemberState.UNSUBSCRIBING:
        return replaced(moves.forgotten(member), state=MemberState.UNJOINED), moves.send_leave(member)
    closed = emit(member, "member_closed", group=member.settings.group)
    return replaced(moves.forgotten(member), state=MemberState.LEFT), (*moves.send_leave(member), closed)


# -- refused for good -------------------------------------------------------------------------------------------------


def refused(member: Member, event: Refused, _: int) -> Step:
    """A fatal error: FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, ...

    After a failed Sync (an unreadable assignment, for one) the member is still in the group, so it leaves.
    """
    failed = replaced(moves.forgotten(member), state=MemberState.FAILED, assigned=holdings.NOTHING, attempt=0)
    lost, emitted = holdings.lose_all(member, failed)
    return lost, (
        *(moves.send_leave(member) if member.state is MemberState.SYNCING else ()),
        *emitted,
        *(moves.emit_ended(member, "error", event.error, "failed") if member.attempt else ()),
        *tracing.refused(member, member.settings.group, event),
    )
