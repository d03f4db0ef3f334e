"""What the leader of a `delayed` group decides: Connect's assignor, with partitions where Connect has tasks.

Article 002 (docs/sources.md) shows Connect's incremental cooperative rebalancing on consumers. It maps to groups like
this: topics with the same subscribers are one connector, their partitions its tasks, the subscribers its workers, and
what a member claims to own is what the worker runs. The connector itself is not assigned. Usually every member
subscribes to the same topics, and there is one connector. Otherwise there are several, each assigned among its own
subscribers, with its own memory; members get the shortest of the running delays. A topic whose subscribers change keeps
what is remembered of it. A member that drops a topic is not lost: the group does not wait for it to return to that
topic.

Only the leader has a memory. A new leader starts without one and treats lost partitions as new ones: it assigns them at
once. So does a leader whose last decision did not reach the group (`completed`).

Source: KIP-415; IncrementalCooperativeAssignor and WorkerCoordinator of connect-runtime 4.1.1.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from kernel.assignors.connect import Circumstances, Memory, assign_incrementally
from kernel.assignors.connect_units import Unit, in_order
from kernel.assignors.subscription import java_order
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kernel.assignors.subscription import MemberSubscription

#: The strategy's name, in partition.assignment.strategy and in JoinGroup.
PROTOCOL = "delayed"

_NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInput:
    """One round's input: the members of `generation`, and the number of partitions of each topic.

    `now_ms` is in milliseconds of a monotonic clock; `max_delay_ms` is scheduled.rebalance.max.delay.ms.
    """

    now_ms: int
    max_delay_ms: int
    generation: int
    sizes: Mapping[str, int]
    subscriptions: Mapping[str, MemberSubscription]


@dataclass(frozen=True, slots=True)
class RoundDecision:
    """One round's result: each member's full new set, and the delay after which all rejoin; 0 for no rejoin."""

    delay_ms: int
    assignments: Mapping[str, frozenset[TopicPartition]]


class Connector(NamedTuple):
    """Topics with the same subscribers, and their memory."""

    topics: frozenset[str]
    memory: Memory


@dataclass(frozen=True, slots=True)
class DelayedLeader:
    """One member's memory as a leader: kept while it is in the group, empty until it first leads."""

    connectors: tuple[Connector, ...] = ()
    completed_generation: int = _NO_GENERATION

    def completed(self, generation: int) -> DelayedLeader:
        """Record that the group has synced `generation`; every member does, whether it leads or not."""
        return replace(self, completed_generation=generation)

    def decide(self, given: RoundInput) -> tuple[DelayedLeader, RoundDecision]:
        """Decide one round. The decision has an entry for every member."""
        assignments: dict[str, set[TopicPartition]] = {member: set() for member in given.subscriptions}
        claims, memories = _claims(given), _MemoryByTopic(self.connectors)
        connectors, delays = [], []
        for topics, workers in _connectors(given):
            configured, running = _circumstances(given, topics, workers, claims)
            memory, delay_ms, after = _assigned(
                memories.of(topics, absent=given.subscriptions.keys() - workers),
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
            delays += [delay_ms] if delay_ms else []
            for worker, units in after.items():
                assignments[worker] |= {_partition(unit) for unit in units}
        decision = RoundDecision(
            min(delays, default=0), {member: frozenset(has) for member, has in assignments.items()}
        )
        return replace(self, connectors=tuple(connectors)), decision


def _assigned(memory: Memory, given: Circumstances) -> tuple[Memory, int, Mapping[str, set[Unit]]]:
    """The memory, the delay, and the units of each worker after a round.

    A round that ends a delay can revoke units from the worker that it has just given them to. Connect tells that
    worker, which rejoins, and the next round assigns them. A consumer learns its new set alone: without anything to
    stop it does not rejoin. As nobody runs these units, the next round is decided at once.
    """
    memory, decided = assign_incrementally(memory, given)
    after = {
        worker: {*units, *decided.assigned[worker]}.difference(decided.revoked[worker])
        for worker, units in given.running.items()
    }
    if any(decided.revoked.values()) and all(after[worker] >= set(units) for worker, units in given.running.items()):
        running = {worker: in_order(units) for worker, units in after.items()}
        return _assigned(memory, replace(given, completed_generation=given.generation, running=running))
    return memory, decided.delay_ms, after


class _MemoryByTopic:
    """The old connectors' memories, split by topic once, however many connectors there are now."""

    def __init__(self, connectors: tuple[Connector, ...]) -> None:
        self._memories = [connector.memory for connector in connectors]
        self._at = {topic: at for at, connector in enumerate(connectors) for topic in connector.topics}
        self._assigned = _by_topic(memory.assigned for memory in self._memories)
        self._revoked = _by_topic(memory.revoked for memory in self._memories)

    def of(self, topics: frozenset[str], *, absent: set[str]) -> Memory:
        """Merge what is remembered of these topics; the members `absent` have dropped them."""
        shares = [self._memories[at] for at in sorted({self._at[topic] for topic in topics & self._at.keys()})]
        if not shares:
            return Memory()
        return Memory(
            assigned=frozenset(unit for topic in topics for unit in self._assigned.get(topic, ())),
            revoked=frozenset(unit for topic in topics for unit in self._revoked.get(topic, ())),
            workers=frozenset().union(*(share.workers for share in shares)) - absent,
            generation=shares[0].generation,  # the same for all: every round decides all connectors
            scheduled_ms=max(share.scheduled_ms for share in shares),
            delay_ms=max(share.delay_ms for share in shares),
            candidates=tuple(dict.fromkeys(candidate for share in shares for candidate in share.candidates)),
            has_revoked=any(share.has_revoked for share in shares),
            revocations=max(share.revocations for share in shares),
        )


def _by_topic(units: Iterable[frozenset[Unit]]) -> Mapping[str, list[Unit]]:
    by_topic: dict[str, list[Unit]] = {}
    for unit in itertools.chain.from_iterable(units):
        by_topic.setdefault(unit.connector, []).append(unit)
    return by_topic


def _connectors(given: RoundInput) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield (topics, their subscribers), in order, without topics that do not exist."""
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


def _claims(given: RoundInput) -> Mapping[str, Mapping[str, set[int]]]:
    """Return {topic: {member: partitions that it claims}}, for all members in one pass."""
    claims: dict[str, dict[str, set[int]]] = {}
    for member, subscription in given.subscriptions.items():
        for topic, partition in subscription.owned:
            claims.setdefault(topic, {}).setdefault(member, set()).add(partition)
    return claims


def _circumstances(
    given: RoundInput, topics: frozenset[str], workers: frozenset[str], claims: Mapping[str, Mapping[str, set[int]]]
) -> tuple[frozenset[Unit], dict[str, list[Unit]]]:
    """Return the units to assign, and those that each worker runs, topics in Java's order.

    A partition that a former subscriber still claims is not assigned until it has revoked it.
    """
    configured: list[Unit] = []
    running: dict[str, list[Unit]] = {worker: [] for worker in workers}
    for topic in sorted(topics, key=java_order):
        claimed = claims.get(topic, {})
        elsewhere = set().union(*(numbers for member, numbers in claimed.items() if member not in workers))
        units = {n: Unit(topic, n) for n in range(given.sizes[topic]) if n not in elsewhere}
        configured += units.values()
        for member, numbers in claimed.items():
            if member in workers:
                running[member] += [units[n] for n in sorted(numbers & units.keys())]
    return frozenset(configured), running


def _partition(unit: Unit) -> TopicPartition:
    assert unit.task is not None, unit
    return TopicPartition(unit.connector, unit.task)
