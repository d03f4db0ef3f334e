"""What a member does about an event: the actions that `table.TABLE` names.

Each takes (member, event, now in monotonic ns) and returns the member after it and the effects, in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership import events
from coordinator.membership.classic import holdings, moves
from coordinator.membership.classic.member import NS_PER_MS, Member, State
from coordinator.membership.effects import (
    AbandonCoordinator,
    CommitPositions,
    Effect,
    FindCoordinator,
    RunAssignor,
    SendHeartbeat,
)
from coordinator.membership.tracing import emit, enter, preceded

if TYPE_CHECKING:
    from coordinator.membership.classic.holdings import Step

# -- inside a poll ------------------------------------------------------------------------------------------------


def begin_rebalance(member: Member, _: events.Event, now: int) -> Step:
    """What Kafka calls onJoinPrepare: commit, give up what may not be kept, then join.

    Where there is nothing to give up, what was handed out is committed all the same before the Join is parked.
    """
    begun = replace(moves.with_poll(member, now), attempt=1)
    told: tuple[Effect, ...] = (
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
    )
    leaving = holdings.to_release_before_join(begun)
    if not leaving and not (begun.owned and begun.settings.auto_commit):
        return preceded(moves.seek(begun), told)
    stop = (enter(begun, "stop"),) if leaving else ()
    return preceded(holdings.release(replace(begun, state=State.STOPPING), leaving), (*told, *stop))


def first_poll(member: Member, event: events.Polled, now: int) -> Step:
    """Whoever subscribes to nothing that exists joins as well: its pattern may match later (as in Kafka)."""
    return (member, ()) if member.topics is None else begin_rebalance(member, event, now)


def stopped(member: Member, _: events.Event, __: int) -> Step:
    """What had to be given up before the join is; the subscription may have changed once more meanwhile."""
    without, told = holdings.released(member)
    more = holdings.to_release_before_join(without)
    return preceded(holdings.release(without, more) if more else moves.seek(without), told)


def take_over(member: Member, event: events.Event, now: int) -> Step:
    """What Kafka calls onJoinComplete: what the leader gave becomes ours, unless the topics are not wanted any more.

    What the leader took away is given up first.
    """
    if any(tp.topic not in (member.topics or ()) for tp in member.assigned):
        ended = moves.tell_ended(member, "conflict", "subscription changed", "superseded")
        unwanted = replace(
            member, assigned=holdings.NOTHING, attempt=0, summoned=False, trigger=moves.SUBSCRIPTION_CHANGED
        )
        return preceded(begin_rebalance(unwanted, event, now), ended)
    taking = moves.with_poll(member, now)
    taken_away = member.owned - member.assigned
    if not taken_away:
        return moves.resume(taking)
    stop = (enter(taking, "stop"),)
    return preceded(holdings.release(replace(taking, state=State.RELEASING), taken_away), stop)


def stopped_releasing(member: Member, _: events.Event, __: int) -> Step:
    """What was given up waits for its new owner: another round has to follow at once (KIP-429)."""
    without, told = holdings.released(member)
    if without.identity is None:
        return replace(without, state=State.UNJOINED), told
    wanted, triggered = moves.want_rejoin(without, "partitions-revoked")
    return preceded(moves.resume(wanted), (*told, *triggered))


def resumed(member: Member, _: events.Event, now: int) -> Step:
    settled = replace(
        member,
        state=State.SUMMONED if member.summoned else State.STABLE,
        summoned=False,
        attempt=0,
        timers=replace(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS),
    )
    return settled, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome="ok"),
        emit(member, "rebalance_ended", outcome="ok", generation=member.generation),
    )


def poll_stable(member: Member, _: events.Event, now: int) -> Step:
    """Auto-commit happens in polls only: what an earlier poll handed out has been dealt with by now."""
    member = moves.with_poll(member, now)
    due = member.timers.commit_ns
    if not member.settings.auto_commit or member.identity is None or due is None or due > now:
        return member, ()
    timers = replace(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    return replace(member, timers=timers), (CommitPositions(member.stamp, member.identity, wait=False),)


def poll_elsewhere(member: Member, _: events.Event, now: int) -> Step:
    return moves.with_poll(member, now), ()


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordinator_found(member: Member, event: events.CoordinatorFound, now: int) -> Step:
    """It is asked at once whether it knows us, or to let us in."""
    timers = replace(member.timers, retry_ns=None, heartbeat_ns=None if member.identity is None else now)
    found = replace(member, coordinator=event.node_id, finding=False, timers=timers)
    return moves.send_join(found) if found.state is State.SEEKING else (found, ())


def coordinator_unknown(member: Member, _: events.CoordinatorUnknown, now: int) -> Step:
    waiting = replace(moves.retry_later(member, now), coordinator=None, finding=False)
    return waiting, ((enter(waiting, "backoff"),) if waiting.state is State.SEEKING else ())


def coordinator_moved(member: Member, event: events.CoordinatorMoved, now: int) -> Step:
    """Whoever is in a generation looks for the new coordinator and stays in it; a parked request is lost."""
    gone = replace(member, coordinator=None, timers=replace(member.timers, heartbeat_sent=False))
    if member.state in moves.BETWEEN_JOIN_AND_SYNC:
        return preceded(moves.rejoin_later(gone, "unavailable", event, now), (AbandonCoordinator(),))
    if member.finding or member.state not in (
        State.STABLE,
        State.SUMMONED,
        State.STOPPING,
        State.RELEASING,
        State.RESUMING,
        State.ASSIGNED,
    ):
        return gone, (AbandonCoordinator(),)
    return replace(gone, finding=True), (AbandonCoordinator(), FindCoordinator())


def coordinator_loading(member: Member, event: events.CoordinatorLoading, now: int) -> Step:
    """A heartbeat is only sent again a little later; so is a Join, or the Join that began a Sync."""
    if event.api != "Heartbeat":
        return moves.rejoin_later(member, "unavailable", event, now)
    timers = replace(
        member.timers, heartbeat_sent=False, heartbeat_ns=now + member.settings.retry_backoff_ms * NS_PER_MS
    )
    return replace(member, timers=timers), ()


# -- join and sync ------------------------------------------------------------------------------------------------


def member_id_given(member: Member, event: events.MemberIdGiven, _: int) -> Step:
    return moves.send_join(replace(member, member_id=event.member_id))


def joined(member: Member, event: events.Joined, now: int) -> Step:
    """The coordinator starts our session timer now; a leader's heartbeats begin before it has decided."""
    settings = member.settings
    timers = moves.in_session(member, now)
    known = replace(
        member,
        member_id=event.member_id,
        generation=event.generation,
        protocol=event.protocol,
        introduced=event.member_id,
        timers=timers,
    )
    started = (emit(known, "member_started", group=settings.group),) if event.member_id != member.introduced else ()
    if event.leader == event.member_id:
        run = RunAssignor(known.stamp, known.protocol, event.members, skip_assignment=event.skip_assignment)
        return replace(known, state=State.DECIDING), (*started, enter(known, "decide"), run)
    return preceded(moves.send_sync(known, {}), started)


