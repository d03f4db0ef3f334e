"""What happens to a member between its rebalances, and what others may tell it at any time.

- *Merging.* A change that is notified while a rebalance runs sets a flag; any number of them makes one more
  rebalance afterwards. The flag is lowered before a rebalance starts, so no change is lost (KAFKA-265).
- *Demands* (the first rebalance, a new session) are rebalances of their own and do not touch the flag.
- *An expired session empties the registry* without a release, since the nodes may be others' by now. The
  fetchers are not stopped then: they run on until R4 of the rebalance in the new session.
- *The shutdown* waits for the running rebalance and goes before everything else that waits.

And with options: a change waits until the group has been quiet (`quiet_ms`), a member that failed looks whether
its part is free (`retry_when_free`), and one that has lost its connection stops delivering until it is
back in the same session (`stop_on_disconnect`).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from zkconsumer.rebalance.claiming import assigned
from zkconsumer.rebalance.effects import (
    Answered,
    Ask,
    ChangeNotified,
    ClearStreams,
    CloseSession,
    Effect,
    Emit,
    EndStreams,
    Event,
    ForgetOwned,
    Freeze,
    RebalanceDemanded,
    Refusal,
    Remind,
    Reminded,
    Report,
    ResumeFetchers,
    StepFailed,
    StopAutoCommit,
    TellAssigned,
    Warn,
)
from zkconsumer.rebalance.releasing import reads, revoked, silenced, stop_delivering, tell_revoked
from zkconsumer.rebalance.state import Attempt, Rebalance, State
from zkconsumer.rebalance.steps import Effects
from zkconsumer.rebalance.table import table

Decision = tuple[Rebalance, Effects]


# -- what comes next -------------------------------------------------------------------------------------------


def next_of(machine: Rebalance) -> Decision:
    """What to do when nothing is being done: shut down, serve a demand, answer the flag, or nothing."""
    machine = replace(machine, state=State.IDLE, ticket=None, cause="")
    if machine.closing:
        refused = tuple(Report(demand.ticket, None) for demand in machine.demands)
        machine, more = _close(replace(machine, demands=()))
        return machine, refused + more
    if not machine.connected and machine.delivering:
        return _pause(machine)
    if machine.untold:
        return _tell_paused(machine)
    if machine.demands:
        demand = machine.demands[0]
        machine = replace(machine, demands=machine.demands[1:], ticket=demand.ticket, cause=demand.cause)
        return _begin(machine, demand.trigger)
    if machine.triggered and not machine.quiet_token:
        machine = replace(machine, triggered=False, cause=machine.triggered_cause)
        return _begin(machine, machine.triggered_by)
    if machine.connected and machine.held:
        return _resume(machine)
    return machine, ()


def _begin(machine: Rebalance, trigger: str) -> Decision:
    started = Emit("rebalance_started", {"trigger": trigger}, cause=machine.cause)
    machine, more = begin_attempt(replace(machine, retry_token=0), 1)
    return machine, (started, *more)


def begin_attempt(machine: Rebalance, number: int) -> Decision:
    state, row = next(iter(table(machine.rules).items()))
    machine = replace(machine, state=state, attempt=Attempt(number=number))
    started = Emit("attempt_started", {"attempt": number}, cause=machine.cause)
    return machine, (started, phase(machine, row.phase), *row.enter(machine))


def phase(machine: Rebalance, name: str) -> Emit:
    return Emit("phase_entered", {"phase": name, "attempt": machine.attempt.number}, cause=machine.cause)


def _unless_busy(machine: Rebalance, *told: Effect) -> Decision:
    if machine.state is not State.IDLE:
        return machine, told
    machine, more = next_of(machine)
    return machine, (*told, *more)


# -- changes, demands, sessions --------------------------------------------------------------------------------


def change_notified(machine: Rebalance, event: ChangeNotified) -> Decision:
    """With `quiet_ms`, each change begins the wait anew."""
    told: Effects = (Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause),)
    machine = replace(machine, triggered=True, triggered_by=event.trigger, triggered_cause=event.cause)
    if machine.rules.quiet_ms:
        machine, remind = _remind(machine, machine.rules.quiet_ms)
        machine = replace(machine, quiet_token=remind.token)
        told = (*told, remind)
    return _unless_busy(machine, *told)


def rebalance_demanded(machine: Rebalance, event: RebalanceDemanded) -> Decision:
    if machine.state in (State.CLOSING, State.CLOSING_SESSION, State.CLOSED):
        return machine, (Report(event.ticket, None),)
    told = Emit("rebalance_triggered", {"trigger": event.trigger}, cause=event.cause)
    return _unless_busy(replace(machine, demands=(*machine.demands, event)), told)


def session_renewed(machine: Rebalance) -> Decision:
    return replace(machine, owned=(), connected=True, held=MappingProxyType({})), (ForgetOwned(),)


def reminded(machine: Rebalance, event: Reminded) -> Decision:
    """An old token is one that nobody waits for any more."""
    if event.token == machine.quiet_token:
        return _unless_busy(replace(machine, quiet_token=0))
    if event.token != machine.retry_token or machine.closing:
        return machine, ()
    if machine.state is State.IDLE:
        return _look(machine)
    return look_later(machine)  # the listener is being told of a lost connection: later


def _remind(machine: Rebalance, ms: int) -> tuple[Rebalance, Remind]:
    token = machine.reminders + 1
    return replace(machine, reminders=token), Remind(ms, token)


# -- all attempts failed (fix.retry.when.free) -------------------------------------------------------------------


def look_later(machine: Rebalance) -> Decision:
    machine, remind = _remind(machine, machine.rules.backoff_ms)
    return replace(machine, retry_token=remind.token), (remind,)


def _look(machine: Rebalance) -> Decision:
    """Is our part free by now? An attempt that did not come to know its part is worth another one."""
    if not machine.attempt.claims:
        return _retry(machine)
    look = Ask("look", reads(machine, machine.attempt.claims))
    return replace(machine, state=State.LOOKING), (look,)


def looked(machine: Rebalance, event: Event) -> Decision:
    """All of it has to be, since nothing less can be claimed. Free is also what names our own thread: nobody consumes
    it, it is a claim that was never given back.
    """
    free = isinstance(event, Answered) and all(
        answer.refusal is Refusal.NO_NODE or answer.data == claim.thread.encode()
        for claim, answer in zip(machine.attempt.claims, event.answers, strict=True)
    )
    if free and not (machine.closing or machine.demands):
        return _retry(machine)
    failed = (Warn(f"looking for a free partition: {event.error}"),) if isinstance(event, StepFailed) else ()
    machine, more = next_of(machine)
    if machine.state is not State.IDLE:
        return machine, failed + more
    machine, later = look_later(machine)
    return machine, failed + more + later


def _retry(machine: Rebalance) -> Decision:
    told = Emit("rebalance_triggered", {"trigger": "retry"})
    machine, more = _begin(replace(machine, ticket=None, cause=""), "retry")
    return machine, (told, *more)


# -- the connection is lost, and comes back (fix.stop.on.disconnect) ---------------------------------------------

#: Where a batch is performed that leaves alone what is delivered. In any other one it is being stopped or started.
_STILL_DELIVERING = frozenset(
    {
        State.IDLE,
        State.SYNCING,
        State.LISTING_CLUSTER,
        State.READING_CLUSTER,
        State.READING_OWN,
        State.MATCHING_OWN,
        State.LISTING_BROKERS,
        State.READING_BROKERS,
        State.AWAITING_BROKERS,
    }
)


def disconnected(machine: Rebalance) -> Decision:
    """What is delivered stops at once; what is being started stops when that is done."""
    if not machine.rules.stop_on_disconnect or machine.state is State.CLOSED:
        return machine, ()
    machine = replace(machine, connected=False)
    if machine.state not in _STILL_DELIVERING or not machine.delivering:
        return machine, ()
    if machine.state is State.IDLE:
        return next_of(machine)
    return _stopped(machine)


def _stopped(machine: Rebalance) -> Decision:
    had = machine.delivering
    return replace(silenced(machine), held=had, untold=had), (Freeze(), *revoked(machine))


def _pause(machine: Rebalance) -> Decision:
    machine, stopped = _stopped(machine)
    machine, told = _tell_paused(machine)
    return machine, stopped + told


def _tell_paused(machine: Rebalance) -> Decision:
    told: Effects = tell_revoked(machine)
    machine = replace(machine, untold=MappingProxyType({}))
    if told:
        return replace(machine, state=State.PAUSING), told
    return next_of(machine)


def reconnected(machine: Rebalance) -> Decision:
    return _unless_busy(replace(machine, connected=True))


def _resume(machine: Rebalance) -> Decision:
    """In the same session, so what we owned is still ours: from what was handed out last."""
    machine = replace(machine, delivering=machine.held, held=MappingProxyType({}), state=State.RESUMING)
    told = tuple(TellAssigned(stream, has) for stream, has in sorted(machine.delivering.items()))
    if machine.rules.listener_in_attempt:
        told = ()
    return machine, (*assigned(machine), *told, ResumeFetchers())


def paused_or_resumed(machine: Rebalance, event: Event) -> Decision:
    """Where it could not be resumed, a rebalance sets everything right."""
    if isinstance(event, StepFailed) and machine.state is State.RESUMING:
        machine = replace(machine, triggered=True, triggered_by="retry", triggered_cause="")
    failed = (Warn(f"after a lost connection: {event.error}"),) if isinstance(event, StepFailed) else ()
    machine, more = next_of(machine)
    return machine, failed + more


# -- the shutdown --------------------------------------------------------------------------------------------------


def close_demanded(machine: Rebalance) -> Decision:
    return _unless_busy(replace(machine, closing=True))


def _close(machine: Rebalance) -> Decision:
    """Owner nodes and the id node are not deleted one by one: the session's end removes all of them at once."""
    stop = list(stop_delivering(machine, None))
    cleared = next(i for i, effect in enumerate(stop) if isinstance(effect, ClearStreams)) + 1
    effects = (StopAutoCommit(), *stop[:cleared], EndStreams(), *stop[cleared:])
    return replace(silenced(machine), state=State.CLOSING), effects


def closing(machine: Rebalance, event: Event) -> Decision:
    return replace(machine, state=State.CLOSING_SESSION), (*_while_closing(event), CloseSession())


def closed(machine: Rebalance, event: Event) -> Decision:
    left = Emit("member_closed", {"group": machine.rules.group})
    return replace(machine, state=State.CLOSED, owned=()), (*_while_closing(event), left)


def _while_closing(event: Event) -> Effects:
    return (Warn(f"while shutting down: {event.error}"),) if isinstance(event, StepFailed) else ()
