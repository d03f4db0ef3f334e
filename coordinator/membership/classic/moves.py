"""The moves that a member's actions are made of: seek, join, try again, forget, lose, leave.

A move takes the member as it is and returns what it becomes, with effects where there are any; names that begin
with `tell` return trace events only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership import events
from coordinator.membership.classic import holdings
from coordinator.membership.classic.member import NO_GENERATION, NS_PER_MS, Member, State, Timers
from coordinator.membership.effects import (
    AbandonCoordinator,
    Assign,
    Effect,
    FindCoordinator,
    Identity,
    SendJoin,
    SendLeave,
    SendSync,
)
from coordinator.membership.tracing import emit, enter, preceded

if TYPE_CHECKING:
    from coordinator.membership.classic.holdings import Step

#: Why a rebalance begins when the application wants other topics.
SUBSCRIPTION_CHANGED = "subscription-changed"

#: In these a rebalance is under way and this member's part of it can simply be tried again.
BETWEEN_JOIN_AND_SYNC = frozenset({State.JOINING, State.DECIDING, State.SYNCING})

#: In these a revocation is under way: an identity that goes does not end it.
GIVING_UP = frozenset({State.STOPPING, State.RELEASING, State.UNSUBSCRIBING, State.CLOSING})


def with_poll(member: Member, now: int) -> Member:
    return replace(
        member, timers=replace(member.timers, poll_ns=now + member.settings.max_poll_interval_ms * NS_PER_MS)
    )


def identity_of(member: Member) -> Identity:
    return Identity(member.member_id, member.generation)


def seek(member: Member) -> Step:
    """Join, or look for the coordinator first; both are the join phase of an attempt."""
    seeking = replace(member, state=State.SEEKING)
    phase = enter(seeking, "join")
    if seeking.coordinator is not None:
        return preceded(send_join(seeking), (phase,))
    if seeking.finding:
        return seeking, (phase,)
    return replace(seeking, finding=True), (phase, FindCoordinator())


def send_join(member: Member) -> Step:
    """No heartbeat, no session timer and no poll limit while it is parked: see `member.ALIVE`."""
    joining = replace(
        member,
        state=State.JOINING,
        stamp=member.stamp + 1,
        joined=member.topics,
        summoned=False,
        timers=while_parked(member),
    )
    return joining, (SendJoin(joining.stamp, joining.member_id),)


def send_sync(member: Member, assignments: dict[str, bytes]) -> Step:
    sync = SendSync(member.stamp, identity_of(member), member.protocol, assignments)
    syncing = replace(member, state=State.SYNCING, timers=while_parked(member))
    return syncing, (enter(member, "claim"), sync)


def while_parked(member: Member) -> Timers:
    """The session's end is kept for when the request fails, and only by who has something to lose."""
    return Timers(poll_ns=member.timers.poll_ns, session_ns=member.timers.session_ns if member.owned else None)


def next_attempt(member: Member, outcome: str, error: str) -> Step:
    again = replace(member, attempt=member.attempt + 1)
    return again, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(again, "attempt_started", attempt=again.attempt),
    )


def rejoin_at_once(member: Member, event: events.Refusal, _: int) -> Step:
    again, told = next_attempt(member, "conflict", event.error)
    return preceded(seek(again), told)


def rejoin_later(member: Member, outcome: str, event: events.Refusal, now: int) -> Step:
    """Until the request failed it may have been parked, which counts as alive; one that failed soon was not."""
    again, told = next_attempt(member, outcome, event.error)
    timers = while_parked(again)
    settings = again.settings
    if again.owned and now - event.sent_ns >= settings.heartbeat_interval_ms * NS_PER_MS:
        timers = replace(timers, session_ns=now + settings.session_timeout_ms * NS_PER_MS)
    waiting = retry_later(replace(again, state=State.SEEKING, timers=timers), now)
    return waiting, (*told, enter(waiting, "backoff"))


def retry_later(member: Member, now: int) -> Member:
    return replace(member, timers=replace(member.timers, retry_ns=now + member.settings.retry_backoff_ms * NS_PER_MS))


def in_contact(member: Member, sent_ns: int) -> Member:
    """The answer to an older request never brings the end of the session nearer."""
    session_ns = max(sent_ns + member.settings.session_timeout_ms * NS_PER_MS, member.timers.session_ns or 0)
    return replace(member, timers=replace(member.timers, session_ns=session_ns, heartbeat_sent=False))