def decided(member: Member, event: events.Decided, _: int) -> Step:
    return moves.send_sync(member, dict(event.assignments))


def synced(member: Member, event: events.Synced, now: int) -> Step:
    """A poll that is overdue counts from before the Sync. What changed since the Join was sent needs another."""
    rejoin_ns = now + event.delay_ms * NS_PER_MS if event.delay_ms else None
    timers = replace(moves.in_session(member, now), poll_ns=member.timers.poll_ns, rejoin_ns=rejoin_ns)
    assigned = replace(member, state=State.ASSIGNED, assigned=event.partitions, timers=timers)
    return (assigned, ()) if member.topics == member.joined else moves.want_rejoin(assigned, moves.SUBSCRIPTION_CHANGED)


def rejoin_between(member: Member, event: events.RejoinRequested, now: int) -> Step:
    """27 to a Join or Sync: again at once. To a heartbeat it says nothing new: the Sync will tell."""
    if event.api == "Heartbeat":
        return moves.in_contact(member, event.sent_ns), ()
    return moves.rejoin_at_once(member, event, now)


def identity_refused_between(member: Member, event: events.Refusal, now: int) -> Step:
    """22 or 25 to a Join or Sync: again at once; what was kept (by a cooperative member) is lost."""
    if not member.member_id:  # nothing was claimed that could be given up: do not ask in a circle
        return moves.rejoin_later(member, "conflict", event, now)
    lost, told = holdings.lose_all(member, moves.forget(member, event))
    return preceded(moves.rejoin_at_once(lost, event, now), told)


