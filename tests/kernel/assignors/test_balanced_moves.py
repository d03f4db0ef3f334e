"""How much the balancing by counts moves: the least possible in small groups, near a lower bound in larger ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.sticky import assign_sticky
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.kernel.assignors.moves_bound import moves, moves_lower_bound
from tests.kernel.assignors.unequal_groups import NOBODY, fewest_taken, group, kinds

CASES = 300


def small_group(rng):
    members, topics = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    largest = 2 if members * topics > 15 else 3 if members * topics > 12 else 5
    sizes = rng.integers(0, largest + 1, topics)
    return group(sizes, rng.random((members, topics)) < rng.choice([0.4, 0.6, 0.8]))


def joined(rng):
    asked, new = small_group(rng), rng.integers(2)
    before = asked.subscribed.copy()
    before[new] = False
    return asked._replace(owner=asked._replace(subscribed=before).balanced().owner)


def left(rng):
    asked = small_group(rng).balanced()
    return asked.without([rng.integers(len(asked.subscribed))])


def changed(rng):
    asked = small_group(rng).balanced()
    subscribed = asked.subscribed.copy()
    subscribed[0] = rng.random(subscribed.shape[1]) < 0.5
    return asked._replace(subscribed=subscribed)


def owned_by_anybody(rng):
    asked = small_group(rng)
    return asked._replace(owner=rng.integers(NOBODY, len(asked.subscribed), len(asked.owner)).astype(np.int32))


def owned_by_one(rng):
    asked = small_group(rng)
    return asked._replace(owner=np.where(asked.subscribed[0][asked.topic], 0, NOBODY).astype(np.int32))


@pytest.mark.parametrize(
    ("change", "least_in"),
    [(joined, 1.0), (left, 0.98), (changed, 0.98), (owned_by_anybody, 0.98), (owned_by_one, 0.95)],
)
def test_small_group_rarely_moves_more_than_the_minimum(change, least_in):
    """All fair assignments are enumerated; the lower bound is compared with their minimum."""
    at_the_least = 0
    for seed in range(CASES):
        asked = change(np.random.default_rng(seed))
        moved = moves(*asked, new=asked.balanced().owner)
        fewest = fewest_taken(asked)
        bound = moves_lower_bound(*asked)
        assert bound.given == moved.given
        assert bound.taken <= fewest <= moved.taken
        assert moved.all <= 2 * (moved.given + fewest)
        at_the_least += moved.taken == fewest
    assert at_the_least >= least_in * CASES


@pytest.mark.parametrize("kind", ["one member with one topic", "each lacks a fifth", "random half", "nested prefixes"])
def test_large_group_moves_only_released_partitions_at_a_leave_and_little_above_the_bound_at_a_join(kind):
    asked = kinds(10_000, 200, 50, seed=2)[kind].balanced()
    gone = [60]
    smaller = asked.without(gone)
    after = smaller.balanced()
    assert moves(*smaller, new=after.owner).taken == 0
    larger = after.joined_by(asked.subscribed[gone])
    moved, bound = moves(*larger, new=larger.balanced().owner), moves_lower_bound(*larger)
    assert (moved.given, bound.given) == (0, 0)
    assert moved.taken <= 1.3 * bound.taken


@pytest.mark.parametrize(("kind", "times"), [("ten random topics", 1.6), ("pairs of topics", 1.6), ("chain", 2.1)])
def test_group_with_few_topics_per_member_moves_little_above_the_bound(kind, times):
    """In a chain partitions move from member to member; the bound counts only what members must gain in the end."""
    asked = kinds(10_000, 200, 50, seed=2)[kind].balanced()
    for gone in ([60], np.arange(0, 200, 10), np.arange(0, 200, 2)):
        smaller = asked.without(gone)
        after = smaller.balanced()
        assert moves(*smaller, new=after.owner).all <= times * moves_lower_bound(*smaller).all
        larger = after.joined_by(asked.subscribed[gone])
        assert moves(*larger, new=larger.balanced().owner).all <= times * moves_lower_bound(*larger).all


with gzip.open(Path(__file__).parent / "recorded.jsonl.gz", "rt", encoding="utf-8") as lines:
    RECORDED = [chain for chain in map(json.loads, lines) if chain["assignor"] in ("sticky", "cooperative-sticky")]


def unequal_steps(assignor):
    for chain in RECORDED:
        for step in chain["steps"]:
            if chain["assignor"] == assignor and len({frozenset(topics) for _, topics, *_ in step["members"]}) > 1:
                yield step


def subscriptions_of(step):
    return {
        member: MemberSubscription(
            topics=tuple(topics),
            instance_id=instance_id,
            owned=tuple(TopicPartition(t, n) for t, numbers in owned for n in numbers),
            generation=generation,
        )
        for member, topics, instance_id, owned, generation in step["members"]
    }


def is_fair(answer, subscriptions):
    return not any(
        len(fuller) >= len(answer[other]) + 2 and any(tp.topic in subscriptions[other].topics for tp in fuller)
        for fuller in answer.values()
        for other in answer
    )


def test_recorded_unequal_groups_are_as_complete_and_fair_as_kafkas():
    """Over all groups, nearly as many partitions are kept as by Kafka's class."""
    steps, kept, kept_by_kafka = 0, 0, 0
    for step in unequal_steps("sticky"):
        subscriptions = subscriptions_of(step)
        answer = assign_sticky(step["partitions"], subscriptions, exact_up_to=0)
        given = [tp for partitions in answer.values() for tp in partitions]
        expected = {member: {(t, n) for t, ns in runs for n in ns} for member, runs in step["expect"].items()}
        assert answer.keys() == expected.keys()
        assert len(given) == len(set(given)) == sum(map(len, expected.values()))
        assert all(tp.topic in subscriptions[member].topics for member, had in answer.items() for tp in had)
        assert is_fair(answer, subscriptions)
        steps += 1
        kept += sum(len(set(had) & set(subscriptions[member].owned)) for member, had in answer.items())
        kept_by_kafka += sum(len(had & set(subscriptions[member].owned)) for member, had in expected.items())
    assert steps > 100
    assert kept >= 0.98 * kept_by_kafka


def test_recorded_cooperative_groups_withhold_only_partitions_claimed_by_others():
    steps = withheld = 0
    for step in unequal_steps("cooperative-sticky"):
        subscriptions = subscriptions_of(step)
        answer = assign_cooperative_sticky(step["partitions"], subscriptions, exact_up_to=0)
        assert answer.keys() == subscriptions.keys()
        for member, intended in assign_sticky(step["partitions"], subscriptions, exact_up_to=0).items():
            claimed = set(subscriptions[member].owned)
            by_others = {tp for other in subscriptions if other != member for tp in subscriptions[other].owned}
            assert set(answer[member]) == {tp for tp in intended if tp in claimed or tp not in by_others}
            withheld += len(intended) - len(answer[member])
        steps += 1
    assert steps > 70
    assert withheld > 100
