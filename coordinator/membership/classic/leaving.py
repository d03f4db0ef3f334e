"""What a member does when the application wants other topics or none, closes, or is refused for good.

Actions as in `actions`: (member, event, now in monotonic ns) -> the member after it and the effects, in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership.classic import holdings, moves
from coordinator.membership.classic.member import Member, State
from coordinator.membership.effects import Effect, Fail
from coordinator.membership.tracing import emit, preceded

if TYPE_CHECKING:
    from coordinator.membership import events
    from coordinator.membership.classic.holdings import Step

#: In these no commit gets through: the request that is parked, or will be, is ahead of it.
_REBALANCING = frozenset({State.SEEKING, *moves.BETWEEN_JOIN_AND_SYNC})

# -- other topics, or the same anew -----------------------------------------------------------------------------------


def subscription_changed(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    """A Join that is still to be sent says so by itself; one that was sent is seen to be outdated at its Sync."""
    return replace(member, topics=event.topics), ()


def subscription_changed_within(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    """The group was told otherwise, so it has to be told again."""
    changed = replace(member, topics=event.topics)
    return (changed, ()) if event.topics == member.topics else moves.want_rejoin(changed, moves.SUBSCRIPTION_CHANGED)


def rejoin_wanted(member: Member, event: events.RejoinWanted, _: int) -> Step:
    return moves.want_rejoin(member, event.trigger)


# -- out of the group -------------------------------------------------------------------------------------------------


def unsubscribed(member: Member, _: events.Unsubscribed, __: int) -> Step:
    """As a close, except that a later subscription begins anew, and that nothing is committed: as in Kafka 4.1.1."""
    return _part(replace(member, topics=None), State.UNSUBSCRIBING, "unsubscribed")


def close(member: Member, _: events.Closed, __: int) -> Step:
    return _part(member, State.CLOSING, "closed")


def _part(member: Member, parting: State, why: str) -> Step:
    leaving = replace(member, state=parting, assigned=holdings.NOTHING, attempt=0, summoned=False, trigger="subscribe")
    ended = moves.tell_ended(member, "error", why, "superseded") if member.attempt else ()
    if member.state in moves.GIVING_UP:  # the revocation that is under way serves the parting as well
        return leaving, ended
    lost: tuple[Effect, ...] = ()
    if member.state in _REBALANCING:  # as ConsumerCoordinator.onLeavePrepare: the generation may be over already
        leaving, lost = holdings.lose_all(member, leaving)
    return preceded(_revoke_then_leave(leaving), (*ended, *lost))


def stopped(member: Member, _: events.Stopped, __: int) -> Step:
    without, told = holdings.released(member)
    return preceded(_revoke_then_leave(without), told)


def _revoke_then_leave(member: Member) -> Step:
    if member.owned:
        return holdings.release(member, member.owned, commit=member.state is State.CLOSING)
    if member.state is State.UNSUBSCRIBING:
        return replace(moves.forgotten(member), state=State.UNJOINED), moves.send_leave(member)
    closed = emit(member, "member_closed", group=member.settings.group)
    return replace(moves.forgotten(member), state=State.LEFT), (*moves.send_leave(member), closed)


# -- refused for good -------------------------------------------------------------------------------------------------


def refused(member: Member, event: events.Refused, _: int) -> Step:
    """An error that does not pass: FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, ...

    What fails at the Sync, as an assignment that cannot be read, leaves it in the group, which would wait for it.
    """
    failed = replace(moves.forgotten(member), state=State.FAILED, assigned=holdings.NOTHING, attempt=0)
    lost, told = holdings.lose_all(member, failed)
    return lost, (
        *(moves.send_leave(member) if member.state is State.SYNCING else ()),
        *told,
        *(moves.tell_ended(member, "error", event.error, "failed") if member.attempt else ()),
        emit(member, "member_failed", error=f"{event.api}: {event.error}"),
        Fail(event.api, event.error),
    )
