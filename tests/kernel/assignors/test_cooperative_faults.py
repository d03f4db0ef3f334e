"""`cooperative-sticky` with the faults of 2.8.0 and 3.4.0, against what Kafka's own classes of these versions answered.

A line of cooperative_faults.txt is a topic's number of partitions, {member: [generation, claimed partitions]}, and
{version: {member: its partitions}}; null where the class raised an exception.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernel.assignors.checking import BadAssignment
from kernel.assignors.cooperative_faults import assign_by_every_claim, assign_by_highest_generation
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.subscription import Assignor, MemberSubscription
from kernel.values import TopicPartition

CASES = [json.loads(line) for line in Path(__file__).with_name("cooperative_faults.txt").read_text().splitlines()]
VERSIONS: dict[str, Assignor] = {
    "2.8.0": assign_by_every_claim,
    "3.4.0": assign_by_highest_generation,
    "4.1.1": assign_cooperative_sticky,
}


def members_of(case: Any) -> dict[str, MemberSubscription]:
    return {
        member: MemberSubscription(
            topics=("t",), owned=tuple(TopicPartition("t", n) for n in claimed), generation=generation
        )
        for member, (generation, claimed) in case["claims"].items()
    }


def answered(case: Any, version: str) -> dict[str, list[int]] | None:
    try:
        answer = VERSIONS[version]({"t": case["partitions"]}, members_of(case))
    except BadAssignment:
        return None
    return {member: sorted(tp.partition for tp in partitions) for member, partitions in answer.items()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_version_is_answered_as_its_class_answered(case: Any, version: str) -> None:
    assert answered(case, version) == case["answers"][version]


def owners(answer: dict[str, list[int]] | None) -> Counter[int]:
    return Counter(n for partitions in (answer or {}).values() for n in partitions)


def read_by_others(case: Any, answer: dict[str, list[int]] | None) -> set[int]:
    """What a member gets that only others claim: they read it until they hear of this assignment."""
    claimed = {member: set(partitions) for member, (_, partitions) in case["claims"].items()}
    return {
        n
        for member, partitions in (answer or {}).items()
        for n in set(partitions) - claimed[member]
        if any(n in others for other, others in claimed.items() if other != member)
    }


def test_by_every_claim_partitions_get_two_owners_or_the_leader_gives_up() -> None:
    """KAFKA-12984."""
    answers = [case["answers"]["2.8.0"] for case in CASES]
    assert None in answers
    assert any(owners(answer)[n] > 1 for answer in answers for n in owners(answer))
    for version in ("3.4.0", "4.1.1"):
        assert all(set(owners(case["answers"][version]).values()) <= {1} for case in CASES)


def test_by_the_highest_generation_a_late_member_reads_what_another_has_got() -> None:
    """KAFKA-14639."""
    late = next(case for case in CASES if case["name"] == "late member among three")
    assert read_by_others(late, late["answers"]["3.4.0"]) == {1}
    assert not read_by_others(late, late["answers"]["4.1.1"])


def test_without_members_there_is_nothing_to_assign() -> None:
    assert assign_by_every_claim({"t": 3}, {}) == assign_by_highest_generation({"t": 3}, {}) == {}


def test_members_with_different_topics_are_assigned_as_today_and_late_claims_still_hold_partitions_back() -> None:
    """As 3.4.0: what has to be given up first follows from all claims there."""
    subscriptions = {
        "a": MemberSubscription(topics=("t",), owned=(TopicPartition("t", 0), TopicPartition("t", 1)), generation=1),
        "b": MemberSubscription(topics=("t", "u"), owned=(TopicPartition("t", 2),), generation=2),
        "c": MemberSubscription(topics=("t",), generation=-1),
    }
    sizes = {"t": 3, "u": 1}
    assert assign_by_every_claim(sizes, subscriptions) == assign_cooperative_sticky(sizes, subscriptions)
    given = assign_by_highest_generation(sizes, subscriptions)
    assert not {tp for tp in given["c"] if tp in subscriptions["a"].owned}
