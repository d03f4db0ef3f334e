"""Guarantees of the sticky strategies for any group: complete, even, and as few moves as that allows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors import sticky_general
from kernel.assignors.claims import cooperative_claim, settle
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.sticky import assign_sticky
from kernel.assignors.sticky_data import encode_sticky
from kernel.assignors.sticky_general import GeneralAssignment
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

TOPICS = [f"t{n}" for n in range(5)]
MEMBERS = [f"m{n}" for n in range(9)]
sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))
topic_lists = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1).map(tuple)
subscribed = st.dictionaries(st.sampled_from(MEMBERS), topic_lists, min_size=1)
alike = st.sets(st.sampled_from(MEMBERS), min_size=1)
ROUNDS = {"sticky": 1, "cooperative-sticky": 4}
BOTH = pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])


def group_of(topics_of, answer=None, generation=None):
    """Members as they rejoin after an answer; a new one has nothing."""
    had = answer or {}
    return {
        name: MemberSubscription(
            topics=topics, owned=tuple(had.get(name, ())), generation=generation if name in had else None
        )
        for name, topics in topics_of.items()
    }


def settled(strategy, sizes, group):
    """The answer once nothing is withheld: one round, cooperatively mostly two.

    With different subscriptions the second round may find a better way to distribute what the first one freed, and
    revoke something else for a third; Kafka's class does the same.
    """
    topics_of = {name: subscription.topics for name, subscription in group.items()}
    for generation in range(100, 100 + ROUNDS[strategy]):
        answer = ASSIGNORS[strategy](sizes, group)
        if sum(map(len, answer.values())) == len(wanted(sizes, topics_of)):
            break
        group = group_of(topics_of, answer, generation)
    return answer


def wanted(sizes, topics_of):
    topics = {topic for topics in topics_of.values() for topic in topics}
    return {TopicPartition(topic, n) for topic in topics for n in range(sizes.get(topic, 0))}


def assert_complete(answer, sizes, topics_of):
    assert answer.keys() == topics_of.keys()
    assert sorted(tp for partitions in answer.values() for tp in partitions) == sorted(wanted(sizes, topics_of))
    assert all(tp.topic in topics_of[member] for member, partitions in answer.items() for tp in partitions)


def assert_even(answer, topics_of):
    """If two members differ by two or more, no partition of the larger one could move to the other."""
    for fuller, partitions in answer.items():
        for other in answer:
            if len(partitions) >= len(answer[other]) + 2:
                assert not {tp.topic for tp in partitions} & set(topics_of[other]), (fuller, other)


@st.composite
def changes(draw, memberships=subscribed):
    """(sizes, topics per member) before and after a change of the group."""
    before, topics_of = draw(sizes), draw(memberships)
    after = {**before, **draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12), max_size=2))}
    for topic, size in before.items():
        after[topic] = max(after[topic], size)
    gone = draw(st.sets(st.sampled_from(sorted(topics_of)), max_size=len(topics_of) - 1))
    staying = {name: topics for name, topics in topics_of.items() if name not in gone}
    return before, topics_of, after, {**draw(memberships), **staying}


@BOTH
@given(changes())
def test_changed_group_is_complete_and_balanced_again(strategy, change):
    before, topics_of, after, later = change
    first = settled(strategy, before, group_of(topics_of))
    assert_complete(first, before, topics_of)
    assert_even(first, topics_of)
    second = settled(strategy, after, group_of(later, first, 1))
    assert_complete(second, after, later)
    assert_even(second, later)


@BOTH
@given(sizes, subscribed)
def test_unchanged_group_moves_nothing(strategy, sizes, topics_of):
    first = ASSIGNORS[strategy](sizes, group_of(topics_of))
    second = ASSIGNORS[strategy](sizes, group_of(topics_of, first, 1))
    assert {member: set(partitions) for member, partitions in second.items()} == {
        member: set(partitions) for member, partitions in first.items()
    }


@given(changes())
def test_changed_large_groups_are_complete_and_balanced_again(change):
    """Groups with different subscriptions count as large from some size on, here from zero."""
    before, topics_of, after, later = change
    first = assign_sticky(before, group_of(topics_of), exact_up_to=0)
    group = group_of(later, first, 1)
    second = assign_sticky(after, group, exact_up_to=0)
    third = assign_sticky(after, group_of(later, second, 2), exact_up_to=0)
    cooperative = assign_cooperative_sticky(after, group, exact_up_to=0)
    assert_complete(second, after, later)
    assert_even(second, later)
    assert {member: set(had) for member, had in third.items()} == {member: set(had) for member, had in second.items()}
    owner = {tp: member for member, partitions in first.items() if member in later for tp in partitions}
    for member, partitions in second.items():
        assert set(cooperative[member]) == {tp for tp in partitions if owner.get(tp, member) == member}


@BOTH
@given(changes(alike.map(lambda members: dict.fromkeys(members, tuple(TOPICS)))))
def test_equal_subscriptions_keep_as_much_as_balance_allows(strategy, change):
    before, topics_of, after, later = change
    had = settled(strategy, before, group_of(topics_of))
    answer = settled(strategy, after, group_of(later, had, 1))
    loads = [len(partitions) for partitions in answer.values()]
    assert max(loads) - min(loads) <= 1
    least, extras = divmod(sum(loads), len(loads))
    owned = {member: set(had.get(member, ())) for member in later}
    above = sum(len(partitions) > least for partitions in owned.values())
    most_kept = sum(min(len(partitions), least) for partitions in owned.values()) + min(extras, above)
    assert sum(len(owned[member] & set(partitions)) for member, partitions in answer.items()) == most_kept


@given(changes())
def test_cooperative_assigns_no_partition_that_another_member_may_still_read(change):
    before, topics_of, after, later = change
    had = settled("cooperative-sticky", before, group_of(topics_of))
    group = group_of(later, had, 1)
    first = ASSIGNORS["cooperative-sticky"](after, group)
    owner = {tp: member for member in later for tp in had.get(member, ())}
    assert all(owner.get(tp, member) == member for member, partitions in first.items() for tp in partitions)
    eager = ASSIGNORS["sticky"](after, group)
    for member, partitions in eager.items():
        withheld = {tp for tp in partitions if owner.get(tp, member) != member}
        assert set(first[member]) == set(partitions) - withheld


@st.composite
def claims(draw):
    """Members that contradict each other."""
    topics_of, group = draw(subscribed), {}
    for name, topics in topics_of.items():
        claimed = st.builds(TopicPartition, st.sampled_from(topics), st.integers(0, 14))
        generation = draw(st.one_of(st.none(), st.integers(0, 3)))
        owned = tuple(draw(st.lists(claimed, max_size=12, unique=True)))
        group[name] = MemberSubscription(topics=topics, owned=owned, generation=generation)
    return topics_of, group


@given(sizes, claims())
def test_contradicting_claims_break_nothing(sizes, claimed):
    topics_of, group = claimed
    answer = ASSIGNORS["sticky"](sizes, group)
    assert_complete(answer, sizes, topics_of)
    assert_even(answer, topics_of)
    cooperative = ASSIGNORS["cooperative-sticky"](sizes, group)
    claimants = {}
    for name, subscription in group.items():
        for tp in subscription.owned:
            claimants.setdefault(tp, set()).add(name)
    for member, partitions in answer.items():
        assert set(cooperative[member]) <= set(partitions)
        assert all(claimants.get(tp, set()) - {member} for tp in set(partitions) - set(cooperative[member]))


@given(sizes, claims())
def test_claims_mean_the_same_in_user_data_and_in_the_subscription(sizes, claimed):
    _, group = claimed
    with_user_data = {
        name: MemberSubscription(
            topics=subscription.topics,
            generation=subscription.generation,
            user_data=encode_sticky(subscription.owned, subscription.generation),
        )
        for name, subscription in group.items()
    }
    by_subscription, by_user_data = (ASSIGNORS["sticky"](sizes, members) for members in (group, with_user_data))
    assert {name: set(by_subscription[name]) for name in group} == {name: set(by_user_data[name]) for name in group}


@pytest.mark.parametrize("seed", range(60))
def test_first_taker_is_the_same_by_comparison_and_by_search(seed, monkeypatch):
    """The search starts after all members known not to take the topic, and must start over when a load falls."""
    drawn = random.Random(seed)
    sizes = {f"t{n}": drawn.randint(1, 30) for n in range(drawn.randint(1, 8))}
    everything = [TopicPartition(topic, n) for topic, size in sizes.items() for n in range(size)]
    group = {
        f"m{n}": MemberSubscription(
            topics=tuple(drawn.sample(list(sizes), drawn.randint(1, len(sizes)))),
            owned=tuple(drawn.sample(everything, min(len(everything), drawn.choice([0, 1, 12])))),
            generation=drawn.choice([4, 5]),
        )
        for n in range(drawn.randint(2, 40))
    }
    sizes = {topic: sizes[topic] for topic in sizes if any(topic in said.topics for said in group.values())}
    answers = []
    for few in (0, 1_000):
        monkeypatch.setattr(sticky_general, "FEW_TAKERS", few)
        answers.append(GeneralAssignment(sizes, group, settle(sizes, group, cooperative_claim)).build())
    assert list(map(list, answers[0].values())) == list(map(list, answers[1].values()))
