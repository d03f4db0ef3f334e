"""R4 and R5 of a rebalance: stop delivering, then give up ownership.

The release is unconditional as in the original, or checked (fix.checked.release): then the owner nodes are read first,
and a node is deleted only if this session created it and it names our thread, in this session and in the version read.
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
    NotifyRevoked,
    Operation,
    Request,
    StopFetchers,
    Warn,
)
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.rebalance.steps import Effects, Jump, Responses, get, with_attempt
from zkconsumer.znodes.payloads import stream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.values import TopicPartition


# -- R4 --------------------------------------------------------------------------------------------------------


def stop(machine: Rebalance) -> Effects:
    return stop_delivering(machine, tuple(machine.attempt.topics))


def stop_delivering(machine: Rebalance, topics: tuple[str, ...] | None) -> Effects:
    """Stop, clear, commit, in this order. A stream stops delivering when its queue has been cleared."""
    return (
        StopFetchers(),
        ClearStreams(topics),
        *revoked(machine),
        # Before the commit, so that a failing commit cannot keep it from the application.
        *notify_revoked(machine),
        *((CommitOffsets(),) if machine.config.auto_commit else ()),
    )


def revoked(machine: Rebalance) -> tuple[Emit, ...]:
    """The trace event of each stream that delivered something."""
    return tuple(
        Emit("partitions_revoked", {"partitions": had, "all": frozenset()}, stream, machine.cause)
        for stream, had in sorted(machine.delivering.items())
        if had
    )


def notify_revoked(machine: Rebalance) -> tuple[NotifyRevoked, ...]:
    """The calls of the listener. With 1.1's listener there are none: it has a separate step."""
    if machine.config.listener_in_attempt:
        return ()
    streams = sorted({*machine.delivering, *machine.unnotified})
    none: frozenset[TopicPartition] = frozenset()
    had = {stream: machine.delivering.get(stream, none) | machine.unnotified.get(stream, none) for stream in streams}
    return tuple(NotifyRevoked(stream, partitions) for stream, partitions in had.items() if partitions)


def not_delivering(machine: Rebalance) -> Rebalance:
    """Nothing is delivered, and no deliveries are held for a reconnection."""
    none: Mapping[int, frozenset[TopicPartition]] = MappingProxyType({})
    return replace(machine, delivering=none, held=none, unnotified=none)


def stopped(machine: Rebalance, _: Responses) -> Rebalance:
    return not_delivering(machine)


def notify_releasing(machine: Rebalance) -> Effects:
    """1.1's beforeReleasingPartitions: every stream of ours, also one that has nothing to lose."""
    owned = by_stream(machine.owned)
    return tuple(NotifyRevoked(stream, owned.get(stream, frozenset())) for stream in streams_of(machine))


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
    """One topic at a time: delete its nodes, then remove it from the registry."""
    mine = _of_first_topic(machine)
    if not mine:
        return ()
    return (Ask("R5", deletes(machine, mine)), ForgetOwned((mine[0].topic,)))


def released(machine: Rebalance, _: Responses) -> Rebalance | Jump:
    """Release the next topic, or go on."""
    if not machine.owned:
        return machine
    topic = machine.owned[0].topic
    machine = replace(machine, owned=tuple(claim for claim in machine.owned if claim.topic != topic))
    return Jump(machine, RebalanceState.RELEASING) if machine.owned else machine


def check_release(machine: Rebalance) -> Effects:
    mine = _of_first_topic(machine)
    return (Ask("R5", reads(machine, mine)),) if mine else ()


def release_checked(machine: Rebalance, responses: Responses) -> Rebalance:
    """If a new session has emptied the registry since the request, nothing is ours to delete."""
    mine = _of_first_topic(machine)
    return checked(machine, mine, responses if mine else ())


def release_ours(machine: Rebalance) -> Effects:
    mine = _of_first_topic(machine)
    if not mine:
        return ()
    return (*delete_ours(machine, "R5"), ForgetOwned((mine[0].topic,)))


def _of_first_topic(machine: Rebalance) -> tuple[Claim, ...]:
    return tuple(claim for claim in machine.owned if claim.topic == machine.owned[0].topic)


# -- owner nodes, also for the rollback ------------------------------------------------------------------------


def deletes(machine: Rebalance, claims: Iterable[Claim]) -> tuple[Request, ...]:
    """Unconditional deletes, whatever the nodes hold."""
    return tuple(Request(Operation.DELETE, owner_path(machine, claim)) for claim in claims)


def reads(machine: Rebalance, claims: Iterable[Claim]) -> tuple[Request, ...]:
    return tuple(get(owner_path(machine, claim)) for claim in claims)


def checked(machine: Rebalance, claims: Iterable[Claim], responses: Responses) -> Rebalance:
    """Keep for deletion what is ours by session and thread."""
    wanted, spared = [], []
    for claim, response in zip(claims, responses, strict=True):
        path = owner_path(machine, claim)
        if response.ours and response.data == claim.thread.encode():
            wanted.append(Request(Operation.DELETE, path, version=response.version, session=response.session))
        elif response.refusal is None:
            spared.append(f"{path} names {response.data[:80]!r} and belongs to session {response.owner:#x}")
    return with_attempt(machine, deletes=tuple(wanted), spared=tuple(spared))


def delete_ours(machine: Rebalance, step: str) -> Effects:
    """Delete what passed the check. If a delete is refused, the node was no longer ours, which is just as good."""
    attempt = machine.attempt
    warnings = tuple(Warn(f"{why}: it is no longer ours and is not deleted") for why in attempt.spared)
    return (*warnings, *((Ask(step, attempt.deletes),) if attempt.deletes else ()))


def owner_path(machine: Rebalance, claim: Claim) -> str:
    return paths.owner(machine.config.group, claim.topic, claim.partition)
