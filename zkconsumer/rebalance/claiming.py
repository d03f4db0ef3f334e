"""R11 and R12 of a rebalance: claim partition by partition, roll back after a conflict, or adopt and start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from zkconsumer.rebalance.effects import (
    AdoptClaims,
    Ask,
    Claim,
    Emit,
    Operation,
    Refusal,
    Request,
    StartFetchers,
    TellAssigned,
)
from zkconsumer.rebalance.releasing import by_stream, checked, delete_ours, deletes, owner_path, reads, streams_of
from zkconsumer.rebalance.state import Rebalance, State
from zkconsumer.rebalance.steps import Answers, AttemptFailed, Effects, Jump, get, learned

if TYPE_CHECKING:
    from zkconsumer.rebalance.effects import Answer


# -- R11: one claim --------------------------------------------------------------------------------------------


def claim(machine: Rebalance) -> Effects:
    """One partition after the other, and never an early stop: a conflict does not keep us from the next one."""
    wanted = _claiming(machine)
    if wanted is None:
        return ()
    return (Ask("R11", (Request(Operation.CREATE, owner_path(machine, wanted), wanted.thread.encode()),)),)


def claimed(machine: Rebalance, answers: Answers) -> Rebalance | Jump:
    if not answers:  # nothing is ours
        return Jump(machine, State.COUNTING)
    match answers[0].refusal:
        case Refusal.NODE_EXISTS:
            return Jump(machine, State.CHECKING_CLAIM)
        case Refusal.NO_NODE:
            # Not a conflict, so nothing is rolled back: the gap of R11.
            raise AttemptFailed(f"the owner node of {_current(machine).topic_partition} could not be created")
    return _won(machine, answers[0].session)


def check_claim(machine: Rebalance) -> Effects:
    return (Ask("R11", (get(owner_path(machine, _current(machine))),)),)


def claim_checked(machine: Rebalance, answers: Answers) -> Rebalance | Jump:
    """A node with our thread id counts as ours, whichever session it belongs to (KAFKA-1387)."""
    answer = answers[0]
    # A persistent node, which none of Kafka's members makes, is as good as ours as long as we live.
    return _won(machine, answer.owner or answer.session) if _names_us(machine, answer) else _lost(machine)


def claim_checked_with_session(machine: Rebalance, answers: Answers) -> Rebalance | Jump:
    """A node with our thread id of another session is one that will go: a conflict (fix.checked.claim)."""
    ours = _names_us(machine, answers[0]) and answers[0].ours
    return _won(machine, answers[0].owner) if ours else _lost(machine)


def _claiming(machine: Rebalance) -> Claim | None:
    attempt = machine.attempt
    return attempt.claims[attempt.claiming] if attempt.claiming < len(attempt.claims) else None


def _current(machine: Rebalance) -> Claim:
    wanted = _claiming(machine)
    assert wanted is not None, "no partition is being claimed"
    return wanted


def _names_us(machine: Rebalance, answer: Answer) -> bool:
    return answer.refusal is None and answer.data == _current(machine).thread.encode()


def _won(machine: Rebalance, session: int) -> Rebalance:
    won = replace(_current(machine), session=session)
    return learned(_with_current(machine, won), claimed=(*machine.attempt.claimed, won))


def _lost(machine: Rebalance) -> Jump:
    conflicts = (*machine.attempt.conflicts, _current(machine))
    return Jump(learned(machine, conflicts=conflicts), State.COUNTING)


def _with_current(machine: Rebalance, claim: Claim) -> Rebalance:
    attempt = machine.attempt
    claims = (*attempt.claims[: attempt.claiming], claim, *attempt.claims[attempt.claiming + 1 :])
    return learned(machine, claims=claims)


# -- R11: the epoch of what was claimed (fix.commit.fence=epoch) -------------------------------------------------


def bump_epoch(machine: Rebalance) -> Effects:
    """A new version of the partition's epoch node, in the session that owns the partition or not at all."""
    won = _current(machine)
    data = won.thread.encode()
    return (Ask("R11", (Request(Operation.SET_DATA, _epoch_path(machine), data, session=won.session),)),)


