"""What a member of the server design does about an event: the actions that `table.TABLE` names.

Each takes (member, event, now in monotonic ns) and returns the member after it and the effects, in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership.effects import AbandonCoordinator, CommitPositions, Fail
from coordinator.membership.server import events, moves
from coordinator.membership.server.effects import Assign, Unregister
from coordinator.membership.server.member import NO_GENERATION, NO_SESSION, NS_PER_MS, Member, State, Timers
from coordinator.membership.server.reactions import AWAIT
from coordinator.membership.tracing import emit, enter, preceded

if TYPE_CHECKING:
    from coordinator.membership import events as common
    from coordinator.membership.effects import Effect
    from coordinator.membership.server.moves import Step

# -- the session ----------------------------------------------------------------------------------------------------


def session_begun(member: Member, event: events.SessionBegun, now: int) -> Step:
    """Whatever was registered is gone; the id is written anew."""
    told: tuple[Effect, ...] = ()
    if member.registered:
        member, told = session_ended(member, event, now)
    return preceded(moves.register(_in_session(member, event)), told)


def session_begun_while_giving_up(member: Member, event: events.SessionBegun, _: int) -> Step:
    return _in_session(_detached(member), event), ()


def session_interrupted(member: Member, _: events.SessionInterrupted, now: int) -> Step:
    """A silent server is noticed after two thirds of the session's timeout, so a third may be all that is left."""
    left_ns = member.session_timeout_ms * NS_PER_MS // 3
    timers = replace(member.timers, session_ns=now + left_ns) if member.registered else member.timers
    return replace(member, reached=False, timers=timers), ()


def session_restored(member: Member, _: events.SessionRestored, __: int) -> Step:
    return replace(member, reached=True, timers=replace(member.timers, session_ns=None)), ()


def session_restored_late(member: Member, _: events.SessionRestored, __: int) -> Step:
    """It has lived on longer than we dared to count on: the id stands, what it had is told anew."""
    return moves.register(replace(member, reached=True)) if member.session != NO_SESSION else (member, ())


def session_ended(member: Member, _: common.Event, __: int) -> Step:
    """To the group this member is dead: others have its partitions, or will have."""
    return _cast_off(replace(member, session=NO_SESSION, reached=False), "session-expired", "session ended")


def session_ended_while_giving_up(member: Member, _: events.SessionEnded, __: int) -> Step:
    return _detached(replace(member, session=NO_SESSION, reached=False)), ()


def _in_session(member: Member, event: events.SessionBegun) -> Member:
    return replace(member, session=event.session, session_timeout_ms=event.timeout_ms, reached=True)


def _detached(member: Member) -> Member:
    """No identity any more, while callbacks run."""
    timers = replace(member.timers, session_ns=None)
    return replace(moves.without_generation(member), registered=False, timers=timers)


def _cast_off(member: Member, trigger: str, error: str) -> Step:
    """Out of the group until a session says otherwise."""
    lost, gone = moves.lose(member, trigger) if member.registered else (member, ())
    quiet, off = moves.called_off(lost)
    ended, told = moves.end_rebalance(quiet, "unavailable", error)
    return moves.unregistered(moves.without_generation(ended)), (*off, *gone, *told)


# -- the registration -------------------------------------------------------------------------------------------------


def registered(member: Member, event: events.Registered, _: int) -> Step:
    known = replace(member, state=State.WAITING, registered=True, member_id=event.member_id, introduced=event.member_id)
    started = (
        (emit(known, "member_started", group=member.settings.group),) if event.member_id != member.introduced else ()
    )
    return preceded(moves.ask(known), started)


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordinator_found(member: Member, event: common.CoordinatorFound, _: int) -> Step:
    timers = replace(member.timers, retry_ns=None)
    return moves.ask(replace(member, coordinator=event.node_id, finding=False, timers=timers))


def coordinator_found_early(member: Member, event: common.CoordinatorFound, _: int) -> Step:
    """There is nothing to ask it yet."""
    return replace(member, coordinator=event.node_id, finding=False), ()


def coordinator_unknown(member: Member, _: common.CoordinatorUnknown, now: int) -> Step:
    return moves.later(replace(member, coordinator=None, finding=False), now), ()


def coordinator_unknown_early(member: Member, _: common.CoordinatorUnknown, __: int) -> Step:
    return replace(member, coordinator=None, finding=False), ()


