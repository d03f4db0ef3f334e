"""The two round robins of the ZooKeeper-era consumer, over threads in hash order (0.8.2 and 1.1).

Both sort the threads of the group as strings and the partitions by the Java hash of a string, which spreads the
partitions of a topic, and then assign them in turn. They differ in that string and in what they require of the group,
so members of both releases in one group leave partitions unowned (9 of 19 in one case).

Partitions with equal hashes are assigned by topic and number; Kafka assigns them in the order of a hash map.

Source: RoundRobinAssignor in kafka.consumer.PartitionAssignor of Kafka 0.8.2.2 and 1.1.1; KAFKA-2434 dropped the
precondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.roundrobin import assign_in_turn
from kernel.assignors.subscription import java_order
from kernel.errors import RebalanceLabError
from kernel.java_hash import java_hash
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class UnequalSubscriptions(RebalanceLabError):
    """0.8.2's round robin needs the same threads for every topic of the group."""


def roundrobin_0_8_2(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Sequence[str]]
) -> dict[str, list[TopicPartition]]:
    """{thread: its partitions}, from the {topic: partitions} to assign and the {topic: threads} of the whole group.

    Raises `UnequalSubscriptions` unless all topics of the group, to be assigned or not, have the same threads, and if
    the group has no topic (Kafka's NoSuchElementException, which 0.9 avoids).
    """
    if not threads:
        raise UnequalSubscriptions("round robin of 0.8.2 cannot assign: no member of the group subscribes to a topic")
    first, *others = threads
    expected = frozenset(threads[first])
    for topic in others:
        if frozenset(threads[topic]) != expected:
            raise UnequalSubscriptions(
                "round robin of 0.8.2 needs the same topics and numbers of streams of every member: "
                f"{_some(threads[first])} consume {first}, but {_some(threads[topic])} consume {topic}"
            )
    every = frozenset(partitions)
    return assign_in_turn(
        _in_hash_order(partitions, lambda tp: f"[{tp.topic},{tp.partition}]"),
        sorted(expected, key=java_order),
        dict.fromkeys(expected, every),
    )


def roundrobin_1_1(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Sequence[str]]
) -> dict[str, list[TopicPartition]]:
    """`roundrobin_0_8_2` for any subscriptions: skips threads that do not consume the topic.

    `partitions` must hold all topics of the group, or members would compute different assignments.
    """
    topics_of: dict[str, set[str]] = {}
    for topic, its_threads in threads.items():
        for thread in its_threads:
            topics_of.setdefault(thread, set()).add(topic)
    wanted = {topic: numbers for topic, numbers in partitions.items() if threads.get(topic)}
    return assign_in_turn(
        _in_hash_order(wanted, lambda tp: f"{tp.topic}-{tp.partition}"), sorted(topics_of, key=java_order), topics_of
    )


def _in_hash_order(
    partitions: Mapping[str, Sequence[int]], text: Callable[[TopicPartition], str]
) -> list[TopicPartition]:
    every = (TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers)
    return sorted(every, key=lambda tp: (java_hash(text(tp)), tp))


def _some(threads: Sequence[str]) -> str:
    """The first few threads, since the text goes into logs and traces."""
    shown = ", ".join(sorted(threads)[:5])
    return shown if len(threads) <= 5 else f"{shown} and {len(threads) - 5} more"
