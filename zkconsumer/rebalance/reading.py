"""R1 to R3 and R6 of a rebalance: reading the brokers and the group.

For each member with a pattern, the names of all topics are read right after its node, as the original does. Reads that
are known to follow each other are sent together, so the machine remembers who had a pattern last time. The first
pattern in a group without any is found only after all nodes have been read; the names of all topics are then read after
them: the same reads, once in a different order.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import UserError
from kernel.zookeeper import paths
from zkconsumer.rebalance.effects import Ask, Operation, Request, Response, Warn, WatchBrokers
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.rebalance.steps import Effects, Jump, Responses, children, get, present, with_attempt
from zkconsumer.znodes.filters import matching
from zkconsumer.znodes.payloads import (
    LEGAL_TOPIC,
    STATIC,
    Registration,
    UnreadableZnode,
    parse_broker,
    parse_partitions,
    parse_registration,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# -- R1, R3: the brokers ---------------------------------------------------------------------------------------


def sync_brokers(_: Rebalance) -> Effects:
    return (Ask("R1", (Request(Operation.SYNC, paths.BROKER_IDS),)),)


def list_cluster(_: Rebalance) -> Effects:
    return (Ask("R1", (children(paths.BROKER_IDS),)),)


def list_brokers(_: Rebalance) -> Effects:
    return (Ask("R3", (children(paths.BROKER_IDS),)),)


def brokers_listed(machine: Rebalance, responses: Responses) -> Rebalance:
    return with_attempt(machine, broker_names=responses[0].children)


def read_cluster(machine: Rebalance) -> Effects:
    return _read_brokers(machine, "R1")


def cluster_read(machine: Rebalance, responses: Responses) -> Rebalance:
    """A broker that has disappeared since it was listed fails the attempt here, but not in R3."""
    for name, response in zip(machine.attempt.broker_names, responses, strict=True):
        path = f"{paths.BROKER_IDS}/{name}"
        parse_broker(path, present(path, response))
    return machine


def read_brokers(machine: Rebalance) -> Effects:
    return _read_brokers(machine, "R3")


def brokers_read(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    found = [
        parse_broker(f"{paths.BROKER_IDS}/{name}", response.data)
        for name, response in zip(machine.attempt.broker_names, responses, strict=True)
        if response.refusal is None
    ]
    return machine if found else Jump(machine, RebalanceState.AWAITING_BROKERS)


def _read_brokers(machine: Rebalance, step: str) -> Effects:
    names = machine.attempt.broker_names
    return (Ask(step, tuple(get(f"{paths.BROKER_IDS}/{name}") for name in names)),) if names else ()


def await_brokers(_: Rebalance) -> Effects:
    """R3a: counts as a success. Fetchers and claims stay as they are (KAFKA-969)."""
    return (Warn("no broker is registered: waiting for one, nothing was changed"), WatchBrokers())


def brokers_awaited(machine: Rebalance, _: Responses) -> Jump:
    return Jump(machine, RebalanceState.IDLE)


# -- R2 and R6: our own registration ---------------------------------------------------------------------------


def sync_group(machine: Rebalance) -> Effects:
    return (Ask("R6", (Request(Operation.SYNC, paths.member_ids(machine.config.group)),)),)


def read_own(machine: Rebalance) -> Effects:
    return (Ask("R2", (get(_own_path(machine)),)),)


def read_own_again(machine: Rebalance) -> Effects:
    return (Ask("R6", (get(_own_path(machine)),)),)


def own_read(machine: Rebalance, responses: Responses) -> Rebalance:
    path = _own_path(machine)
    own = parse_registration(path, present(path, responses[0]))
    return with_attempt(machine, own=own, topics=own.subscription)


def list_topics(machine: Rebalance) -> Effects:
    return _list_topics(machine, "R2")


def list_topics_again(machine: Rebalance) -> Effects:
    return _list_topics(machine, "R6")


def _list_topics(machine: Rebalance, step: str) -> Effects:
    return (Ask(step, (children(paths.BROKER_TOPICS),)),) if _has_pattern(machine) else ()


def topics_listed(machine: Rebalance, responses: Responses) -> Rebalance:
    """With a pattern, our topics are those that match it now."""
    own = machine.attempt.own
    assert own is not None
    if not responses:
        return machine
    return with_attempt(machine, topics=_matched(machine, _own_path(machine), own, responses[0]))


def _own_path(machine: Rebalance) -> str:
    return paths.member_id(machine.config.group, machine.config.consumer_id)


def _has_pattern(machine: Rebalance) -> bool:
    own = machine.attempt.own
    assert own is not None
    return own.pattern != STATIC


def _matched(machine: Rebalance, path: str, registration: Registration, listed: Response) -> Mapping[str, int]:
    """{topic: streams} of a member with a pattern."""
    ((pattern, streams),) = list(registration.subscription.items())[:1]
    try:
        topics = matching(
            registration.pattern,
            pattern,
            listed.children,
            exclude_internal=machine.config.exclude_internal_topics,
        )
    except UserError as error:
        raise UnreadableZnode(path, str(error)) from error
    return MappingProxyType(dict.fromkeys(topics, streams))


# -- R6: topics and members --------------------------------------------------------------------------------------


def read_topics(machine: Rebalance) -> Effects:
    topics = (get(paths.topic(topic)) for topic in machine.attempt.topics)
    return (Ask("R6", (*topics, _ids(machine))),)


def topics_read(machine: Rebalance, responses: Responses) -> Rebalance:
    """A topic that does not exist has no partitions, which is not an error."""
    partitions = _partitions(machine.attempt.topics, responses[:-1])
    return with_attempt(machine, partitions=partitions, unread=responses[-1].children)


def list_members(machine: Rebalance) -> Effects:
    return (Ask("R6", (_ids(machine),)),)


def members_listed(machine: Rebalance, responses: Responses) -> Rebalance:
    return with_attempt(machine, unread=responses[0].children, members_listed=True)


def read_group_topics(machine: Rebalance) -> Effects:
    return (Ask("R6", (*(get(paths.topic(topic)) for topic in _group_topics(machine)), _ids(machine))),)


def group_topics_read(machine: Rebalance, responses: Responses) -> Rebalance:
    return with_attempt(machine, partitions=_partitions(_group_topics(machine), responses[:-1]))


def _group_topics(machine: Rebalance) -> list[str]:
    """The topics of all members, as 1.1 reads them. Names that are illegal for topics are skipped: no partitions."""
    every = {topic for topics in machine.attempt.subscriptions.values() for topic in topics}
    return sorted(topic for topic in every if LEGAL_TOPIC.match(topic))


def _partitions(topics: Iterable[str], responses: Sequence[Response]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType(
        {
            topic: parse_partitions(paths.topic(topic), None if response.refusal else response.data)
            for topic, response in zip(topics, responses, strict=True)
        }
    )


def _ids(machine: Rebalance) -> Request:
    return children(paths.member_ids(machine.config.group))


class _Read(Enum):
    """What is read next of a member; the ids are read once more at the end."""

    NODE = auto()
    TOPICS = auto()  #: the names of all topics, for its pattern
    IDS = auto()


def read_members(machine: Rebalance) -> Effects:
    return (Ask("R6", tuple(_request(machine, what, member) for what, member in _next_reads(machine))),)


def _request(machine: Rebalance, what: _Read, member: str) -> Request:
    match what:
        case _Read.NODE:
            return get(paths.member_id(machine.config.group, member))
        case _Read.TOPICS:
            return children(paths.BROKER_TOPICS)
        case _Read.IDS:
            return _ids(machine)


def _next_reads(machine: Rebalance) -> list[tuple[_Read, str]]:
    """The reads that can be sent together, in the original's order, given what is known about the members."""
    attempt, known = machine.attempt, machine.wildcards
    patterns_expected = _has_pattern(machine) or any(known.values())
    reads = [(_Read.TOPICS, member) for member in attempt.unmatched]
    for member in attempt.unread:
        reads.append((_Read.NODE, member))
        if member not in known and patterns_expected:
            return reads  # the next read depends on the contents of this node
        if known.get(member):
            reads.append((_Read.TOPICS, member))
    if not attempt.members_listed:
        reads.append((_Read.IDS, ""))
    return reads