def epoch_bumped(machine: Rebalance, answers: Answers) -> Rebalance | Jump:
    match answers[0].refusal:
        case Refusal.NO_NODE:
            return Jump(machine, State.MAKING_EPOCH)
        case Refusal.OTHER_SESSION:
            raise _session_over(machine)
    return _with_current(machine, replace(_current(machine), epoch=answers[0].version))


def make_epoch(machine: Rebalance) -> Effects:
    won = _current(machine)
    data = won.thread.encode()
    create = Request(Operation.CREATE, _epoch_path(machine), data, persistent=True, session=won.session)
    return (Ask("R11", (create,)),)


def epoch_made(machine: Rebalance, answers: Answers) -> Rebalance | Jump:
    match answers[0].refusal:
        case Refusal.NODE_EXISTS:
            return Jump(machine, State.BUMPING_EPOCH)
        case Refusal.OTHER_SESSION:
            raise _session_over(machine)
    return _with_current(machine, replace(_current(machine), epoch=0))


def _session_over(machine: Rebalance) -> AttemptFailed:
    return AttemptFailed(f"the session that claimed {_current(machine).topic_partition} is over", gone=True)


def _epoch_path(machine: Rebalance) -> str:
    won = _current(machine)
    return paths.epoch(machine.rules.group, won.topic, won.partition)


# -- R11: what follows a claim ---------------------------------------------------------------------------------


def counted(machine: Rebalance, _: Answers) -> Rebalance | Jump:
    """The next partition; after the last one back, if one was lost, and otherwise on."""
    machine = learned(machine, claiming=machine.attempt.claiming + 1)
    if _claiming(machine) is not None:
        return Jump(machine, State.CLAIMING)
    return Jump(machine, State.ROLLING_BACK) if machine.attempt.conflicts else machine


def roll_back(machine: Rebalance) -> Effects:
    claims = machine.attempt.claimed
    return (Ask("R11", deletes(machine, claims)),) if claims else ()


def rolled_back(machine: Rebalance, _: Answers) -> Rebalance:
    attempt = machine.attempt
    if attempt.outcome:
        raise AttemptFailed(attempt.error, attempt.outcome)
    lost = ", ".join(str(claim.topic_partition) for claim in attempt.conflicts)
    raise AttemptFailed(f"owned by others: {lost}", "conflict")


def check_roll_back(machine: Rebalance) -> Effects:
    claims = machine.attempt.claimed
    return (Ask("R11", reads(machine, claims)),) if claims else ()


def roll_back_checked(machine: Rebalance, answers: Answers) -> Jump:
    """Where nothing was claimed, nothing is deleted: not what R5 of this attempt found to be ours either."""
    return Jump(checked(machine, machine.attempt.claimed, answers), State.ROLLING_BACK_CHECKED)


def roll_back_ours(machine: Rebalance) -> Effects:
    return delete_ours(machine, "R11")


# -- R12: go -----------------------------------------------------------------------------------------------------


def tell_starting(machine: Rebalance) -> Effects:
    """1.1's beforeStartingFetchers: every stream of ours. (1.1 tells the parts of the whole group.)"""
    has = by_stream(machine.attempt.claims)
    return tuple(TellAssigned(stream, has.get(stream, frozenset())) for stream in streams_of(machine))


def owned(machine: Rebalance, _: Answers) -> Rebalance:
    return replace(machine, owned=machine.attempt.claims)


def adopt(machine: Rebalance) -> Effects:
    """Nothing, when a new session has emptied what we own while 1.1's listener was told."""
    return (AdoptClaims(machine.owned),)


def adopted(machine: Rebalance, _: Answers) -> Rebalance:
    return replace(machine, delivering=by_stream(machine.owned))


def start(machine: Rebalance) -> Effects:
    told = tuple(TellAssigned(stream, has) for stream, has in sorted(machine.delivering.items()))
    return (*assigned(machine), *told, StartFetchers())


def start_untold(machine: Rebalance) -> Effects:
    """As `start`, when 1.1's listener was told before."""
    return (*assigned(machine), StartFetchers())


def assigned(machine: Rebalance) -> tuple[Emit, ...]:
    """The trace's word for each stream that delivers something from now on."""
    return tuple(
        Emit("partitions_assigned", {"partitions": has, "all": has}, stream, machine.cause)
        for stream, has in sorted(machine.delivering.items())
    )