def in_session(member: Member, now: int) -> Timers:
    """As of now the coordinator has (re)started our session timer."""
    settings = member.settings
    return Timers(
        heartbeat_ns=now + settings.heartbeat_interval_ms * NS_PER_MS,
        session_ns=now + settings.session_timeout_ms * NS_PER_MS,
        poll_ns=now + settings.max_poll_interval_ms * NS_PER_MS,
    )


def contact(member: Member, event: events.Refusal) -> Member:
    """A 27 to a heartbeat has reset the coordinator's session timer, one to a commit need not have."""
    return in_contact(member, event.sent_ns) if event.api == "Heartbeat" else member


def forget(member: Member, event: events.Refusal) -> Member:
    """The generation goes; the member id only when the group does not know it (KAFKA-13419)."""
    keeps_id = isinstance(event, events.GenerationOutdated)
    return replace(forgotten(member), member_id=member.member_id if keeps_id else "")


def forgotten(member: Member) -> Member:
    return replace(
        member,
        member_id="",
        generation=NO_GENERATION,
        stamp=member.stamp + 1,
        summoned=False,
        timers=Timers(poll_ns=member.timers.poll_ns, retry_ns=member.timers.retry_ns),
    )


def lose(before: Member, after: Member, trigger: str, error: str) -> Step:
    gone = replace(after, state=State.UNJOINED, assigned=frozenset(), attempt=0, trigger=trigger, summoned=False)
    lost, told = holdings.lose_all(before, gone)
    return lost, (
        *told,
        emit(before, "rebalance_triggered", trigger=trigger),
        *(tell_ended(before, "conflict", error, "superseded") if before.attempt else ()),
    )


def expire_session(member: Member) -> Step:
    """The coordinator has not been heard of for session.timeout.ms: by now it has given our partitions away."""
    gone = replace(forgotten(member), coordinator=None)
    if member.state in GIVING_UP:
        return preceded(forget_giving_up(member, gone, "session-expired", "session expired"), (AbandonCoordinator(),))
    if member.state in BETWEEN_JOIN_AND_SYNC:
        lost, told = holdings.lose_all(member, gone)
        again, told_again = next_attempt(lost, "unavailable", "session expired")
        return preceded(seek(again), (AbandonCoordinator(), *told, *told_again))
    return preceded(lose(member, gone, "session-expired", "session expired"), (AbandonCoordinator(),))


def forget_giving_up(before: Member, after: Member, trigger: str, error: str) -> Step:
    """The identity goes while a revocation is under way: that goes on, what it does not cover is lost at once.

    Before a join the rebalance goes on as well. After a sync it is void, and so it is when the member is leaving.
    """
    without, told = holdings.lose_kept(before, after)
    if before.state is not State.RELEASING:
        return without, told
    ended = replace(without, assigned=frozenset(), attempt=0, trigger=trigger)
    return ended, (
        *told,
        emit(before, "rebalance_triggered", trigger=trigger),
        *tell_ended(before, "conflict", error, "superseded"),
    )


def leave_overdue(member: Member) -> Step:
    """max.poll.interval.ms has passed without a poll: leave, so that others can have the partitions (KIP-62)."""
    leave_now = send_leave(member)
    if member.state in GIVING_UP:
        return preceded(forget_giving_up(member, forgotten(member), "poll-overdue", "poll overdue"), leave_now)
    return preceded(lose(member, forgotten(member), "poll-overdue", "poll overdue"), leave_now)


def resume(member: Member) -> Step:
    """Everything that is not ours any more has been given up: take over what is new."""
    added = member.assigned - member.owned
    taken = replace(member, state=State.RESUMING, owned=member.assigned, assigned=frozenset())
    return taken, (enter(taken, "resume"), holdings.tell_taken(taken, added), Assign(taken.stamp, added))


def want_rejoin(member: Member, trigger: str) -> Step:
    """The next poll begins a rebalance, once what is under way is done."""
    if member.summoned:
        return member, ()
    called = replace(member, trigger=trigger)
    told = (emit(called, "rebalance_triggered", trigger=trigger),)
    if member.state is not State.STABLE:
        return replace(called, summoned=True), told
    return replace(called, state=State.SUMMONED), told


def send_leave(member: Member) -> tuple[Effect, ...]:
    """A static member never says that it goes: its place is kept until its session ends (KIP-345)."""
    if not member.member_id or member.coordinator is None or member.settings.instance_id is not None:
        return ()
    return (SendLeave(member.member_id),)


def tell_ended(member: Member, outcome: str, error: str, rebalance: str) -> tuple[Effect, ...]:
    return (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(member, "rebalance_ended", outcome=rebalance),
    )
