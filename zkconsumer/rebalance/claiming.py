"""R11 and R12 of a rebalance: claim partition by partition, then roll back after a conflict, or adopt and start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from kernel.zookeeper import paths
from zkconsumer.rebalance.effects import (
    AdoptClaims,
    Ask,
    Claim,
    Emit,
    NotifyAssigned,
    Operation,
    Refusal,
    Request,
    StartFetchers,
)
from zkconsumer.rebalance.releasing import by_stream, checked, delete_ours, deletes, owner_path, reads, streams_of
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.rebalance.steps import AttemptFailed, Effects, Jump, Responses, get, with_attempt

if TYPE_CHECKING:
    from zkconsumer.rebalance.effects import Response


# -- R11: the chroot (1.1) -----------------------------------------------------------------------------------------


def check_root(machine: Rebalance) -> Effects:
    """ZkPath.checkNamespace of 1.1: once for each consumer, before it first creates a node through ZkClient."""
    if machine.root_checked or not machine.attempt.claims:
        return ()
    return (Ask("R11", (Request(Operation.EXISTS, "/"),)),)


def root_checked(machine: Rebalance, responses: Responses) -> Rebalance:
    if responses and responses[0].refusal is not None:
        raise AttemptFailed("the chroot of zookeeper.connect does not exist: create it")
    return replace(machine, root_checked=machine.root_checked or bool(responses))


# -- R11: one claim --------------------------------------------------------------------------------------------


def claim(machine: Rebalance) -> Effects:
    """Claim one partition at a time; a conflict does not stop us from claiming the next one."""
    wanted = _claiming(machine)
    if wanted is None:
        return ()
    return (Ask("R11", (Request(Operation.CREATE, owner_path(machine, wanted), wanted.thread.encode()),)),)


def claimed(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    if not responses:  # our part is empty
        return Jump(machine, RebalanceState.COUNTING)
    match responses[0].refusal:
        case Refusal.NODE_EXISTS:
            return Jump(machine, RebalanceState.CHECKING_CLAIM)
        case Refusal.NO_NODE:
            # Not a conflict, so nothing is rolled back: the rollback gap of R11.
            raise AttemptFailed(f"the owner node of {_current(machine).topic_partition} could not be created")
    return _won(machine, responses[0].session)


def check_claim(machine: Rebalance) -> Effects:
    return (Ask("R11", (get(owner_path(machine, _current(machine))),)),)


def claim_checked(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    """A node with our thread id counts as ours, whichever session it belongs to (KAFKA-1387)."""
    response = responses[0]
    # A persistent node, which no member of Kafka creates, is ours for as long as our session lives.
    return _won(machine, response.owner or response.session) if _names_us(machine, response) else _lost(machine)


def claim_checked_with_session(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    """A node of another session will disappear with it, so it is a conflict (fix.checked.claim)."""
    ours = _names_us(machine, responses[0]) and responses[0].ours
    return _won(machine, responses[0].owner) if ours else _lost(machine)


def _claiming(machine: Rebalance) -> Claim | None:
    attempt = machine.attempt
    return attempt.claims[attempt.claiming] if attempt.claiming < len(attempt.claims) else None


def _current(machine: Rebalance) -> Claim:
    wanted = _claiming(machine)
    assert wanted is not None, "no partition is being claimed"
    return wanted


def _names_us(machine: Rebalance, response: Response) -> bool:
    return response.refusal is None and response.data == _current(machine).thread.encode()


def _won(machine: Rebalance, session: int) -> Rebalance:
    won = replace(_current(machine), session=session)
    return with_attempt(_with_current(machine, won), claimed=(*machine.attempt.claimed, won))


def _lost(machine: Rebalance) -> Jump:
    conflicts = (*machine.attempt.conflicts, _current(machine))
    return Jump(with_attempt(machine, conflicts=conflicts), RebalanceState.COUNTING)


def _with_current(machine: Rebalance, claim: Claim) -> Rebalance:
    attempt = machine.attempt
    claims = (*attempt.claims[: attempt.claiming], claim, *attempt.claims[attempt.claiming + 1 :])
    return with_attempt(machine, claims=claims)


# -- R11: the epoch of what was claimed (fix.commit.fence=epoch) -------------------------------------------------


def bump_epoch(machine: Rebalance) -> Effects:
    """Write a new version of the partition's epoch node, only in the session that owns the partition."""
    won = _current(machine)
    data = won.thread.encode()
    return (Ask("R11", (Request(Operation.SET_DATA, _epoch_path(machine), data, session=won.session),)),)