# -- in a generation ------------------------------------------------------------------------------------------------


def heartbeat_answered(member: Member, event: events.HeartbeatAnswered, _: int) -> Step:
    return moves.in_contact(member, event.sent_ns), ()


def summoned(member: Member, event: events.RejoinRequested, _: int) -> Step:
    """27: what we own stays ours until the next poll has revoked it."""
    called = moves.contact(member, event)
    told: tuple[Effect, ...] = ()
    if not member.summoned:  # otherwise it has a reason already
        called = replace(called, trigger="group-rebalancing")
        told = (emit(called, "rebalance_triggered", trigger=called.trigger),)
    if member.state in (State.RELEASING, State.RESUMING):
        return replace(called, summoned=True), told
    if member.state is State.ASSIGNED:  # it is outdated before it was taken over
        ended = moves.tell_ended(called, "conflict", event.error, "superseded")
        skipped = replace(called, state=State.SUMMONED, assigned=holdings.NOTHING, attempt=0, summoned=False)
        return skipped, (*told, *ended)
    return replace(called, state=State.SUMMONED), told


def still_summoned(member: Member, event: events.RejoinRequested, _: int) -> Step:
    return moves.contact(member, event), ()


def identity_refused(member: Member, event: events.Refusal, _: int) -> Step:
    """22 or 25: others may own our partitions already, so they are lost, not revoked."""
    return moves.lose(member, moves.forget(member, event), _trigger(event), event.error)


def identity_refused_while_giving_up(member: Member, event: events.Refusal, _: int) -> Step:
    return moves.forget_giving_up(member, moves.forget(member, event), _trigger(event), event.error)


def _trigger(event: events.Refusal) -> str:
    return "generation-outdated" if isinstance(event, events.GenerationOutdated) else "member-forgotten"


def ticked(member: Member, _: events.Ticked, now: int) -> Step:
    """Deadlines by their weight: a session that is over makes everything else void."""
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return moves.expire_session(member)
    if timers.poll_ns is not None and timers.poll_ns <= now and member.identity is not None:
        return moves.leave_overdue(member)
    if member.state is State.STABLE and timers.rejoin_ns is not None and timers.rejoin_ns <= now:
        return moves.want_rejoin(replace(member, timers=replace(timers, rejoin_ns=None)), "scheduled")
    effects: list[Effect] = []
    if member.coordinator is None:
        if not member.finding and timers.retry_ns is not None and timers.retry_ns <= now:
            member = replace(member, finding=True, timers=replace(timers, retry_ns=None))
            effects.append(FindCoordinator())
    elif timers.heartbeat_ns is not None and timers.heartbeat_ns <= now and not timers.heartbeat_sent:
        assert member.identity is not None, member
        interval = member.settings.heartbeat_interval_ms * NS_PER_MS
        member = replace(member, timers=replace(timers, heartbeat_ns=now + interval, heartbeat_sent=True))
        effects.append(SendHeartbeat(member.stamp, moves.identity_of(member)))
    return member, tuple(effects)


def retry(member: Member, _: events.Ticked, now: int) -> Step:
    """Without a coordinator what is kept is kept until the session ends, as in STABLE."""
    over = member.timers.session_ns
    if member.owned and over is not None and over <= now:
        return holdings.lose_all(member, moves.forgotten(member))
    at = member.timers.retry_ns
    if member.finding or at is None or at > now:
        return member, ()
    return moves.seek(replace(member, timers=replace(member.timers, retry_ns=None)))


def nothing_new(member: Member, _: events.Event, __: int) -> Step:
    return member, ()