def members_read(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    """A member that has left or cannot be read fails the attempt, since its subscription is unknown."""
    return _members_read(machine, responses, lenient=False)


def readable_members_read(machine: Rebalance, responses: Responses) -> Rebalance | Jump:
    """Leave out members that cannot be read (fix.skip.unreadable.members); one that has left fails the attempt."""
    return _members_read(machine, responses, lenient=True)


def _members_read(machine: Rebalance, responses: Responses, *, lenient: bool) -> Rebalance | Jump:
    reads = _next_reads(machine)
    found = _Found(machine)
    for (what, member), response in zip(reads, responses, strict=True):
        try:
            found.take(what, member, response)
        except UnreadableZnode as error:
            if not lenient or member == machine.config.consumer_id:
                raise
            found.left_out.append(str(error))
    machine = found.kept()
    attempt = machine.attempt
    if attempt.unread or attempt.unmatched or not attempt.members_listed:
        return Jump(machine, RebalanceState.READING_MEMBERS)
    wildcards = {member: registration.pattern != STATIC for member, registration in attempt.registrations.items()}
    return replace(machine, wildcards=MappingProxyType(wildcards))


class _Found:
    """Collects what the responses of one batch add to the attempt's knowledge of the members."""

    def __init__(self, machine: Rebalance) -> None:
        attempt = machine.attempt
        self._machine = machine
        self._registrations = dict(attempt.registrations)
        self._subscriptions = dict(attempt.subscriptions)
        self._unread = dict.fromkeys(attempt.unread)
        self._unmatched = dict.fromkeys(attempt.unmatched)
        self._listed = attempt.members_listed
        self.left_out = list(attempt.left_out)

    def take(self, what: _Read, member: str, response: Response) -> None:
        path = paths.member_id(self._machine.config.group, member)
        match what:
            case _Read.NODE:
                del self._unread[member]
                registration = self._registrations[member] = parse_registration(path, present(path, response))
                if registration.pattern == STATIC:
                    self._subscriptions[member] = registration.subscription
                else:
                    self._unmatched[member] = None
            # If the member no longer has a pattern, the names were read for nothing and are ignored.
            case _Read.TOPICS if member in self._unmatched:
                del self._unmatched[member]
                matched = _matched(self._machine, path, self._registrations[member], response)
                self._subscriptions[member] = matched
            case _Read.IDS:
                self._listed = True

    def kept(self) -> Rebalance:
        return with_attempt(
            self._machine,
            unread=tuple(self._unread),
            unmatched=tuple(self._unmatched),
            members_listed=self._listed,
            registrations=MappingProxyType(self._registrations),
            subscriptions=MappingProxyType(self._subscriptions),
            left_out=tuple(self.left_out),
        )
