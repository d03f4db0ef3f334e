"""Invariants for any group: every partition exactly once, to a subscriber, and as evenly as documented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import MemberSubscription
from kernel.assignors.thread_range import thread_range
from kernel.values import TopicPartition

TOPICS = [f"t{n}" for n in range(5)]
sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))
member_ids = st.text(min_size=1, max_size=6)
instance_ids = st.one_of(st.none(), st.text(max_size=4))
topic_lists = st.lists(st.sampled_from(TOPICS), unique=True).map(tuple)
groups = st.dictionaries(member_ids, st.builds(MemberSubscription, topics=topic_lists, instance_id=instance_ids))
strategies = st.sampled_from(sorted(ASSIGNORS))


@given(strategies, sizes, groups)
def test_each_partition_goes_to_exactly_one_subscriber(strategy, sizes, group):
    answer = ASSIGNORS[strategy](sizes, group)
    assert answer.keys() == group.keys()
    given_out = [partition for partitions in answer.values() for partition in partitions]
    subscribed = {topic for subscription in group.values() for topic in subscription.topics}
    wanted = {TopicPartition(topic, n) for topic in subscribed for n in range(sizes.get(topic, 0))}
    assert sorted(given_out) == sorted(wanted)
    assert all(tp.topic in group[member].topics for member, partitions in answer.items() for tp in partitions)


@given(strategies, sizes, groups, st.randoms(use_true_random=False))
def test_assignment_does_not_depend_on_the_order_of_the_map(strategy, sizes, group, random):
    # Kafka leaves equal instance ids undefined (the coordinator admits none); so do we.
    instances = [s.instance_id for s in group.values() if s.instance_id is not None]
    if len(set(instances)) < len(instances):
        return
    shuffled = list(group.items())
    random.shuffle(shuffled)
    assert ASSIGNORS[strategy](sizes, group) == ASSIGNORS[strategy](sizes, dict(shuffled))


@given(sizes, st.sets(member_ids, min_size=1, max_size=8))
def test_roundrobin_loads_differ_by_at_most_one_when_subscriptions_are_equal(sizes, members):
    answer = ASSIGNORS["roundrobin"](sizes, {m: MemberSubscription(topics=tuple(TOPICS)) for m in members})
    loads = [len(partitions) for partitions in answer.values()]
    assert max(loads) - min(loads) <= 1


@given(sizes, groups)
def test_range_gives_consecutive_partitions_whose_counts_differ_by_at_most_one(sizes, group):
    answer = ASSIGNORS["range"](sizes, group)
    for topic in TOPICS:
        subscribers = [member for member, subscription in group.items() if topic in subscription.topics]
        pieces = [[tp.partition for tp in answer[member] if tp.topic == topic] for member in subscribers]
        assert all(one == list(range(one[0], one[0] + len(one))) for one in pieces if one)
        if pieces:
            assert max(map(len, pieces)) - min(map(len, pieces)) <= 1


@given(st.sets(st.integers(0, 50)), st.sets(member_ids, min_size=1, max_size=9))
def test_thread_range_gives_each_partition_to_one_thread(partitions, threads):
    answer = thread_range(list(partitions), list(threads))
    assert answer.keys() == threads
    assert sorted(n for one in answer.values() for n in one) == sorted(partitions)
    assert max(map(len, answer.values())) - min(map(len, answer.values())) <= 1
