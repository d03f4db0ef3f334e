"""The rebalance of the 0.8.2 high-level consumer: one member's decisions.

What it is: `step(machine, event) -> (machine, effects)`. The table of an attempt's steps, with the ZooKeeper
requests of each, is in `table.py`; this module walks through it. What happens between rebalances is in `between.py`.

How it runs. A rebalance is a series of at most `max_retries` attempts. An attempt walks through the table from
R1; each step's effects are performed as one batch and answered by one event, which leads to the next step. An
attempt that fails anywhere goes through GIVING_UP (stop fetchers, clear, commit) and BACKING_OFF, the last one
too. After the last one the caller is told, or the log when nobody called; the member stays registered and idle
(KAFKA-4228).

*Shutting down* waits for the running rebalance with all its attempts (each fails in R9) unless
`retry_while_closing` is off, as it is in Kafka 1.1, which looks before every attempt and then ends without an error.

What it refuses to know: sockets, clocks, whether requests were pipelined, and what a record is.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from zkconsumer.rebalance import between
from zkconsumer.rebalance.between import Decision, begin_attempt, next_of, phase
from zkconsumer.rebalance.effects import (
    Answered,
    BackOff,
    ChangeNotified,
    CloseDemanded,
    Disconnected,
    Emit,
    Event,
    OffsetsFetched,
    Outcome,
    Performed,
    RebalanceDemanded,
    Reconnected,
    Reminded,
    Report,
    SessionRenewed,
    StepFailed,
    Warn,
)
from zkconsumer.rebalance.releasing import silenced, stop_delivering
from zkconsumer.rebalance.state import Rebalance, State
from zkconsumer.rebalance.steps import AttemptFailed, Effects, Jump, learned
from zkconsumer.rebalance.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zkconsumer.rebalance.steps import Row


def step(machine: Rebalance, event: Event) -> Decision:
    """What follows from `event`. Effects are to be performed in their order; see `effects.py` for the batches."""
    match event:
        case Answered() | Performed() | OffsetsFetched() | StepFailed():
            return _OUTSIDE_ATTEMPTS.get(machine.state, _walk)(machine, event)
        case ChangeNotified():
            return between.change_notified(machine, event)
        case RebalanceDemanded():
            return between.rebalance_demanded(machine, event)
        case SessionRenewed():
            return between.session_renewed(machine)
        case CloseDemanded():
            return between.close_demanded(machine)
        case Disconnected():
            return between.disconnected(machine)
        case Reconnected():
            return between.reconnected(machine)
        case Reminded():
            return between.reminded(machine, event)


def is_busy(machine: Rebalance) -> bool:
    """Whether a batch is being performed, so that an event from outside makes no new one."""
    return machine.state not in (State.IDLE, State.CLOSED)


# -- inside an attempt -------------------------------------------------------------------------------------------


def _walk(machine: Rebalance, event: Outcome) -> Decision:
    """Leave the step that was answered and enter the next one that wants something."""
    if isinstance(event, StepFailed):
        if machine.state is State.STOPPING:  # the commit failed; what came before it in R4 was done and told
            machine = silenced(machine)
        if machine.state is State.READING_KAFKA_OFFSETS:
            return _stumble(machine, AttemptFailed(f"offsets unavailable: {event.error}", "unavailable"))
        return _stumble(machine, AttemptFailed(event.error))
    answers = event.answers if isinstance(event, Answered) else ()
    if isinstance(event, OffsetsFetched):
        machine = learned(machine, stored=event.offsets)
    effects: Effects = ()
    rows = table(machine.rules)
    while True:
        row = rows[machine.state]
        left = machine.state
        try:
            machine = _gone_on(rows, left, row.leave(machine, answers))
        except RebalanceLabError as failure:
            machine, more = _stumble(machine, failure)
            return machine, effects + more
        if machine.state is State.IDLE:
            machine, more = _succeed(machine, "unavailable" if left is State.AWAITING_BROKERS else "ok")
            return machine, effects + more
        entered = rows[machine.state]
        if entered.phase != row.phase:
            effects += (phase(machine, entered.phase),)
        wanted = entered.enter(machine)
        if wanted:
            return machine, effects + wanted
        answers = ()


def _gone_on(rows: Mapping[State, Row], left: State, exited: Rebalance | Jump) -> Rebalance:
    """To where the exit jumps, or to the next row that does not stand aside; behind the last one to IDLE."""
    if isinstance(exited, Jump):
        return replace(exited.machine, state=exited.to)
    states = list(rows)
    behind = states[states.index(left) + 1 :]
    return replace(exited, state=next((state for state in behind if not rows[state].aside), State.IDLE))


def _stumble(machine: Rebalance, failure: RebalanceLabError) -> Decision:
    """The attempt ends here; where the row says so, what was claimed is given back first."""
    outcome = failure.outcome if isinstance(failure, AttemptFailed) else "error"
    gone = isinstance(failure, AttemptFailed) and failure.gone
    row = table(machine.rules)[machine.state]
    if gone or not (row.gives_back and machine.attempt.claimed):
        return _give_up(machine, outcome, str(failure))
    machine = replace(learned(machine, outcome=outcome, error=str(failure)), state=State.ROLLING_BACK)
    return machine, table(machine.rules)[machine.state].enter(machine)


def _succeed(machine: Rebalance, outcome: str) -> Decision:
    ended = (
        Emit("attempt_ended", {"attempt": machine.attempt.number, "outcome": outcome}, cause=machine.cause),
        Emit("rebalance_ended", {"outcome": "ok"}, cause=machine.cause),
        *_report(machine, None),
    )
    machine, more = next_of(machine)
    return machine, ended + more


def _give_up(machine: Rebalance, outcome: str, error: str) -> Decision:
    """The fetchers of all topics stop, and nothing is delivered before another attempt has claimed."""
    stop = stop_delivering(machine, None)
    attempt = replace(machine.attempt, outcome=outcome, error=error)
    warning = Warn(f"attempt {attempt.number} of {machine.rules.max_retries} to rebalance failed: {error}")
    return replace(silenced(machine), state=State.GIVING_UP, attempt=attempt), (warning, *stop)


def _gave_up(machine: Rebalance, event: Outcome) -> Decision:
    """Stopping failed as well: as in the original, that ends the whole rebalance without a backoff."""
    if isinstance(event, StepFailed):
        return _fail(machine, event.error)
    return replace(machine, state=State.BACKING_OFF), (phase(machine, "backoff"), BackOff(machine.rules.backoff_ms))


def _backed_off(machine: Rebalance, _: Outcome) -> Decision:
    rules, attempt = machine.rules, machine.attempt
    if attempt.number >= rules.max_retries:
        return _fail(machine, f"{rules.consumer_id} can't rebalance after {rules.max_retries} retries")
    if machine.closing and not rules.retry_while_closing:
        return _end_failed(machine, _report(machine, None))
    ended = _attempt_failed(machine)
    machine, more = begin_attempt(machine, attempt.number + 1)
    return machine, (ended, *more)


def _attempt_failed(machine: Rebalance) -> Emit:
    attempt = machine.attempt
    told = {"attempt": attempt.number, "outcome": attempt.outcome, "error": attempt.error}
    return Emit("attempt_ended", told, cause=machine.cause)


def _fail(machine: Rebalance, error: str) -> Decision:
    """The member stays registered, with its watches, and idle (KAFKA-4228): only another change helps it."""
    return _end_failed(machine, _report(machine, f"{error}: {machine.attempt.error}"))


def _end_failed(machine: Rebalance, report: Effects) -> Decision:
    ended = (
        _attempt_failed(machine),
        Emit("rebalance_ended", {"outcome": "failed"}, cause=machine.cause),
        *report,
    )
    machine, more = next_of(machine)
    if machine.state is State.IDLE and machine.rules.retry_when_free:
        machine, later = between.look_later(machine)
        more += later
    return machine, ended + more


def _report(machine: Rebalance, error: str | None) -> Effects:
    if machine.ticket is not None:
        return (Report(machine.ticket, error),)
    return () if error is None else (Warn(f"error during a rebalance: {error}"),)


#: Which function takes a batch's outcome where no step of an attempt is walked.
_OUTSIDE_ATTEMPTS: Mapping[State, Callable[[Rebalance, Outcome], Decision]] = MappingProxyType(
    {
        State.GIVING_UP: _gave_up,
        State.BACKING_OFF: _backed_off,
        State.LOOKING: between.looked,
        State.PAUSING: between.paused_or_resumed,
        State.RESUMING: between.paused_or_resumed,
        State.CLOSING: between.closing,
        State.CLOSING_SESSION: between.closed,
        State.CLOSED: lambda machine, _: (machine, ()),
    }
)
