"""R7 of a rebalance: compute this member's own part from what it has read of the group.

Every member computes its part from what *it* has read. The parts fit together only if all members have read the same
and use the same strategy. The strategies themselves are the kernel's assignors over threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kernel.assignors.thread_range import thread_range
from kernel.assignors.thread_roundrobin import roundrobin_0_8_2, roundrobin_1_1
from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from zkconsumer.znodes.payloads import thread_ids

Partitions = Mapping[str, Sequence[int]]  #: {topic: its partitions}
Threads = Mapping[str, Sequence[str]]  #: {topic: the threads of the whole group for it}


class NotAMember(RebalanceLabError):
    """The group as read lacks this member or one of its threads: its session has ended meanwhile."""


def threads_per_topic(subscriptions: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """{topic: the threads of the whole group for it, sorted}, from {consumer id: {topic: streams}}."""
    threads: dict[str, list[str]] = {}
    for consumer_id, topics in subscriptions.items():
        for topic, streams in topics.items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, streams))
    return {topic: sorted(ids) for topic, ids in threads.items()}


def decide(
    strategy: str, consumer_id: str, my_topics: Mapping[str, int], partitions: Partitions, threads: Threads
) -> dict[str, list[TopicPartition]]:
    """{our thread: its partitions}; a thread without partitions may be missing.

    `strategy` is a key of `STRATEGIES`; `my_topics` is {topic: streams}; `partitions` covers our topics, for
    roundrobin-1.1 all topics of the group. Raises the strategy's own error if it refuses the group.
    """
    return STRATEGIES[strategy](consumer_id, my_topics, partitions, threads)


def _range(
    consumer_id: str, my_topics: Mapping[str, int], partitions: Partitions, threads: Threads
) -> dict[str, list[TopicPartition]]:
    """Topic by topic. Raises `NotAMember` if the group lacks one of our topics or threads (Kafka asserts it)."""
    decided: dict[str, list[TopicPartition]] = {}
    for topic, streams in my_topics.items():
        group_threads = threads.get(topic, ())
        mine = thread_ids(consumer_id, streams)
        missing = set(mine).difference(group_threads)
        if missing:
            raise NotAMember(f"the group as read does not know {', '.join(sorted(missing))} for topic {topic}")
        pieces = thread_range(partitions[topic], group_threads)
        for thread in mine:
            decided.setdefault(thread, []).extend(TopicPartition(topic, partition) for partition in pieces[thread])
    return decided


def _roundrobin(strategy: Callable[[Partitions, Threads], dict[str, list[TopicPartition]]]) -> Strategy:
    def ours(
        consumer_id: str, my_topics: Mapping[str, int], partitions: Partitions, threads: Threads
    ) -> dict[str, list[TopicPartition]]:
        mine = {thread for streams in my_topics.values() for thread in thread_ids(consumer_id, streams)}
        return {thread: part for thread, part in strategy(partitions, threads).items() if thread in mine}

    return ours


Strategy = Callable[[str, Mapping[str, int], Partitions, Threads], dict[str, list[TopicPartition]]]

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "range": _range,
        "roundrobin-0.8.2": _roundrobin(roundrobin_0_8_2),
        "roundrobin-1.1": _roundrobin(roundrobin_1_1),
    }
)
