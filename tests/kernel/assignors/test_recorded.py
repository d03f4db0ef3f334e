"""Answers of Kafka's own classes: 4.1.1 for range and roundrobin, 0.8.2.2 and 1.1.1 for those over threads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import MemberSubscription
from kernel.assignors.thread_range import thread_range
from kernel.assignors.thread_roundrobin import UnequalSubscriptions, roundrobin_0_8_2, roundrobin_1_1
from kernel.values import TopicPartition

with gzip.open(Path(__file__).parent / "recorded.jsonl.gz", "rt", encoding="utf-8") as lines:
    CHAINS = [json.loads(line) for line in lines]


def recorded(assignor):
    return [pytest.param(chain["steps"], id=chain["id"]) for chain in CHAINS if chain["assignor"] == assignor]


def expected_sets(step):
    return {member: {(t, p) for t, ps in runs for p in ps} for member, runs in step["expect"].items()}


def held_against_kafka(strategy, steps):
    for step in steps:
        subscriptions = {
            member: MemberSubscription(
                topics=tuple(topics),
                instance_id=instance_id,
                owned=tuple(TopicPartition(t, p) for t, ps in owned for p in ps),
                generation=generation,
            )
            for member, topics, instance_id, owned, generation in step["members"]
        }
        answer = ASSIGNORS[strategy](step["partitions"], subscriptions)
        assert {member: set(partitions) for member, partitions in answer.items()} == expected_sets(step)
        assert sum(map(len, answer.values())) == sum(map(len, expected_sets(step).values()))


@pytest.mark.parametrize("steps", recorded("range"))
def test_range_answers_as_kafkas_class(steps):
    held_against_kafka("range", steps)


@pytest.mark.parametrize("steps", recorded("roundrobin"))
def test_roundrobin_answers_as_kafkas_class(steps):
    held_against_kafka("roundrobin", steps)


def threads_of(step):
    """({topic: the group's threads}, {topic: its partitions}, all threads) of the old consumer."""
    threads = {}
    for member, topics, *_ in step["members"]:
        for topic, streams in topics.items():
            threads.setdefault(topic, []).extend(f"{member}-{n}" for n in range(streams))
    partitions = {topic: range(step["partitions"].get(topic, 0)) for topic in threads}
    return threads, partitions, {thread for ids in threads.values() for thread in ids}


@pytest.mark.parametrize("steps", recorded("range-0.8"))
def test_thread_range_answers_as_the_zookeeper_consumers_class(steps):
    for step in steps:
        threads, partitions, every = threads_of(step)
        answer = {thread: set() for thread in every}
        for topic, ids in threads.items():
            for thread, numbers in thread_range(partitions[topic], ids).items():
                answer[thread] |= {(topic, number) for number in numbers}
        assert answer == expected_sets(step)


def held_against_the_old_class(deal, steps):
    for step in steps:
        threads, partitions, every = threads_of(step)
        if "error" in step["expect"]:
            with pytest.raises(UnequalSubscriptions, match="same topics and numbers of streams"):
                deal(partitions, threads)
        else:
            answer = deal(partitions, threads)
            assert answer.keys() == every
            assert {thread: set(part) for thread, part in answer.items()} == expected_sets(step)


@pytest.mark.parametrize("steps", recorded("roundrobin-0.8.2"))
def test_thread_roundrobin_answers_as_the_class_of_0_8_2(steps):
    held_against_the_old_class(roundrobin_0_8_2, steps)


@pytest.mark.parametrize("steps", recorded("roundrobin-1.1"))
def test_thread_roundrobin_answers_as_the_class_of_1_1(steps):
    held_against_the_old_class(roundrobin_1_1, steps)


def test_recorded_cases_are_all_here():
    counts, refused = {}, 0
    for chain in CHAINS:
        counts[chain["assignor"]] = counts.get(chain["assignor"], 0) + len(chain["steps"])
        refused += sum("error" in step["expect"] for step in chain["steps"])
    expected = {"range": 95, "roundrobin": 95, "range-0.8": 80, "roundrobin-0.8.2": 28, "roundrobin-1.1": 28}
    assert counts == expected
    assert refused == 1
