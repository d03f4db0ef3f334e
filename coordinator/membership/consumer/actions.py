"""What a member of a KIP-848 group does about an event: the actions that `table.TABLE` names.

Each takes (member, event, now in monotonic ns) and returns the member after it and the effects, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership import tracing
from coordinator.membership.consumer import moves
from coordinator.membership.consumer.effects import RaiseError, RevokePartitions
from coordinator.membership.consumer.member import NOTHING, NS_PER_MS, ConsumerMember, ConsumerMemberState, Local
from coordinator.membership.effects import AbandonCoordinator, CommitPositions, Effect, FindCoordinator
from coordinator.membership.events import Closed
from coordinator.membership.tracing import emit, enter, preceded
from kernel.values import replaced

if TYPE_CHECKING:
    from coordinator.membership.consumer import events
    from coordinator.membership.consumer.moves import Step
    from coordinator.membership.events import CoordinatorFound, CoordinatorUnknown, Event, Polled, Refusal, Ticked
    from kernel.values import TopicPartition

# -- the application ------------------------------------------------------------------------------------------------


def subscribed(member: ConsumerMember, event: events.Subscribed, _: int) -> Step:
    return replaced(member, topics=event.topics, regex=event.regex), ()


def poll_outside(member: ConsumerMember, _: Polled, now: int) -> Step:
    """Join, in UNSUBSCRIBED and STALE, unless the listener is still being called for what was lost."""
    if member.topics is None or member.closed or member.callback is not None:
        return member, ()
    return moves.join(member, now, "subscribe" if member.state is ConsumerMemberState.UNSUBSCRIBED else "poll-timeout")


def poll(member: ConsumerMember, _: Polled, now: int) -> Step:
    """Auto-commit in polls only: the application has processed what earlier polls returned."""
    timers = replaced(member.timers, poll_ns=now + member.settings.max_poll_interval_ms * NS_PER_MS)
    due = timers.commit_ns
    if not member.settings.auto_commit or member.identity is None or due is None or due > now:
        return replaced(member, timers=timers), ()
    timers = replaced(timers, commit_ns=now + member.settings.auto_commit_interval_ms * NS_PER_MS)
    return replaced(member, timers=timers), (CommitPositions(member.stamp, member.identity, wait=False),)


def poll_reconciling(member: ConsumerMember, event: Polled, now: int) -> Step:
    """Begin to take the target over: commit, revoke what it lacks, then assign what is new. One target at a time."""
    polled, _ = poll(replaced(member, timers=replaced(member.timers, commit_ns=None)), event, now)
    if polled.reconciling is not None:
        return polled, ()
    begun, emitted = moves.begin_rebalance(replaced(polled, reconciling=polled.target))
    commit = moves.commit_first(begun)
    revoked = begun.owned - begun.target.partitions
    if not revoked:
        return preceded(moves.assign(begun), (*emitted, *commit))
    numbered, number = moves.next_callback(replaced(begun, releasing=revoked))
    return numbered, (*emitted, enter(begun, "stop"), *commit, RevokePartitions(number, revoked))


def leave(member: ConsumerMember, event: Event, _: int) -> Step:
    """Close or unsubscribe: revoke everything, then leave. Only a close commits, as in kafka-clients 4.1.1."""
    ended, emitted = moves.end_rebalance(_unsubscribed(member, event), "superseded")
    numbered, number = moves.next_callback(ended)
    revoked = member.owned - member.releasing
    leaving = replaced(
        numbered,
        state=ConsumerMemberState.PREPARE_LEAVING,
        last_subscription=(member.topics or frozenset(), member.regex),
        releasing=member.owned,
        reconciling=None,
    )
    commit = moves.commit_first(member) if leaving.closed else ()
    return leaving, (*emitted, *commit, RevokePartitions(number, revoked))


def leave_outside(member: ConsumerMember, event: Event, _: int) -> Step:
    """Not in the group: there is nothing to leave."""
    ended, emitted = moves.end_rebalance(_unsubscribed(member, event), "superseded")
    return moves.left(replaced(ended, expired=False)), (*emitted, *moves.emit_closed(ended))


def leave_again(member: ConsumerMember, event: Event, _: int) -> Step:
    return replaced(_unsubscribed(member, event), expired=False), ()


def close_fatal(member: ConsumerMember, event: Event, _: int) -> Step:
    over = _unsubscribed(member, event)
    return over, moves.emit_closed(over)


def _unsubscribed(member: ConsumerMember, event: Event) -> ConsumerMember:
    return replaced(member, topics=None, regex=None, closed=member.closed or isinstance(event, Closed))


# -- callbacks --------------------------------------------------------------------------------------------------------


def returned_reconciling(member: ConsumerMember, event: events.CallbackReturned, now: int) -> Step:
    """After a revocation: assign. After an assignment: acknowledge at once, and then look at a newer target.

    A listener that raised is called again in the next poll, until the group loses its patience: nothing is acknowledged
    meanwhile (AbstractMembershipManager.revokeAndAssign). After `assigned` raised, it hears of no partitions.
    """
    if event.number != member.callback or member.reconciling is None:
        return member, ()
    idle = replaced(member, callback=None)
    if event.failed:
        return replaced(idle, releasing=NOTHING, reconciling=None), ()
    if idle.releasing:
        revoked = moves.emit_removed(idle, "partitions_revoked", idle.releasing)
        without = replaced(idle, owned=idle.owned - idle.releasing, releasing=NOTHING)
        return preceded(moves.assign(without), (revoked,))
    ended, emitted = moves.end_rebalance(idle, "ok")
    commit_ns = now + member.settings.auto_commit_interval_ms * NS_PER_MS
    done = replaced(
        ended,
        state=ConsumerMemberState.ACKNOWLEDGING,
        current=member.reconciling,
        reconciling=None,
        timers=replaced(member.timers, commit_ns=commit_ns),
    )
    return preceded(moves.heartbeat_now(done, now), emitted)


def returned_leaving(member: ConsumerMember, event: events.CallbackReturned, _: int) -> Step:
    if event.number != member.callback:
        return member, ()
    gone = (moves.emit_removed(member, "partitions_revoked", member.owned),) if member.owned else ()
    ended = (*gone, *moves.emit_closed(member))
    empty = replaced(member, callback=None, owned=NOTHING, releasing=NOTHING)
    return preceded(moves.say_leave(empty), ended)


def returned_outside(member: ConsumerMember, event: events.CallbackReturned, now: int) -> Step:
    """In FENCED and STALE: the listener knows what was lost, so join again. It was called in a poll."""
    if event.number != member.callback:
        return member, ()
    trigger = "fenced" if member.state is ConsumerMemberState.FENCED else "poll-timeout"
    return moves.join(replaced(member, callback=None), now, trigger)


# -- heartbeats -------------------------------------------------------------------------------------------------------


def heartbeat_answered(member: ConsumerMember, event: events.HeartbeatAnswered, now: int) -> Step:
    """Take the epoch and the interval over, and the assignment if there is one."""
    first = member.state is ConsumerMemberState.JOINING
    heartbeat_ns = now + event.interval_ms * NS_PER_MS
    known = replaced(
        moves.answered(member),
        epoch=event.epoch,
        interval_ms=event.interval_ms,
        failures=0,
        timers=replaced(member.timers, heartbeat_ns=heartbeat_ns),
    )
    started = (emit(known, "member_started", group=member.settings.group),) if first else ()
    if known.state is ConsumerMemberState.PREPARE_LEAVING:
        return known, started
    if event.assignment is not None:
        known = _targeted(known, event.assignment)
    if known.state is ConsumerMemberState.ACKNOWLEDGING:
        return preceded(moves.heartbeat_now(known, now), started)
    return known, started


def target_resolved(member: ConsumerMember, event: events.TargetResolved, _: int) -> Step:
    return _targeted(member, event.assignment), ()


def _targeted(member: ConsumerMember, partitions: frozenset[TopicPartition]) -> ConsumerMember:
    """Reconcile the target unless it is reconciled; a reconciliation that runs is finished first.

    A target with an unchanged set is the same target; the first one is new even if it is empty.
    """
    target = member.target
    if target.number < 0 or target.partitions != partitions:
        target = Local(target.number + 1, partitions)
    if member.state is ConsumerMemberState.ACKNOWLEDGING:  # owned is said first
        return replaced(member, target=target)
    settled = target == member.current and member.reconciling is None
    state = ConsumerMemberState.STABLE if settled else ConsumerMemberState.RECONCILING
    trigger = member.trigger if settled else "target-changed"
    return replaced(member, target=target, state=state, trigger=trigger)


def fenced(member: ConsumerMember, event: Refusal, now: int) -> Step:
    """What is owned is lost; with epoch 0 and nothing owned, join again when the listener knows."""
    waits = member.callback is not None or bool(member.owned)
    lost, gone = moves.lose_all(member)
    ended, emitted = moves.end_rebalance(lost, "conflict", event.error)
    if not waits:
        return preceded(moves.join(ended, now, "fenced"), (*gone, *emitted))
    return replaced(moves.without_epoch(ended), state=ConsumerMemberState.FENCED), (*gone, *emitted)


def fenced_leaving(member: ConsumerMember, _: Refusal, __: int) -> Step:
    """It is out already: it does not say that it leaves (AbstractMembershipManager.transitionToFenced)."""
    gone = (moves.emit_removed(member, "partitions_lost", member.owned),) if member.owned else ()
    left = moves.left(replaced(member, owned=NOTHING, releasing=NOTHING))
    return left, (*gone, *moves.emit_closed(member))


def refused(member: ConsumerMember, event: Refusal, _: int) -> Step:
    lost, gone = moves.lose_all(member)
    ended, emitted = moves.end_rebalance(lost, "error", event.error)
    over = replaced(moves.without_epoch(ended), state=ConsumerMemberState.FATAL, callback=None)
    return over, (*gone, *emitted, *tracing.refused(member, member.settings.group, event))


def error_reported(member: ConsumerMember, event: Refusal, now: int) -> Step:
    return moves.failed(member, now), (RaiseError(event.api, event.error),)


# -- the coordinator --------------------------------------------------------------------------------------------------


def coordinator_found(member: ConsumerMember, event: CoordinatorFound, now: int) -> Step:
    """Send the heartbeat that waited; Kafka's client sends it without a backoff, too."""
    return moves.heartbeat_now(replaced(member, coordinator=event.node_id, finding=False), now)


