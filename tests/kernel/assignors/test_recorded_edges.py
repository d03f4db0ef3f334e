"""Answers of Kafka 4.1.1's own classes at the edges that recorded.jsonl.gz does not reach.

Groups at the sizes where Java's hash tables double, odd and long member ids, ids that crowd one bucket, doubled
instance ids, and user data of every age: without a generation, with the only generation, with another one than the
subscription, cut short, overwritten. Claims of partitions that do not exist are left out (claims.py says why).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

with gzip.open(Path(__file__).parent / "recorded_edges.jsonl.gz", "rt", encoding="utf-8") as lines:
    CASES = [json.loads(line) for line in lines]

KINDS = ["bound-equal", "bound-unequal", "odd", "tree", "bucket-tree", "dupinst", "corrupt", "v0", "v1old", "differ"]


def partitions(runs):
    return tuple(TopicPartition(topic, number) for topic, numbers in runs for number in numbers)


def subscription(topics, instance_id, owned, generation, user_data):
    return MemberSubscription(
        topics=tuple(topics),
        instance_id=instance_id,
        owned=partitions(owned),
        generation=generation,
        user_data=None if user_data is None else bytes.fromhex(user_data),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_edge_cases_get_the_answers_of_kafkas_classes(kind):
    for case in (case for case in CASES if case["kind"] == kind):
        group = {member: subscription(*fields) for member, *fields in case["members"]}
        answer = ASSIGNORS[case["assignor"]](case["partitions"], group)
        assert {member: sorted(given) for member, given in answer.items()} == {
            member: sorted(partitions(runs)) for member, runs in case["expect"].items()
        }


def test_recorded_edges_are_all_here():
    assert {case["kind"] for case in CASES} == set(KINDS)
    assert len(CASES) == 294
