"""Answers of Kafka's own classes: 4.1.1 for range and roundrobin, 0.8.2.2 and 1.1.1 for the thread-level range."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import MemberSubscription
from kernel.assignors.thread_range import thread_range
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


@pytest.mark.parametrize("steps", recorded("range-0.8"))
def test_thread_range_answers_as_the_zookeeper_consumers_class(steps):
    for step in steps:
        answer = {f"{member}-{n}": set() for member, topics, *_ in step["members"] for n in range(max(topics.values()))}
        for topic, size in step["partitions"].items():
            threads = [f"{member}-{n}" for member, topics, *_ in step["members"] for n in range(topics.get(topic, 0))]
            for thread, partitions in thread_range(range(size), threads).items():
                answer[thread] |= {(topic, partition) for partition in partitions}
        assert answer == expected_sets(step)


def test_recorded_cases_are_all_here():
    counts = {}
    for chain in CHAINS:
        counts[chain["assignor"]] = counts.get(chain["assignor"], 0) + len(chain["steps"])
    assert counts == {"range": 95, "roundrobin": 95, "range-0.8": 80}
