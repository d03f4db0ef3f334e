"""Actions of a classic member, as named by `table.TABLE`; those that leave the group are in `leaving`.

Each takes (member, event, now in monotonic ns) and returns the new member and the effects, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership.classic import events, holdings, moves
from coordinator.membership.classic.effects import RunAssignor, SendHeartbeat
from coordinator.membership.classic.member import NS_PER_MS, Member, MemberState
from coordinator.membership.effects import AbandonCoordinator, CommitPositions, Effect, FindCoordinator
from coordinator.membership.events import (
    CoordinatorFound,
    CoordinatorLoading,
    CoordinatorMoved,
    CoordinatorUnknown,
    Event,
    GenerationOutdated,
    Polled,
    Refusal,
    Ticked,
)
from coordinator.membership.tracing import emit, enter, preceded
from kernel.values import replaced

if TYPE_CHECKING:
    from coordinator.membership.classic.holdings import Step

# -- inside a poll ------------------------------------------------------------------------------------------------


def begin_rebalance(member: Member, _: Event, now: int) -> Step:
    """Commit, revoke what may not be kept, then join (Kafka's onJoinPrepare).

    With nothing to revoke, commit all the same: no commit gets through while the JoinGroup is parked.
    """
    begun = replaced(moves.with_poll(member, now), attempt=1)
    emitted: tuple[Effect, ...] = (
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
    )
    leaving = holdings.to_release_before_join(begun)
    if not leaving and not (begun.owned and begun.settings.auto_commit):
        return preceded(moves.seek(begun), emitted)
    stop = (enter(begun, "stop"),) if leaving else ()
    return preceded(holdings.release(replaced(begun, state=MemberState.STOPPING), leaving), (*emitted, *stop))


def first_poll(member: Member, event: Polled, now: int) -> Step:
    """Join if subscribed, even to a pattern that matches no topic yet (as in Kafka)."""
    return (member, ()) if member.topics is None else begin_rebalance(member, event, now)


def stopped(member: Member, _: Event, __: int) -> Step:
    """Join after the revocation, or revoke again if the subscription changed meanwhile."""
    without, emitted = holdings.released(member)
    more = holdings.to_release_before_join(without)
    return preceded(holdings.release(without, more) if more else moves.seek(without), emitted)


def take_over(member: Member, event: Event, now: int) -> Step:
    """Take over the assignment (Kafka's onJoinComplete), after revoking what the leader took away.

    An assignment with topics that are no longer subscribed to is dropped, and the member rejoins.
    """
    if any(tp.topic not in (member.topics or ()) for tp in member.assigned):
        ended = moves.emit_ended(member, "conflict", "subscription changed", "superseded")
        unwanted = replaced(
            member, assigned=holdings.NOTHING, attempt=0, rejoin_needed=False, trigger=moves.SUBSCRIPTION_CHANGED
        )
        return preceded(begin_rebalance(unwanted, event, now), ended)
    taking = moves.with_poll(member, now)
    taken_away = member.owned - member.assigned
    if not taken_away:
        return moves.resume(taking)
    stop = (enter(taking, "stop"),)
    return preceded(holdings.release(replaced(taking, state=MemberState.RELEASING), taken_away), stop)


def stopped_releasing(member: Member, _: Event, __: int) -> Step:
    """Rejoin at once after the revocation, so that the group can reassign the partitions (KIP-429)."""
    without, emitted = holdings.released(member)
    if without.identity is None:
        return replaced(without, state=MemberState.UNJOINED), emitted
    wanted, triggered = moves.want_rejoin(without, "partitions-revoked")
    return preceded(moves.resume(wanted), (*emitted, *triggered))


def resumed(member: Member, _: Event, now: int) -> Step:
    settled = replaced(
        member,
        state=MemberState.REJOIN_NEEDED if member.rejoin_needed else MemberState.STABLE,
        rejoin_needed=False,
        attempt=0,
        timers=replaced(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS),
    )
    return settled, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome="ok"),
        emit(member, "rebalance_ended", outcome="ok", generation=member.generation),
    )


def poll_stable(member: Member, _: Event, now: int) -> Step:
    """Auto-commit in polls only: the application has processed what earlier polls returned."""
    member = moves.with_poll(member, now)
    due = member.timers.commit_ns
    if due is None or due > now or not member.settings.auto_commit or member.identity is None:
        return member, ()
    timers = replaced(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    return replaced(member, timers=timers), (CommitPositions(member.stamp, member.identity, wait=False),)


def poll_elsewhere(member: Member, _: Event, now: int) -> Step:
    return moves.with_poll(member, now), ()


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordinator_found(member: Member, event: CoordinatorFound, now: int) -> Step:
    """Send the next request at once: a heartbeat from a member of a generation, a join from one that is seeking."""
    timers = replaced(member.timers, retry_ns=None, heartbeat_ns=None if member.identity is None else now)
    found = replaced(member, coordinator=event.node_id, finding=False, timers=timers)
    return moves.send_join(found) if found.state is MemberState.SEEKING else (found, ())


def coordinator_unknown(member: Member, _: CoordinatorUnknown, now: int) -> Step:
    waiting = replaced(moves.retry_later(member, now), coordinator=None, finding=False)
    return waiting, ((enter(waiting, "backoff"),) if waiting.state is MemberState.SEEKING else ())


def coordinator_moved(member: Member, event: CoordinatorMoved, now: int) -> Step:
    """Look for the new coordinator. A member in a generation stays in it; a parked request has to be repeated."""
    gone = replaced(member, coordinator=None, timers=replaced(member.timers, heartbeat_sent=False))
    if member.state in moves.BETWEEN_JOIN_AND_SYNC:
        return preceded(moves.rejoin_later(gone, "unavailable", event, now), (AbandonCoordinator(),))
    if member.finding or member.state not in (
        MemberState.STABLE,
        MemberState.REJOIN_NEEDED,
        MemberState.STOPPING,
        MemberState.RELEASING,
        MemberState.RESUMING,
        MemberState.ASSIGNED,
        MemberState.CLOSING,
    ):
        return gone, (AbandonCoordinator(),)
    return replaced(gone, finding=True), (AbandonCoordinator(), FindCoordinator())


def coordinator_loading(member: Member, event: CoordinatorLoading, now: int) -> Step:
    """Repeat a heartbeat after the backoff; after any other request, repeat the join."""
    if event.api != "Heartbeat":
        return moves.rejoin_later(member, "unavailable", event, now)
    timers = replaced(
        member.timers, heartbeat_sent=False, heartbeat_ns=now + member.settings.retry_backoff_ms * NS_PER_MS
    )
    return replaced(member, timers=timers), ()


# -- join and sync ------------------------------------------------------------------------------------------------


def member_id_given(member: Member, event: events.MemberIdGiven, _: int) -> Step:
    return moves.send_join(replaced(member, member_id=event.member_id))


def joined(member: Member, event: events.Joined, now: int) -> Step:
    """Start the session timer, as the coordinator does now; a leader sends heartbeats while it decides."""
    settings = member.settings
    timers = moves.restarted_timers(member, now)
    known = replaced(
        member,
        member_id=event.member_id,
        generation=event.generation,
        protocol=event.protocol,
        traced_id=event.member_id,
        timers=timers,
    )
    started = (emit(known, "member_started", group=settings.group),) if event.member_id != member.traced_id else ()
    if event.leader == event.member_id:
        run = RunAssignor(known.stamp, known.protocol, event.members, skip_assignment=event.skip_assignment)
        return replaced(known, state=MemberState.DECIDING), (*started, enter(known, "decide"), run)
    return preceded(moves.send_sync(known, {}), started)


def decided(member: Member, event: events.Decided, _: int) -> Step:
    return moves.send_sync(member, dict(event.assignments))


def synced(member: Member, event: events.Synced, now: int) -> Step:
    """Receive the assignment. Rejoin if the subscription has changed since JoinGroup.

    The poll deadline stays: a poll that was overdue before the Sync still is.
    """
    rejoin_ns = now + event.delay_ms * NS_PER_MS if event.delay_ms else None
    timers = replaced(moves.restarted_timers(member, now), poll_ns=member.timers.poll_ns, rejoin_ns=rejoin_ns)
    assigned = replaced(member, state=MemberState.ASSIGNED, assigned=event.partitions, timers=timers)
    return (assigned, ()) if member.topics == member.joined else moves.want_rejoin(assigned, moves.SUBSCRIPTION_CHANGED)


def rejoin_between_join_and_sync(member: Member, event: events.RejoinRequested, now: int) -> Step:
    """REBALANCE_IN_PROGRESS: rejoin at once, unless it answers a heartbeat: then the Sync gets it too."""
    if event.api == "Heartbeat":
        return moves.extend_session(member, event.sent_ns), ()
    if event.api == "SyncGroup" and member.settings.loses_all_between_generations:
        lost, emitted = holdings.lose_all(member, replaced(moves.forgotten(member), member_id=member.member_id))
        return preceded(moves.rejoin_at_once(lost, event, now), emitted)
    return moves.rejoin_at_once(member, event, now)


def identity_refused_between_join_and_sync(member: Member, event: Refusal, now: int) -> Step:
    """ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID: rejoin at once; what a cooperative member kept is lost."""
    if not member.member_id:  # there was no id to drop: do not retry in a tight loop
        return moves.rejoin_later(member, "conflict", event, now)
    lost, emitted = holdings.lose_all(member, moves.forget(member, event))
    return preceded(moves.rejoin_at_once(lost, event, now), emitted)


# -- in a generation ------------------------------------------------------------------------------------------------


def heartbeat_answered(member: Member, event: events.HeartbeatAnswered, _: int) -> Step:
    return moves.extend_session(member, event.sent_ns), ()


def rejoin_requested(member: Member, event: events.RejoinRequested, _: int) -> Step:
    """REBALANCE_IN_PROGRESS: what we own stays ours until the next poll revokes it."""
    triggered = moves.extend_session_by(member, event)
    emitted: tuple[Effect, ...] = ()
    if not member.rejoin_needed:  # otherwise there is a trigger already
        triggered = replaced(triggered, trigger="group-rebalancing")
        emitted = (emit(triggered, "rebalance_triggered", trigger=triggered.trigger),)
    if member.state in (MemberState.RELEASING, MemberState.RESUMING):
        return replaced(triggered, rejoin_needed=True), emitted
    if member.state is MemberState.ASSIGNED:  # the assignment is outdated before it was taken over
        ended = moves.emit_ended(triggered, "conflict", event.error, "superseded")
        skipped = replaced(
            triggered, state=MemberState.REJOIN_NEEDED, assigned=holdings.NOTHING, attempt=0, rejoin_needed=False
        )
        return skipped, (*emitted, *ended)
    return replaced(triggered, state=MemberState.REJOIN_NEEDED), emitted


def rejoin_requested_again(member: Member, event: events.RejoinRequested, _: int) -> Step:
    return moves.extend_session_by(member, event), ()


def identity_refused(member: Member, event: Refusal, _: int) -> Step:
    """ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID: others may own our partitions, so they are lost, not revoked."""
    return moves.lose(member, moves.forget(member, event), _trigger(event), event.error)


def identity_refused_while_revoking(member: Member, event: Refusal, _: int) -> Step:
    return moves.forget_while_revoking(member, moves.forget(member, event), _trigger(event), event.error)


def _trigger(event: Refusal) -> str:
    return "generation-outdated" if isinstance(event, GenerationOutdated) else "member-forgotten"


def ticked(member: Member, _: Ticked, now: int) -> Step:
    """Check the deadlines in order of weight: an expired session overrides all others."""
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return moves.expire_session(member)
    if timers.poll_ns is not None and timers.poll_ns <= now and member.identity is not None:
        return moves.leave_overdue(member)
    if member.state is MemberState.STABLE and timers.rejoin_ns is not None and timers.rejoin_ns <= now:
        return moves.want_rejoin(replaced(member, timers=replaced(timers, rejoin_ns=None)), "scheduled")
    if member.coordinator is None:
        return _find_when_due(member, now)
    if timers.heartbeat_ns is None or timers.heartbeat_ns > now or timers.heartbeat_sent:
        return member, ()
    assert member.identity is not None, member
    interval = member.settings.heartbeat_interval_ms * NS_PER_MS
    member = replaced(member, timers=replaced(timers, heartbeat_ns=now + interval, heartbeat_sent=True))
    return member, (SendHeartbeat(member.stamp, moves.identity_of(member)),)


def ticked_closing(member: Member, _: Ticked, now: int) -> Step:
    """The last commit waits for the coordinator, and so does leaving: ConsumerCoordinator.close of 4.1.1."""
    return _find_when_due(member, now) if member.coordinator is None else (member, ())


def _find_when_due(member: Member, now: int) -> Step:
    retry_ns = member.timers.retry_ns
    if member.finding or retry_ns is None or retry_ns > now:
        return member, ()
    return replaced(member, finding=True, timers=replaced(member.timers, retry_ns=None)), (FindCoordinator(),)


def retry(member: Member, _: Ticked, now: int) -> Step:
    """Retry after the backoff; as in STABLE, partitions are kept until the session times out."""
    over = member.timers.session_ns
    if member.owned and over is not None and over <= now:
        return holdings.lose_all(member, moves.forgotten(member))
    at = member.timers.retry_ns
    if member.finding or at is None or at > now:
        return member, ()
    return moves.seek(replaced(member, timers=replaced(member.timers, retry_ns=None)))


def nothing_new(member: Member, _: Event, __: int) -> Step:
    return member, ()
