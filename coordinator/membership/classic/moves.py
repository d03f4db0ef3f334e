"""Building blocks of a member's actions: find the coordinator, join, retry, forget, lose, leave.

Each takes a member and returns the new member, with effects where there are any; `emit_*` return trace events only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership.classic import holdings
from coordinator.membership.classic.effects import Assign, SendJoin, SendLeave, SendSync
from coordinator.membership.classic.member import NO_GENERATION, NS_PER_MS, Member, MemberState, MemberTimers
from coordinator.membership.effects import AbandonCoordinator, Effect, FindCoordinator, Identity
from coordinator.membership.events import GenerationOutdated, Refusal
from coordinator.membership.tracing import emit, enter, preceded
from kernel.values import replaced

if TYPE_CHECKING:
    from coordinator.membership.classic.holdings import Step

#: The trigger of a rebalance after the application changed its topics.
SUBSCRIPTION_CHANGED = "subscription-changed"

#: States in which the member's part of the running rebalance can simply be retried.
BETWEEN_JOIN_AND_SYNC = frozenset({MemberState.JOINING, MemberState.DECIDING, MemberState.SYNCING})

#: States with a running revocation, which continues even if the identity is lost.
REVOKING = frozenset({MemberState.STOPPING, MemberState.RELEASING, MemberState.UNSUBSCRIBING, MemberState.CLOSING})


def with_poll(member: Member, now: int) -> Member:
    poll_ns = now + member.settings.max_poll_interval_ms * NS_PER_MS
    return replaced(member, timers=replaced(member.timers, poll_ns=poll_ns))


def identity_of(member: Member) -> Identity:
    return Identity(member.member_id, member.generation)


def seek(member: Member) -> Step:
    """Join, or find the coordinator first; both belong to the join phase of an attempt."""
    seeking = replaced(member, state=MemberState.SEEKING)
    phase = enter(seeking, "join")
    if seeking.coordinator is not None:
        return preceded(send_join(seeking), (phase,))
    if seeking.finding:
        return seeking, (phase,)
    return replaced(seeking, finding=True), (phase, FindCoordinator())


def send_join(member: Member) -> Step:
    """Send JoinGroup. While it is parked there are no heartbeats, session timer or poll limit: see `member.ALIVE`."""
    joining = replaced(
        member,
        state=MemberState.JOINING,
        stamp=member.stamp + 1,
        joined=member.topics,
        rejoin_needed=False,
        timers=while_parked(member),
    )
    return joining, (SendJoin(joining.stamp, joining.member_id),)


def send_sync(member: Member, assignments: dict[str, bytes]) -> Step:
    sync = SendSync(member.stamp, identity_of(member), member.protocol, assignments)
    syncing = replaced(member, state=MemberState.SYNCING, timers=while_parked(member))
    return syncing, (enter(member, "claim"), sync)


def while_parked(member: Member) -> MemberTimers:
    """Keep the session deadline, in case the request fails, but only if there is something to lose."""
    return MemberTimers(poll_ns=member.timers.poll_ns, session_ns=member.timers.session_ns if member.owned else None)


def next_attempt(member: Member, outcome: str, error: str) -> Step:
    again = replaced(member, attempt=member.attempt + 1)
    return again, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(again, "attempt_started", attempt=again.attempt),
    )


def rejoin_at_once(member: Member, event: Refusal, _: int) -> Step:
    again, emitted = next_attempt(member, "conflict", event.error)
    return preceded(seek(again), emitted)


def rejoin_later(member: Member, outcome: str, event: Refusal, now: int) -> Step:
    """Retry after the backoff.

    A request that failed late was parked until then and counted as a sign of life: restart the session timer.
    """
    again, emitted = next_attempt(member, outcome, event.error)
    timers = while_parked(again)
    settings = again.settings
    if again.owned and now - event.sent_ns >= settings.heartbeat_interval_ms * NS_PER_MS:
        timers = replaced(timers, session_ns=now + settings.session_timeout_ms * NS_PER_MS)
    waiting = retry_later(replaced(again, state=MemberState.SEEKING, timers=timers), now)
    return waiting, (*emitted, enter(waiting, "backoff"))


def retry_later(member: Member, now: int) -> Member:
    return replaced(member, timers=replaced(member.timers, retry_ns=now + member.settings.retry_backoff_ms * NS_PER_MS))


def extend_session(member: Member, sent_ns: int) -> Member:
    """Extend the session after a heartbeat; the response to an older request never shortens it."""
    session_ns = max(sent_ns + member.settings.session_timeout_ms * NS_PER_MS, member.timers.session_ns or 0)
    return replaced(member, timers=replaced(member.timers, session_ns=session_ns, heartbeat_sent=False))


def restarted_timers(member: Member, now: int) -> MemberTimers:
    """The coordinator has just (re)started its session timer for us: restart ours."""
    settings = member.settings
    return MemberTimers(
        heartbeat_ns=now + settings.heartbeat_interval_ms * NS_PER_MS,
        session_ns=now + settings.session_timeout_ms * NS_PER_MS,
        poll_ns=now + settings.max_poll_interval_ms * NS_PER_MS,
    )


def extend_session_by(member: Member, event: Refusal) -> Member:
    """REBALANCE_IN_PROGRESS resets the coordinator's session timer for a heartbeat, not necessarily for a commit."""
    return extend_session(member, event.sent_ns) if event.api == "Heartbeat" else member


