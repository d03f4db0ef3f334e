"""Building blocks of a member's actions: register, await a command, lose, commit and revoke.

Each takes a member and returns the new member, with effects where there are any; `emit_*` return trace events only.
"""

from __future__ import annotations

from coordinator.membership.effects import CommitPositions, Effect, Emit, FindCoordinator, Lose, Revoke
from coordinator.membership.server.effects import CancelAwait, Register, SendAwaitCommand
from coordinator.membership.server.member import (
    AWAITING,
    NO_GENERATION,
    NS_PER_MS,
    ServerMember,
    ServerMemberState,
    ServerMemberTimers,
)
from coordinator.membership.tracing import emit, enter
from kernel.values import partitions_field, replaced

Step = tuple[ServerMember, tuple[Effect, ...]]


# -- awaiting commands ----------------------------------------------------------------------------------------------


def await_command(member: ServerMember) -> Step:
    """Await the next command, or find the coordinator first. At most one request is outstanding."""
    if member.coordinator is None:
        return find_coordinator(member)
    if member.awaiting_command or member.state not in AWAITING:
        return member, ()
    awaiting = replaced(member, awaiting_command=True, timers=replaced(member.timers, retry_ns=None))
    return awaiting, (SendAwaitCommand(awaiting.stamp, awaiting.member_id, awaiting.generation, awaiting.stopped),)


def find_coordinator(member: ServerMember) -> Step:
    if member.finding:
        return member, ()
    return replaced(member, finding=True, timers=replaced(member.timers, retry_ns=None)), (FindCoordinator(),)


def retry_later(member: ServerMember, now: int) -> ServerMember:
    """Set the retry timer to the backoff."""
    return replaced(member, timers=replaced(member.timers, retry_ns=now + member.settings.retry_backoff_ms * NS_PER_MS))


def cancel_await(member: ServerMember) -> Step:
    """Abandon an outstanding AwaitCommand: its response would be stale."""
    return replaced(member, awaiting_command=False), ((CancelAwait(),) if member.awaiting_command else ())


# -- the registration ---------------------------------------------------------------------------------------------


def register(member: ServerMember) -> Step:
    """Register in ZooKeeper first: the coordinator ignores members whose id is not there."""
    registering = replaced(
        member,
        state=ServerMemberState.REGISTERING,
        registered=False,
        stamp=member.stamp + 1,
        timers=ServerMemberTimers(),
    )
    begun, emitted = begin_rebalance(registering)
    return begun, (*emitted, Register(begun.stamp, begun.session))


def unregistered(member: ServerMember) -> ServerMember:
    """Go to UNREGISTERED: there is no session to register in, or it may have expired."""
    return replaced(
        member,
        state=ServerMemberState.UNREGISTERED,
        registered=False,
        stamp=member.stamp + 1,
        timers=ServerMemberTimers(),
    )


def without_generation(member: ServerMember) -> ServerMember:
    """Forget the generation, like a member that never started one."""
    return replaced(member, generation=NO_GENERATION, stopped=NO_GENERATION, stamp=member.stamp + 1)


# -- a rebalance, as the trace sees it -----------------------------------------------------------------------------


def begin_rebalance(member: ServerMember) -> Step:
    """Begin a rebalance unless one is running; it lasts until the member has been started."""
    if member.attempt:
        return member, ()
    begun = replaced(member, attempt=1)
    return begun, (
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
        enter(begun, "join"),
    )


def next_attempt(member: ServerMember, outcome: str, error: str) -> Step:
    if not member.attempt:
        return begin_rebalance(member)
    again = replaced(member, attempt=member.attempt + 1)
    return again, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(again, "attempt_started", attempt=again.attempt),
        enter(again, "join"),
    )


def end_rebalance(member: ServerMember, outcome: str, error: str) -> Step:
    """End the running rebalance without an assignment."""
    if not member.attempt:
        return member, ()
    return replaced(member, attempt=0), (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(member, "rebalance_ended", outcome="superseded"),
    )


# -- what is owned --------------------------------------------------------------------------------------------------


def commit_and_revoke(member: ServerMember) -> tuple[Effect, ...]:
    """Commit, then notify the application, and only then acknowledge: the group relies on this order."""
    revoke = Revoke(member.owned)
    if not member.settings.auto_commit or member.identity is None:
        return (revoke,)
    return CommitPositions(member.stamp, member.identity, wait=True), revoke


def lose(member: ServerMember, trigger: str) -> Step:
    """Lose what is owned, since others may own it by now; a running rebalance goes on."""
    lost = replaced(member, owned=frozenset(), trigger=trigger)
    gone: tuple[Effect, ...] = (Lose(member.owned), emit_removed(member, "partitions_lost")) if member.owned else ()
    return lost, (*gone, emit(member, "rebalance_triggered", trigger=trigger))


def emit_removed(member: ServerMember, kind: str) -> Emit:
    """Name the generation that assigned the partitions, even if the member has dropped it already."""
    fields = {"partitions": partitions_field(member.owned), "all": [], "generation": member.owned_since}
    return Emit(kind, member.member_id, f"generation:{member.owned_since}", fields)
