"""A member that has lost its connection stops delivering until it is back (`fix.stop.on.disconnect`).

Back in the same session it still owns its partitions and resumes; in a new session it rebalances. Every decision that
ends in IDLE leaves the choice of what comes next to `machine.py`.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from zkconsumer.rebalance.claiming import assigned
from zkconsumer.rebalance.effects import Freeze, NotifyAssigned, ResumeFetchers, StepFailed, Warn
from zkconsumer.rebalance.releasing import not_delivering, notify_revoked, revoked
from zkconsumer.rebalance.state import RebalanceState

if TYPE_CHECKING:
    from zkconsumer.rebalance.effects import BatchResult
    from zkconsumer.rebalance.state import Rebalance
    from zkconsumer.rebalance.steps import Decision, Effects

#: Batches that do not touch what is delivered. Every other batch is stopping or starting it.
_STILL_DELIVERING = frozenset(
    {
        RebalanceState.SYNCING,
        RebalanceState.LISTING_CLUSTER,
        RebalanceState.READING_CLUSTER,
        RebalanceState.READING_OWN,
        RebalanceState.MATCHING_OWN,
        RebalanceState.LISTING_BROKERS,
        RebalanceState.READING_BROKERS,
        RebalanceState.AWAITING_BROKERS,
    }
)


def disconnected(machine: Rebalance) -> Decision:
    """Stop at once what is delivered. A batch that is starting deliveries ends first; an idle member pauses."""
    if not machine.config.stop_on_disconnect or machine.state is RebalanceState.CLOSED:
        return machine, ()
    machine = replace(machine, connected=False)
    if machine.state not in _STILL_DELIVERING or not machine.delivering:
        return machine, ()
    return _stopped(machine)


def must_pause(machine: Rebalance) -> bool:
    """Whether something is delivered without a connection, or the listener does not know yet that it has stopped."""
    return bool((machine.delivering and not machine.connected) or machine.unnotified)


def pause(machine: Rebalance) -> Decision:
    """Stop delivering and notify the listener; IDLE if it has no call to wait for."""
    stopped: Effects = ()
    if machine.delivering and not machine.connected:
        machine, stopped = _stopped(machine)
    notify: Effects = notify_revoked(machine)
    state = RebalanceState.PAUSING if notify else RebalanceState.IDLE
    return replace(machine, unnotified=MappingProxyType({}), state=state), stopped + notify


def resume(machine: Rebalance) -> Decision:
    """Deliver again what we still own, after the last delivered record."""
    machine = replace(machine, delivering=machine.held, held=MappingProxyType({}), state=RebalanceState.RESUMING)
    notify: Effects = ()
    if not machine.config.listener_in_attempt:
        notify = tuple(NotifyAssigned(stream, has) for stream, has in sorted(machine.delivering.items()))
    return machine, (*assigned(machine), *notify, ResumeFetchers())


def paused_or_resumed(machine: Rebalance, result: BatchResult) -> Decision:
    """Back to IDLE. If resuming failed, trigger a rebalance to repair it."""
    resuming = machine.state is RebalanceState.RESUMING
    machine = replace(machine, state=RebalanceState.IDLE)
    if not isinstance(result, StepFailed):
        return machine, ()
    if resuming:
        machine = replace(machine, triggered=True, triggered_by="retry", triggered_cause="")
    return machine, (Warn(f"after a lost connection: {result.error}"),)


def _stopped(machine: Rebalance) -> Decision:
    had = machine.delivering
    return replace(not_delivering(machine), held=had, unnotified=had), (Freeze(), *revoked(machine))