def forget(member: Member, event: Refusal) -> Member:
    """Drop the generation; drop the member id only when the group does not know it (KAFKA-13419)."""
    keeps_id = isinstance(event, GenerationOutdated) and not member.settings.forgets_id_with_generation
    return replaced(forgotten(member), member_id=member.member_id if keeps_id else "")


def forgotten(member: Member) -> Member:
    return replaced(
        member,
        member_id="",
        generation=NO_GENERATION,
        stamp=member.stamp + 1,
        rejoin_needed=False,
        timers=MemberTimers(poll_ns=member.timers.poll_ns, retry_ns=member.timers.retry_ns),
    )


def lose(before: Member, after: Member, trigger: str, error: str) -> Step:
    gone = replaced(
        after, state=MemberState.UNJOINED, assigned=frozenset(), attempt=0, trigger=trigger, rejoin_needed=False
    )
    lost, emitted = holdings.lose_all(before, gone)
    return lost, (
        *emitted,
        emit(before, "rebalance_triggered", trigger=trigger),
        *(emit_ended(before, "conflict", error, "superseded") if before.attempt else ()),
    )


def expire_session(member: Member) -> Step:
    """No contact with the coordinator for session.timeout.ms: it has reassigned our partitions by now."""
    gone = replaced(forgotten(member), coordinator=None)
    if member.state in REVOKING:
        return preceded(
            forget_while_revoking(member, gone, "session-expired", "session expired"), (AbandonCoordinator(),)
        )
    if member.state in BETWEEN_JOIN_AND_SYNC:
        lost, emitted = holdings.lose_all(member, gone)
        again, emitted_again = next_attempt(lost, "unavailable", "session expired")
        return preceded(seek(again), (AbandonCoordinator(), *emitted, *emitted_again))
    return preceded(lose(member, gone, "session-expired", "session expired"), (AbandonCoordinator(),))


def forget_while_revoking(before: Member, after: Member, trigger: str, error: str) -> Step:
    """Drop the identity during a revocation, which continues; lose at once whatever it does not cover.

    A revocation before a join also continues the rebalance. One after a sync ends it: its assignment is void.
    """
    without, emitted = holdings.lose_kept(before, after)
    if before.state is not MemberState.RELEASING:
        return without, emitted
    ended = replaced(without, assigned=frozenset(), attempt=0, trigger=trigger)
    return ended, (
        *emitted,
        emit(before, "rebalance_triggered", trigger=trigger),
        *emit_ended(before, "conflict", error, "superseded"),
    )


def leave_overdue(member: Member) -> Step:
    """No poll for max.poll.interval.ms: leave, so that others can have the partitions (KIP-62)."""
    leave_now = send_leave(member)
    if member.state in REVOKING:
        return preceded(forget_while_revoking(member, forgotten(member), "poll-overdue", "poll overdue"), leave_now)
    return preceded(lose(member, forgotten(member), "poll-overdue", "poll overdue"), leave_now)


def resume(member: Member) -> Step:
    """Take over the new partitions, after everything that is no longer ours was revoked."""
    added = member.assigned - member.owned
    taken = replaced(member, state=MemberState.RESUMING, owned=member.assigned, assigned=frozenset())
    return taken, (enter(taken, "resume"), holdings.emit_assigned(taken, added), Assign(taken.stamp, added))


def want_rejoin(member: Member, trigger: str) -> Step:
    """Let the next poll after the current work begin a rebalance."""
    if member.rejoin_needed:
        return member, ()
    triggered = replaced(member, trigger=trigger)
    emitted = (emit(triggered, "rebalance_triggered", trigger=trigger),)
    if member.state is not MemberState.STABLE:
        return replaced(triggered, rejoin_needed=True), emitted
    return replaced(triggered, state=MemberState.REJOIN_NEEDED), emitted


def send_leave(member: Member) -> tuple[Effect, ...]:
    """Leave, unless the member is static: a static member stays in the group until its session times out (KIP-345)."""
    if not member.member_id or member.coordinator is None or member.settings.instance_id is not None:
        return ()
    return (SendLeave(member.member_id),)


def emit_ended(member: Member, outcome: str, error: str, rebalance: str) -> tuple[Effect, ...]:
    return (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(member, "rebalance_ended", outcome=rebalance),
    )
