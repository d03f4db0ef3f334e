"""One attempt of a rebalance: from the first step of the table to its end.

Each step's effects are performed as one batch; its result leads to the next step that wants something. An attempt that
succeeds ends in IDLE. One that fails anywhere goes through GIVING_UP, which stops the fetchers, clears and commits;
before that, a step that `rolls_back` deletes what was claimed. What follows an attempt is decided in `machine.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from zkconsumer.rebalance.effects import Answered, Emit, OffsetsFetched, StepFailed, Warn
from zkconsumer.rebalance.releasing import not_delivering, stop_delivering
from zkconsumer.rebalance.state import Attempt, RebalanceState
from zkconsumer.rebalance.steps import AttemptFailed, Jump, with_attempt
from zkconsumer.rebalance.table import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkconsumer.rebalance.effects import BatchResult
    from zkconsumer.rebalance.state import Rebalance
    from zkconsumer.rebalance.steps import Decision, Effects, Step


def begin(machine: Rebalance, number: int) -> Decision:
    """Enter the first step."""
    state, step = next(iter(table(machine.config).items()))
    machine = replace(machine, state=state, attempt=Attempt(number=number))
    started = Emit("attempt_started", {"attempt": number}, cause=machine.cause)
    return machine, (started, phase(machine, step.phase), *step.enter(machine))


def proceed(machine: Rebalance, result: BatchResult) -> Decision:
    """Leave the step whose batch has ended, and enter the next one that wants something."""
    if isinstance(result, StepFailed):
        return _step_failed(machine, result)
    responses = result.responses if isinstance(result, Answered) else ()
    if isinstance(result, OffsetsFetched):
        machine = with_attempt(machine, stored=result.offsets)
    effects: Effects = ()
    steps = table(machine.config)
    while True:
        left, step = machine.state, steps[machine.state]
        try:
            machine = _next_state(steps, left, step.leave(machine, responses))
        except RebalanceLabError as failure:
            machine, more = _fail(machine, failure)
            return machine, effects + more
        if machine.state is RebalanceState.IDLE:
            outcome = "unavailable" if left is RebalanceState.AWAITING_BROKERS else "ok"
            ended = {"attempt": machine.attempt.number, "outcome": outcome}
            return machine, (*effects, Emit("attempt_ended", ended, cause=machine.cause))
        entered = steps[machine.state]
        if entered.phase != step.phase:
            effects += (phase(machine, entered.phase),)
        wanted = entered.enter(machine)
        if wanted:
            return machine, effects + wanted
        responses = ()


def failed(machine: Rebalance) -> Emit:
    """The end of a failed attempt, for the trace."""
    attempt = machine.attempt
    ended = {"attempt": attempt.number, "outcome": attempt.outcome, "error": attempt.error}
    return Emit("attempt_ended", ended, cause=machine.cause)


def phase(machine: Rebalance, name: str) -> Emit:
    return Emit("phase_entered", {"phase": name, "attempt": machine.attempt.number}, cause=machine.cause)


def _next_state(steps: Mapping[RebalanceState, Step], left: RebalanceState, exited: Rebalance | Jump) -> Rebalance:
    """Jump, or go on with the next step that is not `jump_only`; after the last one, IDLE."""
    if isinstance(exited, Jump):
        assert exited.to in steps[left].jumps, f"{left} does not state that it can jump to {exited.to}"
        return replace(exited.machine, state=exited.to)
    assert steps[left].goes_on, f"{left} states that nothing follows it"
    return replace(exited, state=following(steps, left))


def following(steps: Mapping[RebalanceState, Step], left: RebalanceState) -> RebalanceState:
    """The next step of the table, without a jump."""
    states = list(steps)
    later = states[states.index(left) + 1 :]
    return next((state for state in later if not steps[state].jump_only), RebalanceState.IDLE)


def _step_failed(machine: Rebalance, failure: StepFailed) -> Decision:
    if machine.state is RebalanceState.STOPPING:  # the commit failed; the effects before it in R4 were performed
        machine = not_delivering(machine)
    if machine.state is RebalanceState.READING_KAFKA_OFFSETS:
        return _fail(machine, AttemptFailed(f"offsets unavailable: {failure.error}", "unavailable"))
    return _fail(machine, AttemptFailed(failure.error))


def _fail(machine: Rebalance, failure: RebalanceLabError) -> Decision:
    """End the attempt, after rolling back where the step says so."""
    outcome = failure.outcome if isinstance(failure, AttemptFailed) else "error"
    session_over = isinstance(failure, AttemptFailed) and failure.session_over
    steps = table(machine.config)
    if session_over or not (steps[machine.state].rolls_back and machine.attempt.claimed):
        return _give_up(machine, outcome, str(failure))
    machine = replace(with_attempt(machine, outcome=outcome, error=str(failure)), state=RebalanceState.ROLLING_BACK)
    return machine, steps[machine.state].enter(machine)


def _give_up(machine: Rebalance, outcome: str, error: str) -> Decision:
    """Stop the fetchers of all topics: nothing is delivered until another attempt has claimed."""
    stop = stop_delivering(machine, None)
    attempt = replace(machine.attempt, outcome=outcome, error=error)
    warning = Warn(f"attempt {attempt.number} of {machine.config.max_retries} to rebalance failed: {error}")
    return replace(not_delivering(machine), state=RebalanceState.GIVING_UP, attempt=attempt), (warning, *stop)
