"""R4 and R5 of a rebalance: stop delivering, then give up ownership.

Unconditional as in the original, or checked (fix.checked.release): then the owner nodes are read first, and only
those are deleted that this session made and that name our thread, in this session and in the version that was read.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from zkconsumer.rebalance.effects import (
    Ask,
    Claim,
    ClearStreams,
    CommitOffsets,
    Emit,
    ForgetOwned,
    Operation,
    Request,
    StopFetchers,
    TellRevoked,
    Warn,
)
from zkconsumer.rebalance.state import Rebalance, State
from zkconsumer.rebalance.steps import Answers, Effects, Jump, get, learned
from zkconsumer.znodes.payloads import stream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.values import TopicPartition


# -- R4 --------------------------------------------------------------------------------------------------------


def stop(machine: Rebalance) -> Effects:
    return stop_delivering(machine, tuple(machine.attempt.topics))


def stop_delivering(machine: Rebalance, topics: tuple[str, ...] | None) -> Effects:
    """Stop, clear, commit, in this order; a stream has stopped delivering when its queue has been cleared."""
    return (
        StopFetchers(),
        ClearStreams(topics),
        *revoked(machine),
        # Before the commit, so that a commit that fails cannot hide it from the application.
        *tell_revoked(machine),
        *((CommitOffsets(),) if machine.rules.auto_commit else ()),
    )


def revoked(machine: Rebalance) -> tuple[Emit, ...]:
    """The trace's word for each stream that delivered something."""
    return tuple(
        Emit("partitions_revoked", {"partitions": had, "all": frozenset()}, stream, machine.cause)
        for stream, had in sorted(machine.delivering.items())
        if had
    )


def tell_revoked(machine: Rebalance) -> tuple[TellRevoked, ...]:
    """The listener's word, unless it is 1.1's, which has its own step and hears of nothing else."""
    if machine.rules.listener_in_attempt:
        return ()
    streams = sorted({*machine.delivering, *machine.untold})
    none: frozenset[TopicPartition] = frozenset()
    had = {stream: machine.delivering.get(stream, none) | machine.untold.get(stream, none) for stream in streams}
    return tuple(TellRevoked(stream, partitions) for stream, partitions in had.items() if partitions)


def silenced(machine: Rebalance) -> Rebalance:
    """Nothing is delivered any more, and nothing comes back by itself."""
    none: Mapping[int, frozenset[TopicPartition]] = MappingProxyType({})
    return replace(machine, delivering=none, held=none, untold=none)


def stopped(machine: Rebalance, _: Answers) -> Rebalance:
    return silenced(machine)


def tell_releasing(machine: Rebalance) -> Effects:
    """1.1's beforeReleasingPartitions: every stream of ours, also one that has nothing to lose."""
    owned = by_stream(machine.owned)
    return tuple(TellRevoked(stream, owned.get(stream, frozenset())) for stream in streams_of(machine))


def streams_of(machine: Rebalance) -> range:
    """The numbers of our streams, as our registration has them."""
    return range(max(machine.attempt.topics.values(), default=0))


def by_stream(claims: Iterable[Claim]) -> Mapping[int, frozenset[TopicPartition]]:
    streams: dict[int, set[TopicPartition]] = {}
    for claim in claims:
        streams.setdefault(stream_of(claim.thread), set()).add(claim.topic_partition)
    return MappingProxyType({stream: frozenset(has) for stream, has in streams.items()})


# -- R5 --------------------------------------------------------------------------------------------------------


def release(machine: Rebalance) -> Effects:
    """One topic at a time: its nodes are deleted, then the registry forgets the topic."""
    mine = _of_first_topic(machine)
    if not mine:
        return ()
    return (Ask("R5", deletes(machine, mine)), ForgetOwned((mine[0].topic,)))


def released(machine: Rebalance, _: Answers) -> Rebalance | Jump:
    """The next topic, or on."""
    if not machine.owned:
        return machine
    topic = machine.owned[0].topic
    machine = replace(machine, owned=tuple(claim for claim in machine.owned if claim.topic != topic))
    return Jump(machine, State.RELEASING) if machine.owned else machine


def check_release(machine: Rebalance) -> Effects:
    mine = _of_first_topic(machine)
    return (Ask("R5", reads(machine, mine)),) if mine else ()


def release_checked(machine: Rebalance, answers: Answers) -> Rebalance:
    """A new session may have emptied the registry since we asked: then nothing of it is ours to delete."""
    mine = _of_first_topic(machine)
    return checked(machine, mine, answers if mine else ())


def release_ours(machine: Rebalance) -> Effects:
    mine = _of_first_topic(machine)
    if not mine:
        return ()
    return (*delete_ours(machine, "R5"), ForgetOwned((mine[0].topic,)))


def _of_first_topic(machine: Rebalance) -> tuple[Claim, ...]:
    return tuple(claim for claim in machine.owned if claim.topic == machine.owned[0].topic)


# -- owner nodes, also for the rollback ------------------------------------------------------------------------


def deletes(machine: Rebalance, claims: Iterable[Claim]) -> tuple[Request, ...]:
    """Whatever is there, whoever made it."""
    return tuple(Request(Operation.DELETE, owner_path(machine, claim)) for claim in claims)


def reads(machine: Rebalance, claims: Iterable[Claim]) -> tuple[Request, ...]:
    return tuple(get(owner_path(machine, claim)) for claim in claims)


def checked(machine: Rebalance, claims: Iterable[Claim], answers: Answers) -> Rebalance:
    """What may be deleted, and in which session: what is ours by session and thread."""
    wanted, spared = [], []
    for claim, answer in zip(claims, answers, strict=True):
        path = owner_path(machine, claim)
        if answer.ours and answer.data == claim.thread.encode():
            wanted.append(Request(Operation.DELETE, path, version=answer.version, session=answer.session))
        elif answer.refusal is None:
            spared.append(f"{path} names {answer.data[:80]!r} and belongs to session {answer.owner:#x}")
    return learned(machine, deletes=tuple(wanted), spared=tuple(spared))


def delete_ours(machine: Rebalance, step: str) -> Effects:
    """A refusal of one of these means that it was not ours any more, which is all that we want."""
    attempt = machine.attempt
    kept = tuple(Warn(f"{why}, so it is not ours any more: it stays") for why in attempt.spared)
    return (*kept, *((Ask(step, attempt.deletes),) if attempt.deletes else ()))


def owner_path(machine: Rebalance, claim: Claim) -> str:
    return paths.owner(machine.rules.group, claim.topic, claim.partition)
