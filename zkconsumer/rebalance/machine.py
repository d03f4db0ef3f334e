"""One member's rebalances: `step(machine, event) -> (machine, effects)`.

A rebalance is a series of at most `max_retries` attempts (`attempt.py` walks one through the table). After a failed
attempt the member backs off, after the last one too. When all have failed, the error is reported to the caller or, if
no caller waits for it, logged; the member stays registered and idle (KAFKA-4228).

Between rebalances:

- *Merging.* A change during a rebalance sets a flag; any number of changes makes one more rebalance afterwards. The
  flag is cleared before a rebalance starts, so no change is lost (KAFKA-265).
- *Demands* (the first rebalance, a new session) are separate rebalances and leave the flag alone.
- *An expired session empties the registry* without a release, since other members may own the nodes by now. The
  fetchers keep running until R4 of the rebalance in the new session.
- *The shutdown* waits for the running rebalance with all its attempts, each of which fails in R9, and then goes before
  everything else. With `retry_while_closing` off, as in Kafka 1.1, it waits for the running attempt only and ends
  the rebalance without an error.

With options, a change waits until the group has been quiet (`quiet_ms`), a member that failed checks whether its part
is free (`retry_when_free`), and a member without a connection stops delivering (`stop_on_disconnect`,
`connection.py`).

Nothing here knows about sockets, clocks, pipelining or the contents of a record.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from zkconsumer.rebalance import attempt, connection
from zkconsumer.rebalance.effects import (
    Answered,
    Ask,
    BackOff,
    BatchResult,
    ChangeNotified,
    ClearStreams,
    CloseDemanded,
    CloseSession,
    Disconnected,
    Emit,
    EndStreams,
    Event,
    ForgetOwned,
    OffsetsFetched,
    Performed,
    RebalanceDemanded,
    Reconnected,
    Refusal,
    Remind,
    Reminded,
    Report,
    SessionRenewed,
    StepFailed,
    StopAutoCommit,
    Warn,
)
from zkconsumer.rebalance.releasing import not_delivering, reads, stop_delivering
from zkconsumer.rebalance.state import Rebalance, RebalanceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zkconsumer.rebalance.steps import Decision, Effects


def step(machine: Rebalance, event: Event) -> Decision:
    """Decide what follows from `event`. The effects are to be performed in order; see `effects.py` for batches."""
    match event:
        case Answered() | Performed() | OffsetsFetched() | StepFailed():
            return _OUTSIDE_ATTEMPTS.get(machine.state, _in_attempt)(machine, event)
        case ChangeNotified():
            return _change_notified(machine, event)
        case RebalanceDemanded():
            return _rebalance_demanded(machine, event)
        case SessionRenewed():
            renewed = replace(machine, owned=(), connected=True, held=MappingProxyType({}))
            return renewed, (ForgetOwned(),)
        case CloseDemanded():
            return _and_next(replace(machine, closing=True), ())
        case Disconnected():
            return _and_next(*connection.disconnected(machine))
        case Reconnected():
            return _and_next(replace(machine, connected=True), ())
        case Reminded():
            return _reminded(machine, event)


def is_busy(machine: Rebalance) -> bool:
    """Whether a batch is being performed, so that an event from outside must not start another one."""
    return machine.state not in (RebalanceState.IDLE, RebalanceState.CLOSED)


# -- what comes next -------------------------------------------------------------------------------------------


def _next(machine: Rebalance) -> Decision:
    """Choose what an idle member does: shut down, pause, serve a demand, react to the flag, resume, or nothing."""
    machine = replace(machine, state=RebalanceState.IDLE, ticket=None, cause="")
    if machine.closing:
        refused = tuple(Report(demand.ticket, None) for demand in machine.demands)
        machine, more = _close(replace(machine, demands=()))
        return machine, refused + more
    if connection.must_pause(machine):
        return _and_next(*connection.pause(machine))
    if machine.demands:
        demand = machine.demands[0]
        machine = replace(machine, demands=machine.demands[1:], ticket=demand.ticket, cause=demand.cause)
        return _begin(machine, demand.trigger)
    if machine.triggered and not machine.quiet_token:
        machine = replace(machine, triggered=False, cause=machine.triggered_cause)
        return _begin(machine, machine.triggered_by)
    if machine.connected and machine.held:
        return connection.resume(machine)
    return machine, ()


def _and_next(machine: Rebalance, effects: Effects) -> Decision:
    """The decision itself, followed by what comes next if it ended in IDLE. A running batch decides that later."""
    if machine.state is not RebalanceState.IDLE:
        return machine, effects
    machine, more = _next(machine)
    return machine, effects + more


# -- a rebalance -----------------------------------------------------------------------------------------------


def _begin(machine: Rebalance, trigger: str) -> Decision:
    started = Emit("rebalance_started", {"trigger": trigger}, cause=machine.cause)
    machine, more = attempt.begin(replace(machine, retry_token=0), 1)
    return machine, (started, *more)


def _in_attempt(machine: Rebalance, result: BatchResult) -> Decision:
    machine, effects = attempt.proceed(machine, result)
    if machine.state is not RebalanceState.IDLE:
        return machine, effects
    ended = Emit("rebalance_ended", {"outcome": "ok"}, cause=machine.cause)
    return _and_next(machine, (*effects, ended, *_report(machine, None)))


def _gave_up(machine: Rebalance, result: BatchResult) -> Decision:
    """If stopping fails as well, the whole rebalance ends without a backoff, as in the original."""
    if isinstance(result, StepFailed):
        return _fail(machine, result.error)
    backoff = (attempt.phase(machine, "backoff"), BackOff(machine.config.backoff_ms))
    return replace(machine, state=RebalanceState.BACKING_OFF), backoff


def _backed_off(machine: Rebalance, _: BatchResult) -> Decision:
    config, number = machine.config, machine.attempt.number
    if number >= config.max_retries:
        return _fail(machine, f"{config.consumer_id} can't rebalance after {config.max_retries} retries")
    if machine.closing and not config.retry_while_closing:
        return _end_failed(machine, _report(machine, None))
    ended = attempt.failed(machine)
    machine, more = attempt.begin(machine, number + 1)
    return machine, (ended, *more)


def _fail(machine: Rebalance, error: str) -> Decision:
    """The member stays registered and idle, with its watches (KAFKA-4228); only another change helps it."""
    return _end_failed(machine, _report(machine, f"{error}: {machine.attempt.error}"))


def _end_failed(machine: Rebalance, report: Effects) -> Decision:
    ended = Emit("rebalance_ended", {"outcome": "failed"}, cause=machine.cause)
    effects = (attempt.failed(machine), ended, *report)
    if machine.config.retry_when_free:
        return _next_or_look_later(machine, effects)
    machine, more = _next(machine)
    return machine, effects + more


def _report(machine: Rebalance, error: str | None) -> Effects:
    if machine.ticket is not None:
        return (Report(machine.ticket, error),)
    return () if error is None else (Warn(f"error during a rebalance: {error}"),)


def _paused_or_resumed(machine: Rebalance, result: BatchResult) -> Decision:
    return _and_next(*connection.paused_or_resumed(machine, result))


# -- changes, demands, reminders -------------------------------------------------------------------------------


def _change_notified(machine: Rebalance, event: ChangeNotified) -> Decision:
    """With `quiet_ms`, each change restarts the wait."""
    effects: Effects = (Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause),)
    machine = replace(machine, triggered=True, triggered_by=event.trigger, triggered_cause=event.cause)
    if machine.config.quiet_ms:
        machine, remind = _remind(machine, machine.config.quiet_ms)
        machine = replace(machine, quiet_token=remind.token)
        effects = (*effects, remind)
    return _and_next(machine, effects)


def _rebalance_demanded(machine: Rebalance, event: RebalanceDemanded) -> Decision:
    if machine.state in (RebalanceState.CLOSING, RebalanceState.CLOSING_SESSION, RebalanceState.CLOSED):
        return machine, (Report(event.ticket, None),)
    triggered = Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause)
    return _and_next(replace(machine, demands=(*machine.demands, event)), (triggered,))


def _remind(machine: Rebalance, ms: int) -> tuple[Rebalance, Remind]:
    token = machine.reminders + 1
    return replace(machine, reminders=token), Remind(ms, token)


def _reminded(machine: Rebalance, event: Reminded) -> Decision:
    """Ignore a token that was replaced by a later one."""
    if event.token == machine.quiet_token:
        return _and_next(replace(machine, quiet_token=0), ())
    if event.token != machine.retry_token or machine.closing:
        return machine, ()
    if machine.state is RebalanceState.IDLE:
        return _look(machine)
    return _look_later(machine)  # the listener is being notified of a lost connection


# -- all attempts failed (fix.retry.when.free) -------------------------------------------------------------------


def _look(machine: Rebalance) -> Decision:
    """Check whether our part is free. If the attempt failed before it knew its part, just try again."""
    if not machine.attempt.claims:
        return _retry(machine)
    look = Ask("look", reads(machine, machine.attempt.claims))
    return replace(machine, state=RebalanceState.LOOKING), (look,)


def _looked(machine: Rebalance, result: BatchResult) -> Decision:
    """Retry when the whole part is free, since an attempt claims all or nothing.

    A node that names our own thread is free too: it is a claim that was never given back.
    """
    free = isinstance(result, Answered) and all(
        response.refusal is Refusal.NO_NODE or response.data == claim.thread.encode()
        for claim, response in zip(machine.attempt.claims, result.responses, strict=True)
    )
    if free and not (machine.closing or machine.demands):
        return _retry(machine)
    failed = (Warn(f"looking for a free partition: {result.error}"),) if isinstance(result, StepFailed) else ()
    return _next_or_look_later(machine, failed)


def _next_or_look_later(machine: Rebalance, effects: Effects) -> Decision:
    machine, more = _next(machine)
    if machine.state is not RebalanceState.IDLE:
        return machine, effects + more
    machine, later = _look_later(machine)
    return machine, effects + more + later


def _look_later(machine: Rebalance) -> Decision:
    machine, remind = _remind(machine, machine.config.backoff_ms)
    return replace(machine, retry_token=remind.token), (remind,)


def _retry(machine: Rebalance) -> Decision:
    triggered = Emit("rebalance_triggered", {"trigger": "retry"})
    machine, more = _begin(replace(machine, ticket=None, cause=""), "retry")
    return machine, (triggered, *more)


# -- the shutdown --------------------------------------------------------------------------------------------------


def _close(machine: Rebalance) -> Decision:
    """Stop everything. Owner nodes and id node are left to the end of the session, which removes all at once."""
    stop = list(stop_delivering(machine, None))
    cleared = next(i for i, effect in enumerate(stop) if isinstance(effect, ClearStreams)) + 1
    effects = (StopAutoCommit(), *stop[:cleared], EndStreams(), *stop[cleared:])
    return replace(not_delivering(machine), state=RebalanceState.CLOSING), effects


def _close_session(machine: Rebalance, result: BatchResult) -> Decision:
    return replace(machine, state=RebalanceState.CLOSING_SESSION), (*_while_closing(result), CloseSession())


def _session_closed(machine: Rebalance, result: BatchResult) -> Decision:
    left = Emit("member_closed", {"group": machine.config.group})
    return replace(machine, state=RebalanceState.CLOSED, owned=()), (*_while_closing(result), left)


def _while_closing(result: BatchResult) -> Effects:
    return (Warn(f"while shutting down: {result.error}"),) if isinstance(result, StepFailed) else ()


#: What handles the result of a batch in the states outside attempts.
_OUTSIDE_ATTEMPTS: Mapping[RebalanceState, Callable[[Rebalance, BatchResult], Decision]] = MappingProxyType(
    {
        RebalanceState.GIVING_UP: _gave_up,
        RebalanceState.BACKING_OFF: _backed_off,
        RebalanceState.LOOKING: _looked,
        RebalanceState.PAUSING: _paused_or_resumed,
        RebalanceState.RESUMING: _paused_or_resumed,
        RebalanceState.CLOSING: _close_session,
        RebalanceState.CLOSING_SESSION: _session_closed,
        RebalanceState.CLOSED: lambda machine, _: (machine, ()),
    }
)
