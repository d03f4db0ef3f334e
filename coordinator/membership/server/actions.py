"""What a member of the server design does about an event: the actions that `table.TABLE` names.

Each takes (member, event, now in monotonic ns) and returns the member after it and the effects, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership import tracing
from coordinator.membership.effects import AbandonCoordinator, CommitPositions, Effect
from coordinator.membership.server import events, moves
from coordinator.membership.server.effects import StartDelivery, Unregister
from coordinator.membership.server.member import (
    NO_GENERATION,
    NO_SESSION,
    NS_PER_MS,
    ServerMember,
    ServerMemberState,
    ServerMemberTimers,
)
from coordinator.membership.server.reactions import AWAIT
from coordinator.membership.tracing import emit, enter, preceded
from kernel.values import partitions_field, replaced

if TYPE_CHECKING:
    from coordinator.membership.events import (
        Closed,
        CoordinatorFound,
        CoordinatorUnknown,
        Event,
        Polled,
        Refusal,
        Refused,
        Resumed,
        Stopped,
        Ticked,
    )
    from coordinator.membership.server.moves import Step

# -- the session ----------------------------------------------------------------------------------------------------


def session_begun(member: ServerMember, event: events.SessionBegun, now: int) -> Step:
    """An earlier registration is gone: register again."""
    emitted: tuple[Effect, ...] = ()
    if member.registered:
        member, emitted = session_ended(member, event, now)
    return preceded(moves.register(_in_session(member, event)), emitted)


def session_begun_while_revoking(member: ServerMember, event: events.SessionBegun, _: int) -> Step:
    return _in_session(_detached(member), event), ()


def session_interrupted(member: ServerMember, _: events.SessionInterrupted, now: int) -> Step:
    """A silent server is noticed after two thirds of the session timeout, so only a third may be left."""
    left_ns = member.session_timeout_ms * NS_PER_MS // 3
    timers = replaced(member.timers, session_ns=now + left_ns) if member.registered else member.timers
    return replaced(member, reached=False, timers=timers), ()


def session_restored(member: ServerMember, _: events.SessionRestored, __: int) -> Step:
    return replaced(member, reached=True, timers=replaced(member.timers, session_ns=None)), ()


def session_restored_late(member: ServerMember, _: events.SessionRestored, __: int) -> Step:
    """The session outlived our deadline: register again, and the coordinator repeats its start."""
    return moves.register(replaced(member, reached=True)) if member.session != NO_SESSION else (member, ())


def session_ended(member: ServerMember, _: Event, __: int) -> Step:
    """The group considers this member dead: others own its partitions, or soon will."""
    return _drop_out(replaced(member, session=NO_SESSION, reached=False), "session-expired", "session ended")


def session_ended_while_revoking(member: ServerMember, _: events.SessionEnded, __: int) -> Step:
    return _detached(replaced(member, session=NO_SESSION, reached=False)), ()


def _in_session(member: ServerMember, event: events.SessionBegun) -> ServerMember:
    return replaced(member, session=event.session, session_timeout_ms=event.timeout_ms, reached=True)


def _detached(member: ServerMember) -> ServerMember:
    """Drop the identity without changing the state: callbacks are running."""
    timers = replaced(member.timers, session_ns=None)
    return replaced(moves.without_generation(member), registered=False, timers=timers)


def _drop_out(member: ServerMember, trigger: str, error: str) -> Step:
    """Drop out of the group until a session is known to be alive."""
    lost, gone = moves.lose(member, trigger) if member.registered else (member, ())
    quiet, off = moves.cancel_await(lost)
    ended, emitted = moves.end_rebalance(quiet, "unavailable", error)
    return moves.unregistered(moves.without_generation(ended)), (*off, *gone, *emitted)


# -- the registration -------------------------------------------------------------------------------------------------


def registered(member: ServerMember, event: events.Registered, _: int) -> Step:
    known = replaced(
        member, state=ServerMemberState.WAITING, registered=True, member_id=event.member_id, traced_id=event.member_id
    )
    started = (
        (emit(known, "member_started", group=member.settings.group),) if event.member_id != member.traced_id else ()
    )
    return preceded(moves.await_command(known), started)


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordinator_found(member: ServerMember, event: CoordinatorFound, _: int) -> Step:
    timers = replaced(member.timers, retry_ns=None)
    return moves.await_command(replaced(member, coordinator=event.node_id, finding=False, timers=timers))


def coordinator_found_early(member: ServerMember, event: CoordinatorFound, _: int) -> Step:
    """Not registered yet: send nothing."""
    return replaced(member, coordinator=event.node_id, finding=False), ()


def coordinator_unknown(member: ServerMember, _: CoordinatorUnknown, now: int) -> Step:
    return moves.retry_later(replaced(member, coordinator=None, finding=False), now), ()


def coordinator_unknown_early(member: ServerMember, _: CoordinatorUnknown, __: int) -> Step:
    return replaced(member, coordinator=None, finding=False), ()


def coordinator_moved(member: ServerMember, _: Refusal, now: int) -> Step:
    """Look it up again after the backoff; delivery goes on meanwhile."""
    if member.finding:
        return member, ()
    return moves.retry_later(replaced(member, coordinator=None, awaiting_command=False), now), (AbandonCoordinator(),)


def coordinator_moved_early(member: ServerMember, _: Refusal, __: int) -> Step:
    return replaced(member, coordinator=None, awaiting_command=False), (AbandonCoordinator(),)


def coordinator_loading(member: ServerMember, _: Refusal, now: int) -> Step:
    return moves.retry_later(replaced(member, awaiting_command=False), now), ()


def subscription_announced(member: ServerMember, _: events.SubscriptionAnnounced, __: int) -> Step:
    """The next AwaitCommand names the new topics; an outstanding one names the old, so cancel it."""
    quiet, off = moves.cancel_await(member)
    return preceded(moves.await_command(quiet), off)


# -- commands -------------------------------------------------------------------------------------------------------


def no_command(member: ServerMember, _: events.NoCommand, __: int) -> Step:
    return moves.await_command(replaced(member, awaiting_command=False))


def stop(member: ServerMember, event: events.StopCommanded, now: int) -> Step:
    """A round begins. A stop of any generation but the running one is stale: ask again after the backoff."""
    answered = replaced(member, awaiting_command=False)
    if event.generation != member.generation:
        return moves.retry_later(answered, now), ()
    begun = replaced(answered, trigger="stop-command", attempt=1)
    emitted: tuple[Effect, ...] = (
        emit(begun, "rebalance_triggered", trigger=begun.trigger),
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
        enter(begun, "stop"),
    )
    if not begun.owned:
        return preceded(_acknowledge(begun), emitted)
    stopping = replaced(begun, state=ServerMemberState.STOPPING)
    return stopping, (*emitted, *moves.commit_and_revoke(stopping))


def stop_without_generation(member: ServerMember, _: events.StopCommanded, now: int) -> Step:
    """Nothing is running; the next AwaitCommand says so again."""
    return moves.retry_later(replaced(member, awaiting_command=False), now), ()


def stopped(member: ServerMember, _: Stopped, __: int) -> Step:
    """Delivery has stopped. If the identity was dropped meanwhile, the partitions already belonged to others."""
    gone = moves.emit_removed(member, "partitions_lost" if member.identity is None else "partitions_revoked")
    empty = replaced(member, owned=frozenset())
    if empty.registered:
        return preceded(_acknowledge(empty), (gone,))
    if empty.reached:
        again, emitted = moves.next_attempt(empty, "unavailable", "not registered")
        return preceded(moves.register(again), (gone, *emitted))
    ended, emitted = moves.end_rebalance(empty, "unavailable", "not registered")
    return moves.unregistered(ended), (gone, *emitted)


def _acknowledge(member: ServerMember) -> Step:
    """Acknowledge a stop by asking for the next command with the stopped generation."""
    waiting = replaced(member, state=ServerMemberState.WAITING, stopped=member.generation, stamp=member.stamp + 1)
    return preceded(moves.await_command(waiting), (enter(waiting, "join"),))


def start(member: ServerMember, event: events.StartCommanded, now: int) -> Step:
    """In WAITING: own what the coordinator assigned, even a stopped generation that it starts again."""
    if event.generation < member.generation:
        return _generation_went_back(member, now)
    began = replaced(
        member,
        state=ServerMemberState.STARTING,
        awaiting_command=False,
        generation=event.generation,
        stopped=NO_GENERATION,
        stamp=member.stamp + 1,
        owned=frozenset(event.offsets),
        owned_since=event.generation,
    )
    partitions = partitions_field(began.owned)
    return began, (
        enter(began, "resume"),
        emit(began, "partitions_assigned", partitions=partitions, all=partitions, generation=began.generation),
        StartDelivery(began.stamp, event.offsets),
    )


def start_over(member: ServerMember, event: events.StartCommanded, now: int) -> Step:
    """In STARTED, without a stop: a newer generation means that ours is lost; the same one is a repetition."""
    if event.generation < member.generation:
        return _generation_went_back(member, now)
    if event.generation == member.generation:
        return moves.retry_later(replaced(member, awaiting_command=False), now), ()
    lost, gone = moves.lose(member, "superseded")
    begun, emitted = moves.begin_rebalance(lost)
    return preceded(start(begun, event, now), (*gone, *emitted))


def _generation_went_back(member: ServerMember, now: int) -> Step:
    """The coordinator's generation went back: it lost the group's state, so our assignment is void."""
    return _outdated(replaced(member, awaiting_command=False), "generation went back", now)


def resumed(member: ServerMember, _: Resumed, now: int) -> Step:
    timers = replaced(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    settled = replaced(member, state=ServerMemberState.STARTED, attempt=0, timers=timers)
    ended: tuple[Effect, ...] = (
        emit(member, "attempt_ended", attempt=member.attempt, outcome="ok"),
        emit(member, "rebalance_ended", outcome="ok", generation=member.generation),
    )
    return preceded(moves.await_command(settled), ended)


# -- refusals -----------------------------------------------------------------------------------------------------


def outdated(member: ServerMember, event: Refusal, now: int) -> Step:
    """The generation is over, or we were dropped from it; our id is still valid."""
    return _outdated(_answered(member, event), event.error, now)


def _outdated(member: ServerMember, error: str, now: int) -> Step:
    quiet, off = moves.cancel_await(member)
    lost, gone = moves.lose(quiet, "generation-outdated")
    waiting = replaced(moves.without_generation(lost), state=ServerMemberState.WAITING)
    again, emitted = moves.next_attempt(waiting, "conflict", error)
    return moves.retry_later(again, now), (*off, *gone, *emitted)


def _answered(member: ServerMember, event: Refusal) -> ServerMember:
    """An error answers AwaitCommand only if it came for that; a refused commit leaves it outstanding."""
    return replaced(member, awaiting_command=False) if event.api == AWAIT else member


def outdated_while_revoking(member: ServerMember, _: Refusal, __: int) -> Step:
    return moves.without_generation(member), ()


def refused(member: ServerMember, event: Refused, _: int) -> Step:
    """The coordinator has refused the member for good: it fails."""
    quiet, off = moves.cancel_await(_answered(member, event))
    lost, gone = moves.lose(quiet, "refused") if member.owned else (quiet, ())
    ended, emitted = moves.end_rebalance(lost, "error", event.error)
    failed = replaced(_detached(ended), state=ServerMemberState.FAILED, timers=ServerMemberTimers())
    return failed, (
        *off,
        *gone,
        *emitted,
        Unregister(),
        *tracing.refused(member, member.settings.group, event),
    )


# -- polls and timers ---------------------------------------------------------------------------------------------


def poll(member: ServerMember, _: Polled, now: int) -> Step:
    """Auto-commit in polls only: the application has processed what earlier polls returned."""
    due = member.timers.commit_ns
    if not member.settings.auto_commit or member.identity is None or due is None or due > now:
        return member, ()
    timers = replaced(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    return replaced(member, timers=timers), (CommitPositions(member.stamp, member.identity, wait=False),)


def ticked(member: ServerMember, _: Ticked, now: int) -> Step:
    """A session that may have expired overrides everything else."""
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return _drop_out(member, "disconnected", "no ZooKeeper")
    if timers.retry_ns is None or timers.retry_ns > now:
        return member, ()
    return moves.await_command(replaced(member, timers=replaced(timers, retry_ns=None)))


def ticked_while_revoking(member: ServerMember, _: Ticked, now: int) -> Step:
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return _detached(member), ()
    if timers.retry_ns is None or timers.retry_ns > now:
        return member, ()
    return moves.await_command(replaced(member, timers=replaced(timers, retry_ns=None)))


# -- the end ------------------------------------------------------------------------------------------------------


def close(member: ServerMember, _: Closed, __: int) -> Step:
    quiet, off = moves.cancel_await(member)
    ended, emitted = moves.end_rebalance(quiet, "error", "closed")
    if not ended.owned:
        return preceded(_leave(ended), (*off, *emitted))
    closing = replaced(ended, state=ServerMemberState.CLOSING)
    return closing, (*off, *emitted, *moves.commit_and_revoke(closing))


def close_stopping(member: ServerMember, _: Closed, __: int) -> Step:
    """The running revocation serves the close as well."""
    ended, emitted = moves.end_rebalance(member, "error", "closed")
    return replaced(ended, state=ServerMemberState.CLOSING), emitted


def leave(member: ServerMember, _: Stopped, __: int) -> Step:
    gone = moves.emit_removed(member, "partitions_lost" if member.identity is None else "partitions_revoked")
    return preceded(_leave(replaced(member, owned=frozenset())), (gone,))


def _leave(member: ServerMember) -> Step:
    """Leave by deleting the id; the coordinator needs to see nothing else."""
    left = replaced(_detached(member), state=ServerMemberState.LEFT, timers=ServerMemberTimers())
    gone = (Unregister(),) if member.registered else ()
    return left, (*gone, emit(member, "member_closed", group=member.settings.group))