def coordinator_moved(member: Member, _: common.Refusal, now: int) -> Step:
    """It is looked for again, after the backoff; what is owned is delivered meanwhile."""
    if member.finding:
        return member, ()
    return moves.later(replace(member, coordinator=None, asking=False), now), (AbandonCoordinator(),)


def coordinator_moved_early(member: Member, _: common.Refusal, __: int) -> Step:
    return replace(member, coordinator=None, asking=False), (AbandonCoordinator(),)


def coordinator_loading(member: Member, _: common.Refusal, now: int) -> Step:
    return moves.later(replace(member, asking=False), now), ()


def subscription_announced(member: Member, _: events.SubscriptionAnnounced, __: int) -> Step:
    """The next question says it; one that waits already says something else."""
    quiet, off = moves.called_off(member)
    return preceded(moves.ask(quiet), off)


# -- commands -------------------------------------------------------------------------------------------------------


def nothing_told(member: Member, _: events.NothingTold, __: int) -> Step:
    return moves.ask(replace(member, asking=False))


def stop(member: Member, event: events.StopTold, now: int) -> Step:
    """The round has begun; only what runs can be stopped, so a stop of anything else is an answer to be asked anew."""
    told = replace(member, asking=False)
    if event.generation != member.generation:
        return moves.later(told, now), ()
    summoned = replace(told, trigger="stop-told", attempt=1)
    begun: tuple[Effect, ...] = (
        emit(summoned, "rebalance_triggered", trigger=summoned.trigger),
        emit(summoned, "rebalance_started", trigger=summoned.trigger),
        emit(summoned, "attempt_started", attempt=1),
        enter(summoned, "stop"),
    )
    if not summoned.owned:
        return preceded(_acknowledge(summoned), begun)
    stopping = replace(summoned, state=State.STOPPING)
    return stopping, (*begun, *moves.give_up(stopping))


def stop_of_nothing(member: Member, _: events.StopTold, now: int) -> Step:
    """Nothing runs; what is asked next says so again."""
    return moves.later(replace(member, asking=False), now), ()


def stopped(member: Member, _: events.Stopped, __: int) -> Step:
    """Nothing is delivered any more; if the identity went meanwhile, others had the partitions already."""
    gone = moves.tell_gone(member, "partitions_lost" if member.identity is None else "partitions_revoked")
    empty = replace(member, owned=frozenset())
    if empty.registered:
        return preceded(_acknowledge(empty), (gone,))
    if empty.reached:
        again, told = moves.next_attempt(empty, "unavailable", "not registered")
        return preceded(moves.register(again), (gone, *told))
    ended, told = moves.end_rebalance(empty, "unavailable", "not registered")
    return moves.unregistered(ended), (gone, *told)


def _acknowledge(member: Member) -> Step:
    """By asking for the next command, with the generation that was stopped."""
    waiting = replace(member, state=State.WAITING, stopped=member.generation, stamp=member.stamp + 1)
    return preceded(moves.ask(waiting), (enter(waiting, "join"),))


def start(member: Member, event: events.StartTold, now: int) -> Step:
    """In WAITING: what the coordinator gave becomes ours, also again what was stopped and never given away."""
    if event.generation < member.generation:
        return _gone_back(member, now)
    began = replace(
        member,
        state=State.STARTING,
        asking=False,
        generation=event.generation,
        stopped=NO_GENERATION,
        stamp=member.stamp + 1,
        owned=frozenset(event.offsets),
        owned_since=event.generation,
    )
    partitions = moves.partitions_field(began.owned)
    return began, (
        enter(began, "resume"),
        emit(began, "partitions_assigned", partitions=partitions, all=partitions, generation=began.generation),
        Assign(began.stamp, event.offsets),
    )


def start_over(member: Member, event: events.StartTold, now: int) -> Step:
    """In STARTED: without a stop, so that what we had was taken away; or what we know already."""
    if event.generation < member.generation:
        return _gone_back(member, now)
    if event.generation == member.generation:
        return moves.later(replace(member, asking=False), now), ()
    lost, gone = moves.lose(member, "superseded")
    begun, told = moves.begin_rebalance(lost)
    return preceded(start(begun, event, now), (*gone, *told))


def _gone_back(member: Member, now: int) -> Step:
    """The coordinator counts from further back: what it knew of this group is gone, and so is what we had of it."""
    return _outdated(replace(member, asking=False), "generation went back", now)