def coordinator_found_outside(member: ConsumerMember, event: CoordinatorFound, _: int) -> Step:
    return replaced(member, coordinator=event.node_id, finding=False), ()


def coordinator_unknown(member: ConsumerMember, _: CoordinatorUnknown, now: int) -> Step:
    retry_ns = now + member.settings.retry_backoff_ms * NS_PER_MS
    return replaced(member, coordinator=None, finding=False, timers=replaced(member.timers, retry_ns=retry_ns)), ()


def coordinator_unknown_outside(member: ConsumerMember, _: CoordinatorUnknown, __: int) -> Step:
    return replaced(member, coordinator=None, finding=False), ()


def coordinator_moved(member: ConsumerMember, _: Refusal, now: int) -> Step:
    """Look it up again; the member keeps its epoch and delivers what it owns, for as long as that takes."""
    gone = replaced(moves.failed(member, now), coordinator=None)
    return preceded(moves.find_coordinator(gone), (AbandonCoordinator(),))


def coordinator_loading(member: ConsumerMember, _: Refusal, now: int) -> Step:
    return moves.failed(member, now), ()


def ticked(member: ConsumerMember, _: Ticked, now: int) -> Step:
    """A missed poll overrides everything else."""
    timers = member.timers
    leaving = member.state is ConsumerMemberState.PREPARE_LEAVING
    if not leaving and timers.poll_ns is not None and timers.poll_ns <= now:
        return _leave_stale(member)
    effects: tuple[Effect, ...] = ()
    if timers.retry_ns is not None and timers.retry_ns <= now:
        member = replaced(member, timers=replaced(timers, retry_ns=None))
        if member.coordinator is None and not member.finding:
            member, effects = replaced(member, finding=True), (FindCoordinator(),)
    due = timers.heartbeat_ns is not None and timers.heartbeat_ns <= now
    if due and not member.heartbeat_sent and member.coordinator is not None:
        return preceded(moves.heartbeat_now(member, now), effects)
    return member, effects


def _leave_stale(member: ConsumerMember) -> Step:
    """max.poll.interval.ms has passed: leave at once; what is owned is lost, not revoked."""
    lost, gone = moves.lose_all(member)
    ended, emitted = moves.end_rebalance(replaced(lost, expired=True), "superseded")
    return preceded(moves.say_leave(ended), (*gone, *emitted))
