"""Equal subscriptions: the arrays give the same as Kafka's algorithm, which takes one partition at a time."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.sticky_data import encode_sticky
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.kernel.assignors.constrained_assignment import assign_one_by_one

TOPICS = ["t", "u", "\ufb00", "\U0001d4b3"]
PLAIN = [f"m{n}" for n in range(14)]
OF_ONE_HASH = ["".join(letters) for letters in itertools.product(("Aa", "BB"), repeat=4)]
GENERATIONS = st.one_of(st.none(), st.integers(-1, 3))
BOTH = pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])


@st.composite
def groups(draw):
    """(sizes, members): some keep an answer, some contradict, some have a generation in the user data only."""
    sizes = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9)))
    claimed = st.builds(TopicPartition, st.sampled_from([*TOPICS, "gone"]), st.integers(-1, 10))
    group = {}
    for member in draw(st.lists(st.sampled_from(PLAIN + OF_ONE_HASH), unique=True, min_size=1)):
        had, generation = draw(st.lists(claimed, max_size=10)), draw(GENERATIONS)
        in_user_data = draw(st.booleans())
        group[member] = MemberSubscription(
            topics=tuple(TOPICS),
            owned=tuple(had),
            generation=generation,
            user_data=encode_sticky(had, draw(GENERATIONS)) if in_user_data else None,
        )
    return sizes, group


def assert_as_one_by_one(strategy, sizes, group):
    """The same members in the same order, with the same partitions in the same order."""
    answer = ASSIGNORS[strategy](sizes, group)
    assert list(answer.items()) == list(assign_one_by_one(strategy, sizes, group).items())
    return answer


@BOTH
@given(groups())
def test_arrays_give_the_walks_answer_for_any_claims(strategy, group):
    assert_as_one_by_one(strategy, *group)


def rejoining(answer, generation):
    return {
        member: MemberSubscription(topics=tuple(TOPICS), owned=tuple(had), generation=generation)
        for member, had in answer.items()
    }


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_arrays_give_the_walks_answer_over_the_rounds_of_a_large_group(strategy, seed):
    """About two thousand partitions; members join, leave and return with what they had long ago."""
    drawn = random.Random(seed)
    sizes = {topic: drawn.randrange(1, 900) for topic in TOPICS}
    names = [*OF_ONE_HASH, *(f"member-{n}" for n in range(drawn.randrange(150)))]
    group = rejoining(dict.fromkeys(names, ()), None)
    away = {}
    for generation in range(8):
        answer = assert_as_one_by_one(strategy, sizes, group)
        group = rejoining(answer, generation)
        for member in drawn.sample(sorted(group), drawn.randrange(len(group))):
            away[member] = group.pop(member)
        for member in drawn.sample(sorted(away), drawn.randrange(len(away) + 1)):
            group[member] = away.pop(member)
        group |= rejoining({f"new-{generation}-{n}": () for n in range(drawn.randrange(1, 30))}, None)
        sizes[drawn.choice(TOPICS)] += drawn.randrange(100)
