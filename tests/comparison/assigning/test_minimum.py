"""The fewest moves, beside trying every assignment of a small group."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from comparison.assigning.minimum import fewest_moves
from kernel.values import TopicPartition

SIZES = st.fixed_dictionaries({topic: st.integers(0, 3) for topic in ("t", "u")})
TOPICS = st.lists(st.sampled_from(["t", "u"]), unique=True).map(tuple)
GROUPS = st.dictionaries(st.sampled_from("abc"), TOPICS, min_size=1)


def naive(sizes, topics_of, had):
    """Every assignment of all partitions that have subscribers: the most even ones, and of these the fewest moves."""
    tps = [TopicPartition(t, n) for t in sizes for n in range(sizes[t]) if any(t in ts for ts in topics_of.values())]
    takers = [[owner for owner in topics_of if tp.topic in topics_of[owner]] for tp in tps]
    found = []
    for owners in product(*takers):
        squares = sum(owners.count(owner) ** 2 for owner in topics_of)
        found.append((squares, sum(had.get(tp, owner) != owner for tp, owner in zip(tps, owners, strict=True))))
    return min(found)[1]


@given(SIZES, GROUPS, st.data())
def test_minimum_is_that_of_all_assignments(sizes, topics_of, data):
    tps = [TopicPartition(topic, number) for topic in sizes for number in range(sizes[topic])]
    owners = data.draw(st.lists(st.sampled_from(["a", "b", "c", "gone", ""]), min_size=len(tps), max_size=len(tps)))
    had = {tp: owner for tp, owner in zip(tps, owners, strict=True) if owner}
    assert fewest_moves(sizes, topics_of, had) == naive(sizes, topics_of, had)


def test_chain_of_moves_counts_each():
    """b cannot give to c what it has, so a's partitions reach c by way of b."""
    had = {TopicPartition("t", n): "a" for n in range(3)} | {TopicPartition("u", n): "b" for n in range(2)}
    topics_of = {"a": ("t",), "b": ("t", "u"), "c": ("u",)}
    assert fewest_moves({"t": 3, "u": 2}, topics_of, had) == 2


def test_large_group_with_different_subscriptions_is_not_known():
    topics = tuple(f"t{n}" for n in range(200))
    topics_of = {f"m{n}": topics[n % 2 :] for n in range(400)}
    assert fewest_moves(dict.fromkeys(topics, 1), topics_of, {TopicPartition("t5", 0): "gone"}) is None
    alike = dict.fromkeys(topics_of, topics)
    assert fewest_moves(dict.fromkeys(topics, 1), alike, {TopicPartition("t5", 0): "gone"}) == 1
