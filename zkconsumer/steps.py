"""The steps of one attempt: what each asks of ZooKeeper, and where its answers lead.

For each step there is an *entry* (the effects that it wants performed) and an *exit* (the machine after the
answers). A step whose entry wants nothing is passed through. An exit that raises `AttemptFailed`, or any other
of our errors, ends the attempt. The rows are put together in `rebalance.py`.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from zkconsumer.assignment import decide, threads_per_topic
from zkconsumer.effects import (
    AdoptClaims,
    Answer,
    Ask,
    Claim,
    ClearStreams,
    CommitOffsets,
    Effect,
    Emit,
    ForgetOwned,
    Operation,
    Refusal,
    Request,
    StartFetchers,
    StopFetchers,
    TellAssigned,
    TellRevoked,
    Warn,
    WatchBrokers,
)
from zkconsumer.payloads import parse_broker, parse_offset, parse_partitions, parse_registration, stream_of
from zkconsumer.state import Rebalance, State

if TYPE_CHECKING:
    from collections.abc import Mapping

Answers = tuple[Answer, ...]
Effects = tuple[Effect, ...]


class AttemptFailed(RebalanceLabError):
    """The attempt cannot succeed; `outcome` is what the trace says of it."""

    def __init__(self, message: str, outcome: str = "error") -> None:
        super().__init__(message)
        self.outcome = outcome


def _get(path: str) -> Request:
    return Request(Operation.GET_DATA, path)


def _children(path: str) -> Request:
    return Request(Operation.GET_CHILDREN, path)


def _delete(claim: Claim, group: str) -> Request:
    return Request(Operation.DELETE, paths.owner(group, claim.topic, claim.partition))


def _present(path: str, answer: Answer) -> bytes:
    """The data of a node that has to be there."""
    if answer.refusal is not None:
        raise AttemptFailed(f"{path} has gone while the group was read ({answer.refusal})")
    return answer.data


def _to(machine: Rebalance, state: State, **learned: object) -> Rebalance:
    """The machine in another state, with what the attempt has learned."""
    if not learned:
        return replace(machine, state=state)
    return replace(machine, state=state, attempt=replace(machine.attempt, **learned))  # type: ignore[arg-type]  # names are checked by replace


# -- R1, R3: the brokers ---------------------------------------------------------------------------------------


def list_cluster(machine: Rebalance) -> Effects:
    return (Ask("R1", (_children(paths.BROKER_IDS),)),)


def cluster_listed(machine: Rebalance, answers: Answers) -> Rebalance:
    return _to(machine, State.READING_CLUSTER, broker_names=answers[0].children)


def read_cluster(machine: Rebalance) -> Effects:
    return _read_brokers(machine, "R1")


def cluster_read(machine: Rebalance, answers: Answers) -> Rebalance:
    """A broker that has vanished since it was listed fails the attempt here, but not in R3."""
    for name, answer in zip(machine.attempt.broker_names, answers, strict=True):
        path = f"{paths.BROKER_IDS}/{name}"
        parse_broker(path, _present(path, answer))
    return _to(machine, State.READING_OWN)


def list_brokers(machine: Rebalance) -> Effects:
    return (Ask("R3", (_children(paths.BROKER_IDS),)),)


def brokers_listed(machine: Rebalance, answers: Answers) -> Rebalance:
    return _to(machine, State.READING_BROKERS, broker_names=answers[0].children)


def read_brokers(machine: Rebalance) -> Effects:
    return _read_brokers(machine, "R3")


def brokers_read(machine: Rebalance, answers: Answers) -> Rebalance:
    found = [
        parse_broker(f"{paths.BROKER_IDS}/{name}", answer.data)
        for name, answer in zip(machine.attempt.broker_names, answers, strict=True)
        if answer.refusal is None
    ]
    return _to(machine, State.STOPPING if found else State.AWAITING_BROKERS)


def _read_brokers(machine: Rebalance, step: str) -> Effects:
    names = machine.attempt.broker_names
    return (Ask(step, tuple(_get(f"{paths.BROKER_IDS}/{name}") for name in names)),) if names else ()


def await_brokers(machine: Rebalance) -> Effects:
    """R3a: counts as a success. Fetchers and claims stay as they are (KAFKA-969)."""
    return (Warn("no broker is registered: waiting for one, nothing was changed"), WatchBrokers())


# -- R2: our own registration ----------------------------------------------------------------------------------


def read_own(machine: Rebalance) -> Effects:
    return (Ask("R2", (_get(_own_path(machine)),)),)


def own_read(machine: Rebalance, answers: Answers) -> Rebalance:
    return _to(machine, State.LISTING_BROKERS, topics=_own_topics(machine, answers[0]))


def _own_path(machine: Rebalance) -> str:
    return paths.member_id(machine.rules.group, machine.rules.consumer_id)


def _own_topics(machine: Rebalance, answer: Answer) -> Mapping[str, int]:
    path = _own_path(machine)
    return parse_registration(path, _present(path, answer)).subscription


# -- R4, R5: stop and release ----------------------------------------------------------------------------------


def stop(machine: Rebalance) -> Effects:
    return stop_delivering(machine, tuple(machine.attempt.topics))


def stop_delivering(machine: Rebalance, topics: tuple[str, ...] | None) -> Effects:
    """Stop, clear, commit, in this order; a stream has stopped delivering when its queue has been cleared."""
    revoked = [(stream, had) for stream, had in sorted(machine.delivering.items()) if had]
    return (
        StopFetchers(),
        ClearStreams(topics),
        *(
            Emit("partitions_revoked", {"partitions": had, "all": frozenset()}, stream, machine.cause)
            for stream, had in revoked
        ),
        # Before the commit, so that a commit that fails cannot hide it from the application.
        *(TellRevoked(stream, had) for stream, had in revoked),
        *((CommitOffsets(),) if machine.rules.auto_commit else ()),
    )


def stopped(machine: Rebalance, _: Answers) -> Rebalance:
    return replace(machine, state=State.RELEASING, delivering=MappingProxyType({}))


def release(machine: Rebalance) -> Effects:
    """One topic at a time: its nodes are deleted, then the registry forgets the topic."""
    if not machine.owned:
        return ()
    topic = machine.owned[0].topic
    deletes = tuple(_delete(claim, machine.rules.group) for claim in machine.owned if claim.topic == topic)
    return (Ask("R5", deletes), ForgetOwned((topic,)))


def released(machine: Rebalance, _: Answers) -> Rebalance:
    if not machine.owned:
        return _to(machine, State.READING_OWN_AGAIN)
    topic = machine.owned[0].topic
    return replace(machine, owned=tuple(claim for claim in machine.owned if claim.topic != topic))


# -- R6, R7: read the group and decide -------------------------------------------------------------------------


def read_own_again(machine: Rebalance) -> Effects:
    return (Ask("R6", (_get(_own_path(machine)),)),)


def own_read_again(machine: Rebalance, answers: Answers) -> Rebalance:
    return _to(machine, State.READING_TOPICS, topics=_own_topics(machine, answers[0]))


def read_topics(machine: Rebalance) -> Effects:
    topics = (_get(paths.topic(topic)) for topic in machine.attempt.topics)
    return (Ask("R6", (*topics, _children(paths.member_ids(machine.rules.group)))),)


def topics_read(machine: Rebalance, answers: Answers) -> Rebalance:
    """A topic that does not exist has no partitions, which is no error."""
    partitions = {
        topic: parse_partitions(paths.topic(topic), None if answer.refusal else answer.data)
        for topic, answer in zip(machine.attempt.topics, answers[:-1], strict=True)
    }
    members = answers[-1].children
    return _to(machine, State.READING_MEMBERS, partitions=MappingProxyType(partitions), members=members)


def read_members(machine: Rebalance) -> Effects:
    group = machine.rules.group
    nodes = (_get(paths.member_id(group, member)) for member in machine.attempt.members)
    return (Ask("R6", (*nodes, _children(paths.member_ids(group)))),)


def members_read(machine: Rebalance, answers: Answers) -> Rebalance:
    """One member that has gone or cannot be read fails the attempt: nobody may guess what it subscribed to."""
    registrations = {}
    for member, answer in zip(machine.attempt.members, answers[:-1], strict=True):
        path = paths.member_id(machine.rules.group, member)
        registrations[member] = parse_registration(path, _present(path, answer))
    return _to(machine, State.DECIDING, threads=MappingProxyType(threads_per_topic(registrations)))


def decide_alone(machine: Rebalance) -> Effects:
    return ()


def decided(machine: Rebalance, _: Answers) -> Rebalance:
    attempt = machine.attempt
    mine = decide(machine.rules.consumer_id, attempt.topics, attempt.partitions, attempt.threads)
    pairs = ((TopicPartition(*partition), thread) for thread, part in mine.items() for partition in part)
    return _to(
        machine, State.READING_OFFSETS, decided=tuple((thread, partition) for partition, thread in sorted(pairs))
    )


# -- R8 to R11: offsets and claims -----------------------------------------------------------------------------


def read_offsets(machine: Rebalance) -> Effects:
    wanted = tuple(_get(_offset_path(machine, partition)) for _, partition in machine.attempt.decided)
    return (Ask("R8", wanted),) if wanted else ()


def offsets_read(machine: Rebalance, answers: Answers) -> Rebalance:
    if machine.closing:
        raise AttemptFailed("shutting down")
    claims = []
    for (thread, partition), answer in zip(machine.attempt.decided, answers, strict=True):
        offset = parse_offset(_offset_path(machine, partition), None if answer.refusal else answer.data)
        claims.append(Claim(partition.topic, partition.partition, thread, offset))
    return _to(machine, State.CLAIMING, claims=tuple(claims), claiming=0)


def _offset_path(machine: Rebalance, partition: TopicPartition) -> str:
    return paths.offset(machine.rules.group, partition.topic, partition.partition)


def claim(machine: Rebalance) -> Effects:
    """One partition after the other, and never an early stop: a conflict does not keep us from the next one."""
    wanted = _claiming(machine)
    if wanted is None:
        return ()
    path = paths.owner(machine.rules.group, wanted.topic, wanted.partition)
    return (Ask("R11", (Request(Operation.CREATE, path, wanted.thread.encode()),)),)


def claimed(machine: Rebalance, answers: Answers) -> Rebalance:
    wanted = _claiming(machine)
    if wanted is None:
        if machine.attempt.conflicts:
            return _to(machine, State.ROLLING_BACK)
        return replace(machine, state=State.STARTING, owned=machine.attempt.claims, delivering=_by_stream(machine))
    match answers[0].refusal:
        case Refusal.NODE_EXISTS:
            return _to(machine, State.CHECKING_CLAIM)
        case Refusal.NO_NODE:
            # Not a conflict, so nothing is rolled back: the gap of R11.
            raise AttemptFailed(f"the owner node of {wanted.topic_partition} could not be created")
    return _claim_won(machine, wanted)


def check_claim(machine: Rebalance) -> Effects:
    wanted = _claiming(machine)
    assert wanted is not None
    return (Ask("R11", (_get(paths.owner(machine.rules.group, wanted.topic, wanted.partition)),)),)


def claim_checked(machine: Rebalance, answers: Answers) -> Rebalance:
    """A node with our thread id counts as ours, whichever session it belongs to (KAFKA-1387)."""
    wanted = _claiming(machine)
    assert wanted is not None
    if answers[0].refusal is None and answers[0].data == wanted.thread.encode():
        return _claim_won(machine, wanted)
    attempt = machine.attempt
    return _to(machine, State.CLAIMING, conflicts=(*attempt.conflicts, wanted), claiming=attempt.claiming + 1)


def _claiming(machine: Rebalance) -> Claim | None:
    attempt = machine.attempt
    return attempt.claims[attempt.claiming] if attempt.claiming < len(attempt.claims) else None


def _claim_won(machine: Rebalance, won: Claim) -> Rebalance:
    attempt = machine.attempt
    return _to(machine, State.CLAIMING, claimed=(*attempt.claimed, won), claiming=attempt.claiming + 1)


def roll_back(machine: Rebalance) -> Effects:
    deletes = tuple(_delete(claim, machine.rules.group) for claim in machine.attempt.claimed)
    return (Ask("R11", deletes),) if deletes else ()


def rolled_back(machine: Rebalance, _: Answers) -> Rebalance:
    lost = ", ".join(str(claim.topic_partition) for claim in machine.attempt.conflicts)
    raise AttemptFailed(f"owned by others: {lost}", "conflict")


# -- R12: go -----------------------------------------------------------------------------------------------------


def start(machine: Rebalance) -> Effects:
    streams = sorted(machine.delivering.items())
    return (
        AdoptClaims(machine.attempt.claims),
        *(
            Emit("partitions_assigned", {"partitions": has, "all": has}, stream, machine.cause)
            for stream, has in streams
        ),
        *(TellAssigned(stream, has) for stream, has in streams),
        StartFetchers(),
    )


def _by_stream(machine: Rebalance) -> Mapping[int, frozenset[TopicPartition]]:
    streams: dict[int, set[TopicPartition]] = {}
    for claim in machine.attempt.claims:
        streams.setdefault(stream_of(claim.thread), set()).add(claim.topic_partition)
    return MappingProxyType({stream: frozenset(has) for stream, has in streams.items()})
