"""What the leader of a `delayed` group decides: Connect's assignor, with partitions where Connect has tasks.

Seed 002 shows Connect's incremental cooperative rebalancing on consumers. So it is here: topics that the same members
subscribe to are one connector, their partitions its tasks, their subscribers the workers, and what a member says it
owns is what the worker runs. The connector itself is nobody's work. When every member subscribes to the same topics,
which is the rule, there is one connector. Where subscriptions differ there are several, each shared out among its own
subscribers, with a memory of its own; the delay that members are told is the shortest that runs. A topic whose
subscribers change takes along what is remembered of it. A member that goes on without a topic is not lost: nobody
waits for it to return to that topic.

The memory is the leader's alone. A new leader begins with none and takes lost partitions for new ones: they are
assigned at once. So does a leader whose last decision did not get through (`completed`).

Source: KIP-415; IncrementalCooperativeAssignor and WorkerCoordinator of connect-runtime 4.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from kernel.assignors.connect import Circumstances, Memory, assign_incrementally
from kernel.assignors.connect_units import Unit, in_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernel.assignors.subscription import MemberSubscription

#: The strategy's name, in partition.assignment.strategy and in JoinGroup.
PROTOCOL = "delayed"

_NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """One round's input: who has joined `generation`, and how many partitions each topic has.

    `now_ms` is milliseconds of a clock that never goes back; `max_delay_ms` is scheduled.rebalance.max.delay.ms.
    """

    now_ms: int
    max_delay_ms: int
    generation: int
    sizes: Mapping[str, int]
    subscriptions: Mapping[str, MemberSubscription]


@dataclass(frozen=True, slots=True)
class Decision:
    """One round's answer: each member's full new set, and after how many milliseconds all rejoin; 0 is not at all."""

    delay_ms: int
    assignments: Mapping[str, frozenset[TopicPartition]]


class Connector(NamedTuple):
    """Topics with the same subscribers, and what is remembered of them."""

    topics: frozenset[str]
    memory: Memory


@dataclass(frozen=True, slots=True)
class DelayedLeader:
    """One member's memory as a leader: kept while it is a member, empty until it leads for the first time."""

    connectors: tuple[Connector, ...] = ()
    completed_generation: int = _NO_GENERATION

    def completed(self, generation: int) -> DelayedLeader:
        """The group has synced `generation`; every member says so to its memory, whether it leads or not."""
        return replace(self, completed_generation=generation)

    def decide(self, given: Gathering) -> tuple[DelayedLeader, Decision]:
        """Decide one round. Every member of the gathering is named in the answer."""
        assignments: dict[str, set[TopicPartition]] = {member: set() for member in given.subscriptions}
        connectors, delays = [], []
        for topics, workers in _connectors(given):
            configured = _configured(given, topics, workers)
            running = {worker: in_order(_claimed(given, worker) & configured) for worker in workers}
            memory, decided = assign_incrementally(
                self._memory_of(topics, absent=given.subscriptions.keys() - workers),
                Circumstances(
                    now_ms=given.now_ms,
                    max_delay_ms=given.max_delay_ms,
                    completed_generation=self.completed_generation,
                    generation=given.generation,
                    configured=configured,
                    running=running,
                ),
            )
            connectors.append(Connector(topics, memory))
            delays += [decided.delay_ms] if decided.delay_ms else []
            for worker in workers:
                kept = set(running[worker]) - set(decided.revoked[worker])
                assignments[worker] |= {_partition(unit) for unit in kept.union(decided.assigned[worker])}
        decision = Decision(min(delays, default=0), {member: frozenset(has) for member, has in assignments.items()})
        return replace(self, connectors=tuple(connectors)), decision

    def _memory_of(self, topics: frozenset[str], *, absent: set[str]) -> Memory:
        """What is remembered of these topics, whichever connectors they were of; `absent` have left the topics."""
        shares = [connector.memory for connector in self.connectors if connector.topics & topics]
        if not shares:
            return Memory()
        return Memory(
            assigned=frozenset(unit for share in shares for unit in share.assigned if unit.connector in topics),
            revoked=frozenset(unit for share in shares for unit in share.revoked if unit.connector in topics),
            workers=frozenset().union(*(share.workers for share in shares)) - absent,
            generation=shares[0].generation,  # every round decides for all of them
            scheduled_ms=max(share.scheduled_ms for share in shares),
            delay_ms=max(share.delay_ms for share in shares),
            candidates=tuple(dict.fromkeys(candidate for share in shares for candidate in share.candidates)),
            has_revoked=any(share.has_revoked for share in shares),
            revocations=max(share.revocations for share in shares),
        )


def _connectors(given: Gathering) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """(topics, their subscribers), in order; topics that do not exist are nobody's."""
    subscribers: dict[str, set[str]] = {}
    for member, subscription in given.subscriptions.items():
        for topic in subscription.topics:
            subscribers.setdefault(topic, set()).add(member)
    topics_of: dict[frozenset[str], set[str]] = {}
    for topic in sorted(subscribers):
        if given.sizes.get(topic, 0):
            topics_of.setdefault(frozenset(subscribers[topic]), set()).add(topic)
    for members, topics in topics_of.items():
        yield frozenset(topics), members


def _configured(given: Gathering, topics: frozenset[str], workers: frozenset[str]) -> frozenset[Unit]:
    """What there is to hand out: not what a member still claims that has left the topic, until it has given it up."""
    elsewhere = {unit for member in given.subscriptions.keys() - workers for unit in _claimed(given, member)}
    return frozenset(Unit(topic, n) for topic in topics for n in range(given.sizes[topic])) - elsewhere


def _claimed(given: Gathering, member: str) -> frozenset[Unit]:
    return frozenset(Unit(tp.topic, tp.partition) for tp in given.subscriptions[member].owned)


def _partition(unit: Unit) -> TopicPartition:
    assert unit.task is not None, unit
    return TopicPartition(unit.connector, unit.task)