def epoch_bumped(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    match responses[0].refusal:
        case Refusal.NO_NODE:
            return Jump(machine, RebalanceState.MAKING_EPOCH)
        case Refusal.OTHER_SESSION:
            raise _session_over(machine)
    return _with_current(machine, replace(_current(machine), epoch=responses[0].version))


def make_epoch(machine: Rebalance) -> Effects:
    won = _current(machine)
    data = won.thread.encode()
    create = Request(Operation.CREATE, _epoch_path(machine), data, persistent=True, session=won.session)
    return (Ask("R11", (create,)),)


def epoch_made(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    match responses[0].refusal:
        case Refusal.NODE_EXISTS:
            return Jump(machine, RebalanceState.BUMPING_EPOCH)
        case Refusal.OTHER_SESSION:
            raise _session_over(machine)
    return _with_current(machine, replace(_current(machine), epoch=0))


def _session_over(machine: Rebalance) -> AttemptFailed:
    return AttemptFailed(f"the session that claimed {_current(machine).topic_partition} is over", session_over=True)


def _epoch_path(machine: Rebalance) -> str:
    won = _current(machine)
    return paths.epoch(machine.config.group, won.topic, won.partition)


# -- R11: what follows a claim ---------------------------------------------------------------------------------


def counted(machine: Rebalance, _: Responses) -> Rebalance | Jump:
    """Claim the next partition; after the last one, roll back if any was lost, otherwise go on."""
    machine = with_attempt(machine, claiming=machine.attempt.claiming + 1)
    if _claiming(machine) is not None:
        return Jump(machine, RebalanceState.CLAIMING)
    return Jump(machine, RebalanceState.ROLLING_BACK) if machine.attempt.conflicts else machine


def roll_back(machine: Rebalance) -> Effects:
    claims = machine.attempt.claimed
    return (Ask("R11", deletes(machine, claims)),) if claims else ()


def rolled_back(machine: Rebalance, _: Responses) -> NoReturn:
    attempt = machine.attempt
    if attempt.outcome:
        raise AttemptFailed(attempt.error, attempt.outcome)
    lost = ", ".join(str(claim.topic_partition) for claim in attempt.conflicts)
    raise AttemptFailed(f"owned by others: {lost}", "conflict")


def check_roll_back(machine: Rebalance) -> Effects:
    claims = machine.attempt.claimed
    return (Ask("R11", reads(machine, claims)),) if claims else ()


def roll_back_checked(machine: Rebalance, responses: Responses) -> Jump:
    """Replaces what R5 of this attempt found to be ours, so that nothing is deleted if nothing was claimed."""
    return Jump(checked(machine, machine.attempt.claimed, responses), RebalanceState.ROLLING_BACK_CHECKED)


def roll_back_ours(machine: Rebalance) -> Effects:
    return delete_ours(machine, "R11")


# -- R12: start --------------------------------------------------------------------------------------------------


def notify_starting(machine: Rebalance) -> Effects:
    """1.1's beforeStartingFetchers, for each of our streams. (1.1 passes the parts of the whole group.)"""
    has = by_stream(machine.attempt.claims)
    return tuple(NotifyAssigned(stream, has.get(stream, frozenset())) for stream in streams_of(machine))


def owned(machine: Rebalance, _: Responses) -> Rebalance:
    return replace(machine, owned=machine.attempt.claims)


def adopt(machine: Rebalance) -> Effects:
    """Adopt nothing if a new session emptied the registry while 1.1's listener was called."""
    return (AdoptClaims(machine.owned),)


def adopted(machine: Rebalance, _: Responses) -> Rebalance:
    return replace(machine, delivering=by_stream(machine.owned))


def start(machine: Rebalance) -> Effects:
    notify = tuple(NotifyAssigned(stream, has) for stream, has in sorted(machine.delivering.items()))
    return (*assigned(machine), *notify, StartFetchers())


def start_after_notifying(machine: Rebalance) -> Effects:
    """As `start`, after 1.1's listener was called in a separate step."""
    return (*assigned(machine), StartFetchers())


def assigned(machine: Rebalance) -> tuple[Emit, ...]:
    """The trace event of each stream that delivers something from now on."""
    return tuple(
        Emit("partitions_assigned", {"partitions": has, "all": has}, stream, machine.cause)
        for stream, has in sorted(machine.delivering.items())
    )