def resumed(member: Member, _: events.Resumed, now: int) -> Step:
    timers = replace(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    settled = replace(member, state=State.STARTED, attempt=0, timers=timers)
    ended: tuple[Effect, ...] = (
        emit(member, "attempt_ended", attempt=member.attempt, outcome="ok"),
        emit(member, "rebalance_ended", outcome="ok", generation=member.generation),
    )
    return preceded(moves.ask(settled), ended)


# -- refusals -----------------------------------------------------------------------------------------------------


def outdated(member: Member, event: common.Refusal, now: int) -> Step:
    """The generation is over, or we were dropped from it; our id stands."""
    return _outdated(_answered(member, event), event.error, now)


def _outdated(member: Member, error: str, now: int) -> Step:
    quiet, off = moves.called_off(member)
    lost, gone = moves.lose(quiet, "generation-outdated")
    waiting = replace(moves.without_generation(lost), state=State.WAITING)
    again, told = moves.next_attempt(waiting, "conflict", error)
    return moves.later(again, now), (*off, *gone, *told)


def _answered(member: Member, event: common.Refusal) -> Member:
    """A question that was refused waits no more; one that waits beside a refused commit still does."""
    return replace(member, asking=False) if event.api == AWAIT else member


def outdated_while_giving_up(member: Member, _: common.Refusal, __: int) -> Step:
    return moves.without_generation(member), ()


def refused(member: Member, event: common.Refused, _: int) -> Step:
    """An error that does not pass."""
    quiet, off = moves.called_off(_answered(member, event))
    lost, gone = moves.lose(quiet, "refused") if member.owned else (quiet, ())
    ended, told = moves.end_rebalance(lost, "error", event.error)
    failed = replace(_detached(ended), state=State.FAILED, timers=Timers())
    return failed, (
        *off,
        *gone,
        *told,
        Unregister(),
        emit(member, "member_failed", error=f"{event.api}: {event.error}"),
        Fail(event.api, event.error),
    )


# -- polls and timers ---------------------------------------------------------------------------------------------


def poll(member: Member, _: common.Polled, now: int) -> Step:
    """Commits that are due are made in polls: what an earlier poll handed out has been dealt with by now."""
    due = member.timers.commit_ns
    if not member.settings.auto_commit or member.identity is None or due is None or due > now:
        return member, ()
    timers = replace(member.timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    return replace(member, timers=timers), (CommitPositions(member.stamp, member.identity, wait=False),)


def ticked(member: Member, _: common.Ticked, now: int) -> Step:
    """A session that may be over makes everything else void."""
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return _cast_off(member, "disconnected", "no ZooKeeper")
    if timers.retry_ns is None or timers.retry_ns > now:
        return member, ()
    return moves.ask(replace(member, timers=replace(timers, retry_ns=None)))


def ticked_while_giving_up(member: Member, _: common.Ticked, now: int) -> Step:
    timers = member.timers
    if timers.session_ns is not None and timers.session_ns <= now:
        return _detached(member), ()
    if timers.retry_ns is None or timers.retry_ns > now:
        return member, ()
    return moves.ask(replace(member, timers=replace(timers, retry_ns=None)))


# -- the end ------------------------------------------------------------------------------------------------------


def close(member: Member, _: common.Closed, __: int) -> Step:
    quiet, off = moves.called_off(member)
    ended, told = moves.end_rebalance(quiet, "error", "closed")
    if not ended.owned:
        return preceded(_leave(ended), (*off, *told))
    closing = replace(ended, state=State.CLOSING)
    return closing, (*off, *told, *moves.give_up(closing))


def close_stopping(member: Member, _: common.Closed, __: int) -> Step:
    """The revocation that is under way serves the closing as well."""
    ended, told = moves.end_rebalance(member, "error", "closed")
    return replace(ended, state=State.CLOSING), told


def leave(member: Member, _: events.Stopped, __: int) -> Step:
    gone = moves.tell_gone(member, "partitions_lost" if member.identity is None else "partitions_revoked")
    return preceded(_leave(replace(member, owned=frozenset())), (gone,))


def _leave(member: Member) -> Step:
    """By taking the id away, which is all that the coordinator has to see."""
    left = replace(_detached(member), state=State.LEFT, timers=Timers())
    gone = (Unregister(),) if member.registered else ()
    return left, (*gone, emit(member, "member_closed", group=member.settings.group))
