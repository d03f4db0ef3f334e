"""One rebalance of a group, as its members and its leader would compute it with a strategy.

Kafka's four strategies and those that are plugged in divide partitions among members. Members send with their
subscriptions what ours send (`coordinator/client/join_metadata.py`): a sticky member the assignment that it had, a
cooperative one what it owns, the others nothing but the generation. The strategies of the ZooKeeper consumer,
`thread-*`, divide them among threads: each stream is a member of its own, and nothing is remembered. By `uniform` and
`broker-range` the coordinator of the `consumer` design assigns, from the assignment that it keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.registry import ASSIGNORS, COOPERATIVE, JAVA_CLASSES, assignor, names
from kernel.assignors.sticky_data import NO_GENERATION, encode_cooperative, encode_sticky
from kernel.assignors.subscription import MemberSubscription
from kernel.assignors.target.group import NOBODY, TargetGroup, TopicGrid
from kernel.assignors.target.registry import TARGET_ASSIGNORS
from kernel.assignors.thread_range import thread_range
from kernel.assignors.thread_roundrobin import roundrobin_0_8_2, roundrobin_1_1
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown
from kernel.values import TopicPartition
from zkconsumer.znodes.payloads import thread_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.assigning.group import Group

ALL = "all"
STICKY = "sticky"
#: More rounds than any group takes; a strategy that never comes to rest would go on for ever.
ROUNDS_MAX = 10

#: {owner: its partitions}, for every owner that there is: members, or threads.
Owned = Mapping[str, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True)
class Round:
    """One generation of a rebalance: what its members gave up and got. An eager one gives up everything before it."""

    revoked: Owned
    given: Owned


@dataclass(frozen=True, slots=True)
class Held:
    """Who owns what, and in which generation; None before the first."""

    owned: Owned = field(default_factory=dict)
    generation: int | None = None

    def without(self, owners: Iterable[str]) -> Held:
        """What is left when these have forgotten everything."""
        forgotten = frozenset(owners)
        return Held({owner: tps for owner, tps in self.owned.items() if owner not in forgotten}, self.generation)

    def renamed(self, new_names: Mapping[str, str]) -> Held:
        """The assignment with its members renamed."""
        return Held({new_names.get(owner, owner): tps for owner, tps in self.owned.items()}, self.generation)


def _thread_range(partitions: Mapping[str, range], threads: Mapping[str, list[str]]) -> dict[str, list[TopicPartition]]:
    decided: dict[str, list[TopicPartition]] = {}
    for topic, its_threads in threads.items():
        for thread, numbers in thread_range(partitions[topic], its_threads).items():
            decided.setdefault(thread, []).extend(TopicPartition(topic, number) for number in numbers)
    return decided


#: The strategies of the ZooKeeper consumer. Round robin is another one in Kafka 0.8.2 than in 1.1.
THREADS: Mapping[str, Any] = MappingProxyType(
    {
        "thread-range": _thread_range,
        "thread-roundrobin-0.8.2": roundrobin_0_8_2,
        "thread-roundrobin-1.1": roundrobin_1_1,
    }
)

#: The strategies of the coordinator, by their names here and on the broker: its `range` is another one than that of a
#: classic group's members.
ON_THE_BROKER: Mapping[str, str] = MappingProxyType({"uniform": "uniform", "broker-range": "range"})


def chosen(given: Iterable[str]) -> tuple[str, ...]:
    """The names of strategies, without repetitions; `all` stands for those that divide among members.

    Raises `ConfigurationError` for an unknown one, or one that cannot be loaded.
    """
    found: list[str] = []
    for name in (part.strip() for text in given for part in text.split(",")):
        found += _among_members() if name == ALL else [_checked(name)]
    return tuple(dict.fromkeys(found))


def _among_members() -> list[str]:
    return list(dict.fromkeys([*ASSIGNORS, *ON_THE_BROKER, *sorted(names())]))


def all_names() -> list[str]:
    """What `chosen` takes, Java classes aside."""
    return [*_among_members(), *THREADS, ALL]


def _checked(given: str) -> str:
    name = JAVA_CLASSES.get(given, given)
    if name == "delayed":
        raise ConfigurationError("delayed needs time to pass, not only changes. See docs/design-delayed.md")
    if name not in (known := all_names()):
        raise ConfigurationError(unknown("strategy", name, known))
    if name not in ON_THE_BROKER and name not in THREADS:
        assignor(name)
    return name


def owners_of(group: Group, strategy: str) -> dict[str, tuple[str, ...]]:
    """{owner: its topics}: members, or threads."""
    if strategy not in THREADS:
        return {member.name: member.topics for member in group.members}
    return {thread: member.topics for member in group.members for thread in thread_ids(member.name, member.streams)}


def is_incremental(strategy: str) -> bool:
    """Whether members keep delivering what does not move."""
    return strategy in COOPERATIVE or strategy in ON_THE_BROKER


def rebalance(strategy: str, group: Group, before: Held) -> tuple[Held, tuple[Round, ...]]:
    """Who owns what afterwards, and the rounds that it took. Raises what the strategy raises."""
    if strategy in THREADS:
        return _among_threads(strategy, group, before)
    if strategy in ON_THE_BROKER:
        owned = assign_on_broker(strategy, group, before.owned)
        return Held(owned), (_round(before.owned, owned),)
    held = before
    rounds: list[Round] = []
    while len(rounds) < ROUNDS_MAX:
        keeps = _kept(strategy, group, held)
        answer = assignor(strategy)(group.sizes, _subscriptions(strategy, group, held, keeps))
        generation = 0 if held.generation is None else held.generation + 1
        after = Held({member.name: tuple(answer[member.name]) for member in group.members}, generation)
        rounds.append(_round(held.owned, after.owned))
        # Members that have to give up what they joined with join again; what they unsubscribed from is gone before.
        again = strategy in COOPERATIVE and bool(_round(keeps, after.owned).revoked)
        held = after
        if not again:
            break
    return held, tuple(rounds)


def _kept(strategy: str, group: Group, held: Held) -> Owned:
    """What each member owns while it joins: an eager one nothing, a cooperative one what it is still subscribed to."""
    if strategy not in COOPERATIVE:
        return {}
    return {
        member.name: tuple(tp for tp in held.owned.get(member.name, ()) if tp.topic in member.topics)
        for member in group.members
    }


def _subscriptions(strategy: str, group: Group, held: Held, keeps: Owned) -> dict[str, MemberSubscription]:
    return {
        member.name: MemberSubscription(
            topics=member.topics,
            instance_id=member.instance_id,
            owned=tuple(sorted(keeps.get(member.name, ()))),
            generation=held.generation if member.name in held.owned else None,
            user_data=_user_data(strategy, held, member.name),
        )
        for member in group.members
    }


def _user_data(strategy: str, held: Held, member: str) -> bytes | None:
    had = held.owned.get(member)
    if strategy in COOPERATIVE:
        return encode_cooperative(NO_GENERATION if had is None or held.generation is None else held.generation)
    return None if strategy != STICKY or had is None else encode_sticky(sorted(had), held.generation)


def _among_threads(strategy: str, group: Group, before: Held) -> tuple[Held, tuple[Round, ...]]:
    threads: dict[str, list[str]] = {}
    for member in group.members:
        for topic in member.topics:
            threads.setdefault(topic, []).extend(thread_ids(member.name, member.streams))
    partitions = {topic: range(group.sizes[topic]) for topic in threads}
    decided = THREADS[strategy](partitions, threads) if threads else {}
    owned = {thread: tuple(decided.get(thread, ())) for thread in owners_of(group, strategy)}
    return Held(owned), (_round(before.owned, owned),)


def assign_on_broker(
    strategy: str, group: Group, owned: Mapping[str, tuple[TopicPartition, ...]]
) -> dict[str, tuple[TopicPartition, ...]]:
    """{member: its partitions}; `owned` is the assignment before.

    Kafka gives topics random ids, and who gives up which of its partitions depends on them. Here an id follows from the
    name, so that the answer is always the same.
    """
    by_name = group.by_name
    rows = texts_in_hash_order(by_name)
    wanted = {topic for member in group.members for topic in member.topics}
    alike = all(wanted.issubset(member.topics) for member in group.members)
    ids = {name: uuid5(NAMESPACE_URL, name).bytes for name in sorted(wanted) if group.sizes[name]}
    if not ids:
        return dict.fromkeys(by_name, ())
    grid = TopicGrid.of_names(wanted, {name: (topic_id, group.sizes[name]) for name, topic_id in ids.items()})
    topics = {topic_id: name for name, topic_id in ids.items()}
    places = {topics[topic_id]: place for place, topic_id in enumerate(grid.ids)}
    owner = np.full(grid.partitions, NOBODY, np.int32)
    for row, member in enumerate(rows):
        kept = [tp for tp in owned.get(member, ()) if tp.topic in places and tp.topic in by_name[member].topics]
        owner[[int(grid.starts[places[tp.topic]]) + tp.partition for tp in kept]] = row
    subscribed = np.array([[topics[each] in by_name[member].topics for each in grid.ids] for member in rows], np.bool_)
    instances = tuple(by_name[member].instance_id for member in rows)

    def topics_of(row: int) -> list[bytes]:
        return [ids[name] for name in dict.fromkeys(tp.topic for tp in owned.get(rows[row], ())) if name in ids]

    target_group = TargetGroup(tuple(rows), instances, grid, None if alike else subscribed, owner, topics_of)
    target = TARGET_ASSIGNORS[ON_THE_BROKER[strategy]](target_group)
    found: dict[str, list[TopicPartition]] = {member.name: [] for member in group.members}
    for topic_id, start, size in zip(grid.ids, grid.starts.tolist(), grid.sizes.tolist(), strict=False):
        for number, row in enumerate(target[start : start + size].tolist()):
            if row != NOBODY:
                found[rows[row]].append(TopicPartition(topics[topic_id], number))
    return {member: tuple(tps) for member, tps in found.items()}


def _round(before: Owned, after: Owned) -> Round:
    """What each owner lost and got, in order; owners without either are left out."""
    revoked = {owner: _less(tps, after.get(owner, ())) for owner, tps in before.items() if owner in after}
    given = {owner: _less(tps, before.get(owner, ())) for owner, tps in after.items()}
    return Round({o: tps for o, tps in revoked.items() if tps}, {o: tps for o, tps in given.items() if tps})


def _less(some: Iterable[TopicPartition], others: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(set(some).difference(others)))
