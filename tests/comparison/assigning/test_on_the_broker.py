"""The brokers' strategies by names, beside the arrays that are compared with Kafka's own classes."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.assigning.group import Group, GroupMember
from comparison.assigning.strategies import ON_THE_BROKER, assign_on_broker
from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.target.registry import TARGET_ASSIGNORS
from kernel.values import TopicPartition
from tests.support.groups.targets import answer

SIZES = {"t": 5, "u": 3, "v": 0, "w": 40}
TOPICS = st.lists(st.sampled_from(sorted(SIZES)), unique=True).map(tuple)
OWNERS = st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=sum(SIZES.values()), max_size=sum(SIZES.values()))


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), TOPICS, min_size=1),
    OWNERS,
    st.booleans(),
    st.sampled_from(sorted(ON_THE_BROKER)),
)
def test_answer_by_names_is_that_of_the_arrays(topics_of, owners, alike, strategy):
    topics_of = dict.fromkeys(topics_of, next(iter(topics_of.values()))) if alike else topics_of
    every = [TopicPartition(topic, number) for topic in sorted(SIZES) for number in range(SIZES[topic])]
    owned = {
        member: tuple(tp for tp, owner in zip(every, owners, strict=True) if owner == member and tp.topic in topics)
        for member, topics in topics_of.items()
    }
    group = Group(SIZES, tuple(GroupMember(name=member, topics=topics) for member, topics in topics_of.items()))
    step = {
        "partitions": SIZES,
        "topic_ids": {topic: uuid5(NAMESPACE_URL, topic).hex for topic in SIZES},
        "members": [
            [
                member,
                list(topics),
                None,
                [
                    [topic, [tp.partition for tp in owned[member] if tp.topic == topic]]
                    for topic in dict.fromkeys(tp.topic for tp in owned[member])
                ],
                None,
            ]
            for member, topics in topics_of.items()
        ],
    }
    found = assign_on_broker(strategy, group, owned)
    assert {member: set(tps) for member, tps in found.items()} == answer(step, ON_THE_BROKER[strategy])


@pytest.mark.parametrize("strategy", ON_THE_BROKER)
def test_group_without_members_or_topics_owns_nothing(strategy):
    assert assign_on_broker(strategy, Group({"t": 2}, ()), {}) == {}
    assert assign_on_broker(strategy, Group({"t": 0}, (GroupMember(name="a", topics=("t",)),)), {}) == {"a": ()}


def test_the_brokers_range_has_another_name_than_the_members():
    assert not ON_THE_BROKER.keys() & ASSIGNORS.keys()
    assert set(ON_THE_BROKER.values()) == set(TARGET_ASSIGNORS)
