"""The rebalance of the 0.8.2 high-level consumer: one member's decisions, as a table.

What it is: `step(machine, event) -> (machine, effects)`. `STEPS` is the table: one row a step, with the
ZooKeeper requests that it makes, in the order of the original (R1 to R12 of Kafka 0.8.2's
ZookeeperConsumerConnector). What each row asks and where its answers lead is in `steps.py`; below the table is
what happens between rebalances.

How it runs. A rebalance is a row of at most `max_retries` attempts. An attempt walks through the table from
R1; each step's effects are performed as one batch and answered by one event, which leads to the next step. An
attempt that fails anywhere goes through GIVING_UP (stop fetchers, clear, commit) and BACKING_OFF, the last one
too.

What it promises, and what the original does not promise either:

- *Merging.* A change that is notified while a rebalance runs sets a flag; any number of them makes one more
  rebalance afterwards. The flag is lowered before a rebalance starts, so no change is lost (KAFKA-265).
- *Everybody stops.* Every rebalance stops and releases everything, even where nothing changes for us.
- *Offsets are read before the claim* (R8 before R11): whoever commits in between makes us start too early.
- *Release is unconditional* (R5): neither owner nor version of the deleted node is looked at (KAFKA-262).
- *The rollback has a gap* (R11): a conflict gives back what this attempt claimed; any other failure leaves it
  claimed, in no registry, so that nobody releases it before our session ends.
- *An expired session empties the registry* without a release, since the nodes may be others' by now. The
  fetchers are not stopped then: they run on until R4 of the rebalance in the new session.
- *Shutting down* waits for the running rebalance with all its attempts (each fails in R9) unless
  `retry_while_closing` is off, as it is in Kafka 1.1.

Iteration order is defined: topics as their owner wrote them, partitions by topic and number. (The original goes
through hash maps there.)

What it refuses to know: sockets, clocks, whether requests were pipelined, and what a record is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from zkconsumer import steps
from zkconsumer.effects import (
    Answer,
    Answered,
    BackOff,
    ChangeNotified,
    ClearStreams,
    CloseDemanded,
    CloseSession,
    Effect,
    Emit,
    EndStreams,
    Event,
    ForgetOwned,
    Performed,
    RebalanceDemanded,
    Report,
    SessionRenewed,
    StepFailed,
    StopAutoCommit,
    Warn,
)
from zkconsumer.state import Attempt, Rebalance, State
from zkconsumer.steps import AttemptFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Effects = tuple[Effect, ...]
Decision = tuple[Rebalance, Effects]


@dataclass(frozen=True, slots=True)
class Step:
    """One row: the specification's number, the trace's phase, the ZooKeeper requests, entry and exit."""

    number: str
    phase: str
    requests: str
    enter: Callable[[Rebalance], Effects]
    leave: Callable[[Rebalance, tuple[Answer, ...]], Rebalance]


#: B brokers, N members, T topics of ours, k owned before, k' owned after. The leader finder's 1+B reads follow R12.
STEPS: Mapping[State, Step] = MappingProxyType(
    {
        State.LISTING_CLUSTER: Step(
            "R1", "detect", "getChildren /brokers/ids", steps.list_cluster, steps.cluster_listed
        ),
        State.READING_CLUSTER: Step("R1", "detect", "getData x B", steps.read_cluster, steps.cluster_read),
        State.READING_OWN: Step("R2", "detect", "getData ids/me", steps.read_own, steps.own_read),
        State.LISTING_BROKERS: Step(
            "R3", "detect", "getChildren /brokers/ids", steps.list_brokers, steps.brokers_listed
        ),
        State.READING_BROKERS: Step("R3", "detect", "getData x B", steps.read_brokers, steps.brokers_read),
        State.AWAITING_BROKERS: Step(
            "R3a",
            "detect",
            "exists, getChildren /brokers/ids",
            steps.await_brokers,
            lambda machine, _: replace(machine, state=State.IDLE),
        ),
        State.STOPPING: Step("R4", "stop", "setData for each changed offset", steps.stop, steps.stopped),
        State.RELEASING: Step("R5", "release", "delete x k", steps.release, steps.released),
        State.READING_OWN_AGAIN: Step("R6", "join", "getData ids/me", steps.read_own_again, steps.own_read_again),
        State.READING_TOPICS: Step(
            "R6", "join", "getData topics/t x T, getChildren ids", steps.read_topics, steps.topics_read
        ),
        State.READING_MEMBERS: Step(
            "R6", "join", "getData ids/x x N, getChildren ids", steps.read_members, steps.members_read
        ),
        State.DECIDING: Step("R7", "decide", "", steps.decide_alone, steps.decided),
        State.READING_OFFSETS: Step("R8", "decide", "getData offsets/t/p x k'", steps.read_offsets, steps.offsets_read),
        State.CLAIMING: Step("R11", "claim", "create owners/t/p, one after the other", steps.claim, steps.claimed),
        State.CHECKING_CLAIM: Step(
            "R11", "claim", "getData owners/t/p of a conflict", steps.check_claim, steps.claim_checked
        ),
        State.ROLLING_BACK: Step(
            "R11", "claim", "delete x claimed, after a conflict", steps.roll_back, steps.rolled_back
        ),
        State.STARTING: Step("R12", "resume", "", steps.start, lambda machine, _: replace(machine, state=State.IDLE)),
    }
)


def step(machine: Rebalance, event: Event) -> Decision:
    """What follows from `event`. Effects are to be performed in their order; see `effects.py` for the batches."""
    match event:
        case Answered() | Performed() | StepFailed():
            return _WITHIN[machine.state](machine, event)
        case ChangeNotified() | RebalanceDemanded() | SessionRenewed() | CloseDemanded():
            return _FROM_OUTSIDE[type(event)](machine, event)


def is_busy(machine: Rebalance) -> bool:
    """Whether a batch is being performed, so that an event from outside makes no new one."""
    return machine.state not in (State.IDLE, State.CLOSED)


# -- inside an attempt -------------------------------------------------------------------------------------------


def _walk(machine: Rebalance, event: Event) -> Decision:
    """Leave the step that was answered and enter the next one that wants something."""
    if isinstance(event, StepFailed):
        if machine.state is State.STOPPING:  # the commit failed; what came before it in R4 was done and told
            machine = replace(machine, delivering=MappingProxyType({}))
        return _give_up(machine, "error", event.error)
    answers = event.answers if isinstance(event, Answered) else ()
    effects: Effects = ()
    while True:
        left = machine.state
        try:
            machine = STEPS[left].leave(machine, answers)
        except AttemptFailed as failure:
            machine, more = _give_up(machine, failure.outcome, str(failure))
            return machine, effects + more
        except RebalanceLabError as failure:
            machine, more = _give_up(machine, "error", str(failure))
            return machine, effects + more
        if machine.state is State.IDLE:
            machine, more = _succeed(machine, "unavailable" if left is State.AWAITING_BROKERS else "ok")
            return machine, effects + more
        if STEPS[machine.state].phase != STEPS[left].phase:
            effects += (_phase(machine, STEPS[machine.state].phase),)
        wanted = STEPS[machine.state].enter(machine)
        if wanted:
            return machine, effects + wanted
        answers = ()


def _phase(machine: Rebalance, phase: str) -> Emit:
    return Emit("phase_entered", {"phase": phase, "attempt": machine.attempt.number}, cause=machine.cause)


def _succeed(machine: Rebalance, outcome: str) -> Decision:
    ended = (
        Emit("attempt_ended", {"attempt": machine.attempt.number, "outcome": outcome}, cause=machine.cause),
        Emit("rebalance_ended", {"outcome": "ok"}, cause=machine.cause),
        *_report(machine, None),
    )
    machine, more = _next(machine)
    return machine, ended + more


def _give_up(machine: Rebalance, outcome: str, error: str) -> Decision:
    """The fetchers of all topics stop, and nothing is delivered before another attempt has claimed."""
    stop = steps.stop_delivering(machine, None)
    attempt = replace(machine.attempt, outcome=outcome, error=error)
    warning = Warn(f"attempt {attempt.number} of {machine.rules.max_retries} to rebalance failed: {error}")
    return replace(machine, state=State.GIVING_UP, attempt=attempt, delivering=MappingProxyType({})), (warning, *stop)


def _gave_up(machine: Rebalance, event: Event) -> Decision:
    """Stopping failed as well: as in the original, that ends the whole rebalance without a backoff."""
    if isinstance(event, StepFailed):
        return _fail(machine, event.error)
    backoff = (_phase(machine, "backoff"), BackOff(machine.rules.backoff_ms))
    return replace(machine, state=State.BACKING_OFF), backoff


def _backed_off(machine: Rebalance, event: Event) -> Decision:
    rules, attempt = machine.rules, machine.attempt
    if attempt.number >= rules.max_retries:
        return _fail(machine, f"{rules.consumer_id} can't rebalance after {rules.max_retries} retries")
    if machine.closing and not rules.retry_while_closing:
        return _fail(machine, "shutting down")
    ended = _attempt_failed(machine)
    machine, more = _attempt(machine, attempt.number + 1)
    return machine, (ended, *more)


def _attempt_failed(machine: Rebalance) -> Emit:
    attempt = machine.attempt
    told = {"attempt": attempt.number, "outcome": attempt.outcome, "error": attempt.error}
    return Emit("attempt_ended", told, cause=machine.cause)


def _fail(machine: Rebalance, error: str) -> Decision:
    """The member stays registered, with its watches, and idle (KAFKA-4228): only another change helps it."""
    ended = (
        _attempt_failed(machine),
        Emit("rebalance_ended", {"outcome": "failed"}, cause=machine.cause),
        *_report(machine, f"{error}: {machine.attempt.error}"),
    )
    machine, more = _next(machine)
    return machine, ended + more


def _report(machine: Rebalance, error: str | None) -> Effects:
    if machine.ticket is not None:
        return (Report(machine.ticket, error),)
    return () if error is None else (Warn(f"error during a rebalance: {error}"),)


# -- between rebalances --------------------------------------------------------------------------------------------


def _next(machine: Rebalance) -> Decision:
    """What to do when no rebalance runs: shut down, serve a demand, answer the flag, or nothing."""
    machine = replace(machine, state=State.IDLE, ticket=None, cause="")
    if machine.closing:
        refused = tuple(Report(demand.ticket, None) for demand in machine.demands)
        machine, more = _close(replace(machine, demands=()))
        return machine, refused + more
    if machine.demands:
        demand = machine.demands[0]
        machine = replace(machine, demands=machine.demands[1:], ticket=demand.ticket, cause=demand.cause)
        return _begin(machine, demand.trigger)
    if machine.triggered:
        machine = replace(machine, triggered=False, cause=machine.triggered_cause)
        return _begin(machine, machine.triggered_by)
    return machine, ()


def _begin(machine: Rebalance, trigger: str) -> Decision:
    started = Emit("rebalance_started", {"trigger": trigger}, cause=machine.cause)
    machine, more = _attempt(machine, 1)
    return machine, (started, *more)


def _attempt(machine: Rebalance, number: int) -> Decision:
    machine = replace(machine, state=State.LISTING_CLUSTER, attempt=Attempt(number=number))
    started = Emit("attempt_started", {"attempt": number}, cause=machine.cause)
    first = STEPS[machine.state]
    return machine, (started, _phase(machine, first.phase), *first.enter(machine))


def _change_notified(machine: Rebalance, event: Event) -> Decision:
    assert isinstance(event, ChangeNotified)
    told = Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause)
    machine = replace(machine, triggered=True, triggered_by=event.trigger, triggered_cause=event.cause)
    return _unless_busy(machine, told)


def _rebalance_demanded(machine: Rebalance, event: Event) -> Decision:
    assert isinstance(event, RebalanceDemanded)
    told = Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause)
    return _unless_busy(replace(machine, demands=(*machine.demands, event)), told)


def _unless_busy(machine: Rebalance, told: Effect) -> Decision:
    if machine.state is not State.IDLE:
        return machine, (told,)
    machine, more = _next(machine)
    return machine, (told, *more)


def _session_renewed(machine: Rebalance, _: Event) -> Decision:
    return replace(machine, owned=()), (ForgetOwned(),)


# -- the shutdown --------------------------------------------------------------------------------------------------


def _close_demanded(machine: Rebalance, _: Event) -> Decision:
    machine = replace(machine, closing=True)
    return _next(machine) if machine.state is State.IDLE else (machine, ())


def _close(machine: Rebalance) -> Decision:
    """Owner nodes and the id node are not deleted one by one: the session's end removes all of them at once."""
    stop = list(steps.stop_delivering(machine, None))
    cleared = next(i for i, effect in enumerate(stop) if isinstance(effect, ClearStreams)) + 1
    effects = (StopAutoCommit(), *stop[:cleared], EndStreams(), *stop[cleared:])
    return replace(machine, state=State.CLOSING, delivering=MappingProxyType({})), effects


