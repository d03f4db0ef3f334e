"""One member's part: the vectors of the reference, and invariants of every group, with each strategy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.thread_roundrobin import UnequalSubscriptions
from kernel.values import TopicPartition
from zkconsumer.rebalance.assignment import STRATEGIES, NotAMember, decide, threads_per_topic

GROUPS = st.dictionaries(
    st.sampled_from([f"g_{name}" for name in ("a", "b", "c1", "c10", "c2", "d-1")]),
    st.dictionaries(st.sampled_from(["t0", "t1", "t2"]), st.integers(1, 12), max_size=3),
    min_size=1,
)
SIZES = st.fixed_dictionaries({topic: st.integers(0, 30) for topic in ("t0", "t1", "t2")})


def whole_group(
    group: dict[str, dict[str, int]], sizes: dict[str, int], strategy: str = "range"
) -> dict[str, list[TopicPartition]]:
    """The parts of all members, each computed by its member."""
    threads = threads_per_topic(group)
    decided: dict[str, list[TopicPartition]] = {}
    for consumer, topics in group.items():
        # 1.1 reads the topics of all members, 0.8.2 its own.
        read = threads if strategy == "roundrobin-1.1" else topics
        partitions = {topic: tuple(range(sizes.get(topic, 0))) for topic in read}
        decided.update(decide(strategy, consumer, topics, partitions, threads))
    return decided


@pytest.mark.parametrize(
    ("sizes", "group", "expected"),
    [
        pytest.param(
            {"t": 5},
            {"C1": {"t": 2}, "C2": {"t": 2}},
            {"C1-0": ["t0", "t1"], "C1-1": ["t2"], "C2-0": ["t3"], "C2-1": ["t4"]},
            id="R0-the-article's-example",
        ),
        pytest.param(
            {"t": 10},
            {"g_c1": {"t": 1}, "g_c2": {"t": 1}, "g_c3": {"t": 1}},
            {"g_c1-0": ["t0", "t1", "t2", "t3"], "g_c2-0": ["t4", "t5", "t6"], "g_c3-0": ["t7", "t8", "t9"]},
            id="R1",
        ),
        pytest.param(
            {"t": 3},
            {"g_a": {"t": 2}, "g_b": {"t": 3}},
            {"g_a-0": ["t0"], "g_a-1": ["t1"], "g_b-0": ["t2"], "g_b-1": [], "g_b-2": []},
            id="R2-more-threads-than-partitions",
        ),
        pytest.param(
            {"t": 3, "u": 3},
            {"C0": {"t": 1, "u": 1}, "C1": {"t": 1, "u": 1}},
            {"C0-0": ["t0", "t1", "u0", "u1"], "C1-0": ["t2", "u2"]},
            id="R3-the-skew-adds-up",
        ),
        pytest.param(
            {"t": 13},
            {"g_c1": {"t": 12}},
            {
                "g_c1-0": ["t0", "t1"],
                "g_c1-1": ["t2"],
                "g_c1-10": ["t3"],
                "g_c1-11": ["t4"],
                **{f"g_c1-{n}": [f"t{n + 3}"] for n in range(2, 10)},
            },
            id="R4-threads-sort-as-text",
        ),
        pytest.param(
            {"t": 4},
            {"g_c1": {"t": 1}, "g_c10": {"t": 1}, "g_c2": {"t": 1}},
            {"g_c1-0": ["t0", "t1"], "g_c10-0": ["t2"], "g_c2-0": ["t3"]},
            id="R5-a-dash-sorts-before-a-digit",
        ),
        pytest.param(
            {"alpha": 4, "gamma": 12},
            {"c1": {"alpha": 2, "beta": 1}, "c2": {"alpha": 1, "gamma": 2}},
            {
                "c1-0": ["alpha0", "alpha1"],
                "c1-1": ["alpha2"],
                "c2-0": ["alpha3", *(f"gamma{n}" for n in range(6))],
                "c2-1": [f"gamma{n}" for n in range(6, 12)],
            },
            id="different-topics-and-one-that-does-not-exist",
        ),
    ],
)
def test_range_gives_each_thread_its_vector(
    sizes: dict[str, int], group: dict[str, dict[str, int]], expected: dict[str, list[str]]
) -> None:
    every = {topic: sizes.get(topic, 0) for topics in group.values() for topic in topics}
    decided = whole_group(group, every)
    assert {thread: [f"{topic}{number}" for topic, number in part] for thread, part in decided.items()} == expected


@given(GROUPS, SIZES)
def test_all_members_together_own_every_subscribed_partition_once(
    group: dict[str, dict[str, int]], sizes: dict[str, int]
) -> None:
    decided = whole_group(group, sizes)
    owned = sorted(partition for part in decided.values() for partition in part)
    subscribed = {topic for topics in group.values() for topic in topics}
    assert owned == sorted((topic, number) for topic in subscribed for number in range(sizes[topic]))


@given(GROUPS, SIZES)
def test_threads_of_a_topic_differ_by_at_most_one(group: dict[str, dict[str, int]], sizes: dict[str, int]) -> None:
    decided = whole_group(group, sizes)
    for topic in sizes:
        counts = [
            sum(1 for owned, _ in decided[f"{consumer}-{n}"] if owned == topic)
            for consumer, topics in group.items()
            for n in range(topics.get(topic, 0))
        ]
        assert max(counts, default=0) - min(counts, default=0) <= 1


@given(GROUPS, SIZES)
def test_round_robin_of_1_1_gives_every_subscribed_partition_to_one_member(
    group: dict[str, dict[str, int]], sizes: dict[str, int]
) -> None:
    decided = whole_group(group, sizes, "roundrobin-1.1")
    subscribed = {topic for topics in group.values() for topic in topics}
    owned = sorted(partition for part in decided.values() for partition in part)
    assert owned == sorted(TopicPartition(topic, number) for topic in subscribed for number in range(sizes[topic]))


@given(st.sets(st.sampled_from(["g_a", "g_b", "g_c1", "g_c10"]), min_size=1), st.integers(1, 3), SIZES)
def test_round_robin_of_0_8_2_gives_everything_once_and_evenly_where_all_subscribe_alike(
    members: set[str], streams: int, sizes: dict[str, int]
) -> None:
    decided = whole_group({member: dict.fromkeys(sizes, streams) for member in members}, sizes, "roundrobin-0.8.2")
    owned = sorted(partition for part in decided.values() for partition in part)
    assert owned == sorted(TopicPartition(topic, number) for topic in sizes for number in range(sizes[topic]))
    loads = [len(part) for part in decided.values()]
    assert max(loads) - min(loads) <= 1


def test_unregistered_member_cannot_assign_by_range() -> None:
    with pytest.raises(NotAMember, match="g_c1-1"):
        decide("range", "g_c1", {"t": 2}, {"t": (0,)}, {"t": ["g_c1-0", "g_c2-0"]})
    with pytest.raises(NotAMember, match="topic u"):
        decide("range", "g_c1", {"u": 1}, {"u": (0,)}, {"t": ["g_c1-0"]})


@pytest.mark.parametrize("strategy", ["roundrobin-0.8.2", "roundrobin-1.1"])
def test_unregistered_member_gets_nothing_by_round_robin(strategy: str) -> None:
    """Kafka has no assertion there: the attempt succeeds, and the next change repairs it."""
    assert decide(strategy, "g_c1", {"t": 1}, {"t": (0, 1)}, {"t": ["g_c2-0"]}) == {}


def test_unequal_subscriptions_prevent_every_members_assignment() -> None:
    threads = threads_per_topic({"g_c1": {"a": 1}, "g_c2": {"a": 1, "b": 1}})
    with pytest.raises(UnequalSubscriptions):
        decide("roundrobin-0.8.2", "g_c1", {"a": 1}, {"a": (0,)}, threads)
    assert decide("roundrobin-1.1", "g_c1", {"a": 1}, {"a": (0,), "b": (0,)}, threads) != {}


def test_each_strategy_has_its_own_function() -> None:
    assert list(STRATEGIES) == ["range", "roundrobin-0.8.2", "roundrobin-1.1"]
    assert len(set(STRATEGIES.values())) == 3
