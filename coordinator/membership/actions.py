"""What a member does about an event: the actions that `table.TABLE` names.

Each takes (member, event, now in monotonic ns) and returns the member after it and the effects, in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership import events, moves
from coordinator.membership.effects import (
    AbandonCoordinator,
    Assign,
    CommitPositions,
    Effect,
    Fail,
    FindCoordinator,
    RunAssignor,
    SendHeartbeat,
)
from coordinator.membership.member import NS_PER_MS, Member, State

if TYPE_CHECKING:
    from coordinator.membership.moves import Step

#: Why a rebalance begins when the application wants other topics.
SUBSCRIPTION_CHANGED = "subscription-changed"

# -- inside a poll ------------------------------------------------------------------------------------------------


def begin_rebalance(member: Member, _: events.Event, now: int) -> Step:
    """What Kafka calls onJoinPrepare, of the eager protocol: commit, then give everything up, then join."""
    begun = replace(moves.with_poll(member, now), attempt=1)
    told: tuple[Effect, ...] = (
        moves.emit(begun, "rebalance_started", trigger=begun.trigger),
        moves.emit(begun, "attempt_started", attempt=1),
    )
    if not begun.owned:
        return moves.preceded(moves.seek(begun), told)
    return replace(begun, state=State.STOPPING), (*told, moves.enter(begun, "stop"), *moves.give_up(begun))


def first_poll(member: Member, event: events.Polled, now: int) -> Step:
    """Whoever subscribes to nothing that exists joins as well: its pattern may match later (as in Kafka)."""
    return (member, ()) if member.topics is None else begin_rebalance(member, event, now)


def stopped(member: Member, _: events.Event, __: int) -> Step:
    """Nothing is delivered any more; if the identity went meanwhile, others had the partitions already."""
    return moves.preceded(moves.seek(replace(member, owned=frozenset())), (moves.tell_given_up(member),))


def take_over(member: Member, event: events.Event, now: int) -> Step:
    """What Kafka calls onJoinComplete: what the leader gave becomes ours, unless the topics are not wanted any more."""
    if any(tp.topic not in (member.topics or ()) for tp in member.assigned):
        ended = moves.tell_ended(member, "conflict", "subscription changed", "superseded")
        unwanted = replace(member, assigned=frozenset(), attempt=0, summoned=False, trigger=SUBSCRIPTION_CHANGED)
        return moves.preceded(begin_rebalance(unwanted, event, now), ended)
    taken = replace(moves.with_poll(member, now), state=State.RESUMING, owned=member.assigned, assigned=frozenset())
    return taken, (
        moves.enter(taken, "resume"),
        moves.emit(
            taken,
            "partitions_assigned",
            partitions=moves.partitions_field(taken.owned),
            all=moves.partitions_field(taken.owned),
            generation=taken.generation,
        ),
        Assign(taken.stamp, taken.owned),
    )


def resumed(member: Member, _: events.Event, now: int) -> Step:
    settled = replace(
        member,
        state=State.SUMMONED if member.summoned else State.STABLE,
        summoned=False,
        attempt=0,
        timers=replace(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS),
    )
    return settled, (
        moves.emit(member, "attempt_ended", attempt=member.attempt, outcome="ok"),
        moves.emit(member, "rebalance_ended", outcome="ok", generation=member.generation),
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
    return waiting, ((moves.enter(waiting, "backoff"),) if waiting.state is State.SEEKING else ())


def coordinator_moved(member: Member, event: events.CoordinatorMoved, now: int) -> Step:
    """Whoever is in a generation looks for the new coordinator and stays in it; a parked request is lost."""
    gone = replace(member, coordinator=None, timers=replace(member.timers, heartbeat_sent=False))
    if member.state in moves.BETWEEN_JOIN_AND_SYNC:
        return moves.preceded(moves.rejoin_later(gone, "unavailable", event.error, now), (AbandonCoordinator(),))
    if member.finding or member.state not in (
        State.STABLE,
        State.SUMMONED,
        State.STOPPING,
        State.RESUMING,
        State.ASSIGNED,
    ):
        return gone, (AbandonCoordinator(),)
    return replace(gone, finding=True), (AbandonCoordinator(), FindCoordinator())


def coordinator_loading(member: Member, event: events.CoordinatorLoading, now: int) -> Step:
    """A heartbeat is only sent again a little later; so is a Join, or the Join that began a Sync."""
    if event.api != "Heartbeat":
        return moves.rejoin_later(member, "unavailable", event.error, now)
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
    started = (
        (moves.emit(known, "member_started", group=settings.group),) if event.member_id != member.introduced else ()
    )
    if event.leader == event.member_id:
        run = RunAssignor(known.stamp, known.protocol, event.members)
        return replace(known, state=State.DECIDING), (*started, moves.enter(known, "decide"), run)
    return moves.preceded(moves.send_sync(known, {}), started)


def decided(member: Member, event: events.Decided, _: int) -> Step:
    return moves.send_sync(member, dict(event.assignments))


def synced(member: Member, event: events.Synced, now: int) -> Step:
    """A poll that is overdue counts from before the Sync. What changed since the Join was sent needs another."""
    timers = replace(moves.in_session(member, now), poll_ns=member.timers.poll_ns)
    assigned = replace(member, state=State.ASSIGNED, assigned=event.partitions, timers=timers)
    return (assigned, ()) if member.topics == member.joined else moves.want_rejoin(assigned, SUBSCRIPTION_CHANGED)


def rejoin_between(member: Member, event: events.RejoinRequested, now: int) -> Step:
    """27 to a Join or Sync: again at once. To a heartbeat it says nothing new: the Sync will tell."""
    if event.api == "Heartbeat":
        return moves.in_contact(member, event.sent_ns), ()
    return moves.rejoin_at_once(member, event, now)


def identity_refused_between(member: Member, event: events.Refusal, now: int) -> Step:
    if not member.member_id:  # nothing was claimed that could be given up: do not ask in a circle
        return moves.rejoin_later(member, "conflict", event.error, now)
    return moves.rejoin_at_once(moves.forget(member, event), event, now)


# -- in a generation ------------------------------------------------------------------------------------------------


def heartbeat_answered(member: Member, event: events.HeartbeatAnswered, _: int) -> Step:
    return moves.in_contact(member, event.sent_ns), ()


def summoned(member: Member, event: events.RejoinRequested, _: int) -> Step:
    """27: what we own stays ours until the next poll has revoked it."""
    called = replace(moves.contact(member, event), trigger="group-rebalancing")
    told = moves.emit(called, "rebalance_triggered", trigger=called.trigger)
    if member.state is State.RESUMING:
        return replace(called, summoned=True), (told,)
    if member.state is State.ASSIGNED:  # it is outdated before it was taken over
        ended = moves.tell_ended(called, "conflict", event.error, "superseded")
        return replace(called, state=State.SUMMONED, assigned=frozenset(), attempt=0), (told, *ended)
    return replace(called, state=State.SUMMONED), (told,)


def still_summoned(member: Member, event: events.RejoinRequested, _: int) -> Step:
    return moves.contact(member, event), ()


def identity_refused(member: Member, event: events.Refusal, _: int) -> Step:
    """22 or 25: others may own our partitions already, so they are lost, not revoked."""
    trigger = "generation-outdated" if isinstance(event, events.GenerationOutdated) else "member-forgotten"
    return moves.lose(member, moves.forget(member, event), trigger, event.error)


def identity_refused_while_giving_up(member: Member, event: events.Refusal, _: int) -> Step:
    return moves.forget(member, event), ()


def ticked(member: Member, _: events.Ticked, now: int) -> Step:
    """Deadlines by their weight: a session that is over makes everything else void."""
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return moves.expire_session(member)
    if timers.poll_ns is not None and timers.poll_ns <= now and member.identity is not None:
        return moves.leave_overdue(member)
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
    at = member.timers.retry_ns
    if member.finding or at is None or at > now:
        return member, ()
    return moves.seek(replace(member, timers=replace(member.timers, retry_ns=None)))


# -- what the application or the metadata want ---------------------------------------------------------------------


def subscription_changed(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    """A Join that is still to be sent says so by itself; one that was sent is seen to be outdated at its Sync."""
    changed = replace(member, topics=event.topics)
    return changed, ()


def subscription_changed_within(member: Member, event: events.SubscriptionChanged, _: int) -> Step:
    changed = replace(member, topics=event.topics)
    return (changed, ()) if event.topics == member.topics else moves.want_rejoin(changed, SUBSCRIPTION_CHANGED)


def rejoin_wanted(member: Member, event: events.RejoinWanted, _: int) -> Step:
    return moves.want_rejoin(member, event.trigger)


def nothing_new(member: Member, _: events.Event, __: int) -> Step:
    return member, ()


def unsubscribed(member: Member, _: events.Unsubscribed, __: int) -> Step:
    """As a close, except that a later subscription begins anew."""
    leaving = replace(member, topics=None, attempt=0, summoned=False, trigger="subscribe")
    ended = moves.tell_ended(member, "error", "unsubscribed", "superseded") if member.attempt else ()
    if member.owned:
        return replace(leaving, state=State.UNSUBSCRIBING), (*ended, *moves.give_up(leaving))
    return moves.preceded(moves.part(leaving), ended)


def unsubscribed_stopping(member: Member, _: events.Unsubscribed, __: int) -> Step:
    """The revocation that is under way serves the leaving as well."""
    leaving = replace(member, state=State.UNSUBSCRIBING, topics=None, attempt=0, trigger="subscribe")
    return leaving, moves.tell_ended(member, "error", "unsubscribed", "superseded")


def unsubscribed_stopped(member: Member, _: events.Stopped, __: int) -> Step:
    return moves.preceded(moves.part(replace(member, owned=frozenset())), (moves.tell_given_up(member),))


# -- the end ------------------------------------------------------------------------------------------------------


def refused(member: Member, event: events.Refused, _: int) -> Step:
    """An error that does not pass: FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, ..."""
    failed = replace(moves.forgotten(member), state=State.FAILED, owned=frozenset(), assigned=frozenset(), attempt=0)
    return failed, (
        *moves.tell_lost(member),
        *(moves.tell_ended(member, "error", event.error, "failed") if member.attempt else ()),
        moves.emit(member, "member_failed", error=f"{event.api}: {event.error}"),
        Fail(event.api, event.error),
    )


def close(member: Member, _: events.Closed, __: int) -> Step:
    closing = replace(member, state=State.CLOSING, attempt=0)
    ended = moves.tell_ended(member, "error", "closed", "superseded") if member.attempt else ()
    if member.owned:
        return closing, (*ended, *moves.give_up(closing))
    return moves.preceded(moves.leave_group(closing), ended)


def close_stopping(member: Member, _: events.Closed, __: int) -> Step:
    """The revocation that is under way serves the closing as well."""
    ended = moves.tell_ended(member, "error", "closed", "superseded") if member.attempt else ()
    return replace(member, state=State.CLOSING, attempt=0), ended


def leave(member: Member, _: events.Stopped, __: int) -> Step:
    return moves.preceded(moves.leave_group(replace(member, owned=frozenset())), (moves.tell_given_up(member),))