def _closing(machine: Rebalance, event: Event) -> Decision:
    failed = (Warn(f"while shutting down: {event.error}"),) if isinstance(event, StepFailed) else ()
    return replace(machine, state=State.CLOSING_SESSION), (*failed, CloseSession())


def _closed(machine: Rebalance, event: Event) -> Decision:
    failed = (Warn(f"while shutting down: {event.error}"),) if isinstance(event, StepFailed) else ()
    left = Emit("member_closed", {"group": machine.rules.group})
    return replace(machine, state=State.CLOSED, owned=()), (*failed, left)


#: Which function takes a batch's outcome in which state; every step of an attempt is walked in the same way.
_WITHIN: Mapping[State, Callable[[Rebalance, Event], Decision]] = MappingProxyType(
    {
        **dict.fromkeys(STEPS, _walk),
        State.GIVING_UP: _gave_up,
        State.BACKING_OFF: _backed_off,
        State.CLOSING: _closing,
        State.CLOSING_SESSION: _closed,
        State.CLOSED: lambda machine, _: (machine, ()),
    }
)

#: What others may tell at any time. While a batch is being performed, none of them makes a second one.
_FROM_OUTSIDE: Mapping[type[Event], Callable[[Rebalance, Event], Decision]] = MappingProxyType(
    {
        ChangeNotified: _change_notified,
        RebalanceDemanded: _rebalance_demanded,
        SessionRenewed: _session_renewed,
        CloseDemanded: _close_demanded,
    }
)
