"""R6 and R7 of a rebalance: from what was read of the group to this member's own part.

Every member computes this for itself from what *it* has read, and in 0.8.2 only its own part; that the parts
of all members fit together rests on their having read the same. Range over threads, topic by topic
(`kernel.assignors.thread_range`); the word `roundrobin` is refused by the settings so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.thread_range import thread_range
from kernel.errors import RebalanceLabError
from zkconsumer.payloads import STATIC, Registration, thread_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class NotAMember(RebalanceLabError):
    """The group that was read lacks this member or one of its threads: its session has gone meanwhile."""


def threads_per_topic(registrations: Mapping[str, Registration]) -> dict[str, list[str]]:
    """{topic: the threads of the whole group for it, sorted}, from {consumer id: its registration}."""
    threads: dict[str, list[str]] = {}
    for consumer_id, registration in registrations.items():
        if registration.pattern != STATIC:
            raise RebalanceLabError(
                f"{consumer_id} subscribes by a pattern ({registration.pattern}), which this version cannot "
                "evaluate: let it subscribe to topics by name, or leave the group"
            )
        for topic, streams in registration.subscription.items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, streams))
    return {topic: sorted(ids) for topic, ids in threads.items()}


def decide(
    consumer_id: str,
    my_topics: Mapping[str, int],
    partitions: Mapping[str, Sequence[int]],
    threads: Mapping[str, Sequence[str]],
) -> dict[str, list[tuple[str, int]]]:
    """{thread of ours: its (topic, partition)s in topic and numeric order}, every thread of ours named.

    `my_topics` is {topic: streams}; a topic without partitions gives nothing. Raises `NotAMember` when the
    group lacks a topic or thread of ours.
    """
    decided: dict[str, list[tuple[str, int]]] = {}
    for topic, streams in my_topics.items():
        group_threads = threads.get(topic)
        mine = thread_ids(consumer_id, streams)
        missing = set(mine).difference(group_threads or ())
        if missing:
            raise NotAMember(f"the group as read does not know {', '.join(sorted(missing))} for topic {topic}")
        assert group_threads is not None
        pieces = thread_range(partitions[topic], group_threads)
        for thread in mine:
            decided.setdefault(thread, []).extend((topic, partition) for partition in pieces[thread])
    return decided
