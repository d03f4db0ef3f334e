"""What the actions of a member of a KIP-848 group are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership.consumer.effects import AssignPartitions, LosePartitions, SendHeartbeat
from coordinator.membership.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NONE,
    NOTHING,
    NS_PER_MS,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    ConsumerMemberState,
    ConsumerMemberTimers,
    SentFields,
)
from coordinator.membership.effects import CommitPositions, Effect, FindCoordinator
from coordinator.membership.tracing import emit, enter, preceded
from kernel.values import partitions_field, replaced

if TYPE_CHECKING:
    from coordinator.membership.effects import Emit
    from kernel.values import TopicPartition

Step = tuple[ConsumerMember, tuple[Effect, ...]]

# -- heartbeats -----------------------------------------------------------------------------------------------------


def heartbeat_now(member: ConsumerMember, now: int) -> Step:
    """Send a heartbeat unless one is outstanding, or look for the coordinator first.

    It is sent at once; so ACKNOWLEDGING ends here. A target that came meanwhile is reconciled next.
    """
    due = replaced(member, timers=replaced(member.timers, heartbeat_ns=now))
    if due.heartbeat_sent:
        return due, ()
    if due.coordinator is None:
        return find_coordinator(due)
    sending, request = _request(due)
    if sending.state is ConsumerMemberState.ACKNOWLEDGING:
        sending = replaced(sending, state=_settled(sending))
    timers = replaced(sending.timers, heartbeat_ns=now + sending.interval_ms * NS_PER_MS)
    return replaced(sending, heartbeat_sent=True, timers=timers), (request,)


def _settled(member: ConsumerMember) -> ConsumerMemberState:
    done = member.current == member.target
    return ConsumerMemberState.STABLE if done else ConsumerMemberState.RECONCILING


def _request(member: ConsumerMember) -> tuple[ConsumerMember, SendHeartbeat]:
    """Send all fields to join and after an error, else what changed (HeartbeatState.buildRequestData)."""
    settings, sent = member.settings, member.sent
    topics, regex = member.last_subscription or (member.topics or frozenset(), member.regex)
    full = sent is None or member.state is ConsumerMemberState.JOINING
    request = SendHeartbeat(
        stamp=member.stamp,
        member_id=member.member_id,
        epoch=member.epoch,
        instance_id=settings.instance_id,
        rebalance_timeout_ms=settings.max_poll_interval_ms if full else -1,
        topics=topics if full or sent is None or topics != sent.topics else None,
        regex=_changed_regex(member, regex),
        server_assignor=settings.server_assignor if full else None,
        owned=member.current.partitions if full or sent is None or member.current != sent.local else None,
    )
    return replaced(member, sent=SentFields(topics, regex, member.current)), request


def _changed_regex(member: ConsumerMember, regex: str | None) -> str | None:
    """The regular expression if the coordinator does not know it, '' if it knows one that is over, else None."""
    known = None if member.sent is None else member.sent.regex
    return None if regex == known else regex or ""


def answered(member: ConsumerMember) -> ConsumerMember:
    return replaced(member, heartbeat_sent=False)


def failed(member: ConsumerMember, now: int) -> ConsumerMember:
    """Repeat a failed heartbeat, in full, after a backoff that doubles."""
    settings = member.settings
    backoff_ms = min(settings.retry_backoff_ms << min(member.failures, 10), settings.retry_backoff_max_ms)
    timers = replaced(member.timers, heartbeat_ns=now + backoff_ms * NS_PER_MS)
    return replaced(answered(member), sent=None, failures=member.failures + 1, timers=timers)


def find_coordinator(member: ConsumerMember) -> Step:
    if member.finding or member.timers.retry_ns is not None:
        return member, ()
    return replaced(member, finding=True), (FindCoordinator(),)


# -- membership ------------------------------------------------------------------------------------------------------


def join(member: ConsumerMember, now: int, trigger: str) -> Step:
    """Join with epoch 0 and nothing owned."""
    poll_ns = now + member.settings.max_poll_interval_ms * NS_PER_MS
    timers = ConsumerMemberTimers(retry_ns=member.timers.retry_ns, poll_ns=poll_ns)
    joining = replaced(
        without_epoch(member), state=ConsumerMemberState.JOINING, trigger=trigger, expired=False, timers=timers
    )
    begun, emitted = begin_rebalance(joining)
    return preceded(heartbeat_now(begun, now), emitted)


def without_epoch(member: ConsumerMember) -> ConsumerMember:
    """Forget the epoch and all that the group gave under it; what is owned must have been given up before."""
    return replaced(
        member,
        epoch=JOIN_EPOCH,
        last_subscription=None,
        stamp=member.stamp + 1,
        heartbeat_sent=False,
        failures=0,
        sent=None,
        target=NONE,
        current=NONE,
        reconciling=None,
    )


def say_leave(member: ConsumerMember) -> Step:
    """Leave without waiting for the answer; without a coordinator, the session timeout tells the group."""
    static = member.settings.instance_id is not None
    unsubscribed = member.last_subscription is not None
    request = SendHeartbeat(
        stamp=member.stamp + 1,  # nobody waits for the answer
        member_id=member.member_id,
        epoch=STATIC_LEAVE_EPOCH if static else LEAVE_EPOCH,
        instance_id=member.settings.instance_id,
        topics=frozenset() if unsubscribed else None,
        regex=_changed_regex(member, None) if unsubscribed else None,
        owned=NOTHING,
    )
    gone = left(member)
    effects = () if member.coordinator is None else (request,)
    return replaced(gone, stamp=gone.stamp + 1), effects


def left(member: ConsumerMember) -> ConsumerMember:
    state = ConsumerMemberState.STALE if member.expired else ConsumerMemberState.UNSUBSCRIBED
    callback = member.callback if member.expired else None
    timers = ConsumerMemberTimers(retry_ns=member.timers.retry_ns)
    return replaced(without_epoch(member), state=state, callback=callback, timers=timers)


def emit_closed(member: ConsumerMember) -> tuple[Effect, ...]:
    """Trace that the application has closed this member, if it has, when nothing is owned any more."""
    return (emit(member, "member_closed", group=member.settings.group),) if member.closed else ()


# -- partitions ------------------------------------------------------------------------------------------------------


def lose_all(member: ConsumerMember) -> Step:
    """Lose what is owned, since others may own it by now; a running callback has been asked to revoke its part."""
    if member.callback is None and not member.owned:
        return member, ()
    numbered, number = next_callback(member)
    without = replaced(numbered, owned=NOTHING, releasing=NOTHING, reconciling=None)
    traced = (emit_removed(member, "partitions_lost", member.owned),) if member.owned else ()
    return without, (LosePartitions(number, member.owned - member.releasing), *traced)


def assign(member: ConsumerMember) -> Step:
    """Own the target being reconciled; called when what it takes away is revoked."""
    assert member.reconciling is not None, member
    added = member.reconciling.partitions - member.owned
    numbered, number = next_callback(member)
    owning = replaced(numbered, owned=member.reconciling.partitions)
    fields = {"partitions": partitions_field(added), "all": partitions_field(owning.owned), "generation": owning.epoch}
    traced = emit(owning, "partitions_assigned", **fields)
    return owning, (enter(owning, "resume"), traced, AssignPartitions(number, added))


def next_callback(member: ConsumerMember) -> tuple[ConsumerMember, int]:
    number = member.callbacks + 1
    return replaced(member, callbacks=number, callback=number), number


def commit_first(member: ConsumerMember) -> tuple[Effect, ...]:
    """Auto-commit before every reconciliation and before leaving, under the epoch that still holds."""
    if not member.settings.auto_commit or member.identity is None or not member.owned:
        return ()
    return (CommitPositions(member.stamp, member.identity, wait=True),)


def emit_removed(member: ConsumerMember, kind: str, gone: frozenset[TopicPartition]) -> Emit:
    left_over = partitions_field(member.owned - gone)
    return emit(member, kind, partitions=partitions_field(gone), all=left_over, generation=member.epoch or None)


# -- a rebalance, as the trace sees it -------------------------------------------------------------------------------


def begin_rebalance(member: ConsumerMember) -> Step:
    """Begin a rebalance unless one is running; it lasts until the member has reconciled its target."""
    if member.attempt:
        return member, ()
    begun = replaced(member, attempt=1)
    return begun, (
        emit(begun, "rebalance_triggered", trigger=begun.trigger),
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
        enter(begun, "join"),
    )


def end_rebalance(member: ConsumerMember, outcome: str, error: str = "") -> Step:
    if not member.attempt:
        return member, ()
    why = {"error": error} if error else {}
    known = {"generation": member.epoch} if outcome == "ok" else {}
    return replaced(member, attempt=0), (
        emit(member, "attempt_ended", attempt=1, outcome=outcome, **why),
        emit(member, "rebalance_ended", outcome=outcome, **why, **known),
    )
