"""The old consumer's round robins: the vectors of the reference, Java's hash, and invariants of every group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.thread_roundrobin import UnequalSubscriptions, roundrobin_0_8_2, roundrobin_1_1
from kernel.java_hash import java_hash
from kernel.values import TopicPartition

TOPICS = ["t0", "t1", "t10", "ü", "\U0001f600"]
SIZES = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})
THREADS = [f"g_c{member}-{n}" for member in (1, 10, 2) for n in range(3)]
GROUPS = st.dictionaries(st.sampled_from(TOPICS), st.lists(st.sampled_from(THREADS), unique=True, min_size=1))


def assigned(assign, sizes, threads):
    """{thread: "t0/1 t1/0"}, in the order of assignment."""
    answer = assign({topic: range(size) for topic, size in sizes.items()}, threads)
    return {thread: " ".join(f"{tp.topic}/{tp.partition}" for tp in part) for thread, part in answer.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[t,0]", 87540032),
        ("[t,10]", -1581226645),
        ("[topic1,0]", -315570884),
        ("[a,0]", 86974003),
        ("[t0,0]", -1581112286),
        ("", 0),
        ("\U0001f600", 1772899),  # two code units: 31 * 0xD83D + 0xDE00
    ],
)
def test_hash_is_javas(text, expected):
    assert java_hash(text) == expected


@pytest.mark.parametrize(
    ("sizes", "threads", "expected"),
    [
        pytest.param(
            {"t0": 3, "t1": 3},
            ["C0-0", "C1-0"],
            {"C0-0": "t0/0 t0/2 t1/1", "C1-0": "t0/1 t1/0 t1/2"},
            id="RR1-the-article's-example",
        ),
        pytest.param(
            {"topic1": 5},
            ["g_C2-1", "g_C1-0", "g_C2-0", "g_C1-1"],
            {"g_C1-0": "topic1/0 topic1/4", "g_C1-1": "topic1/1", "g_C2-0": "topic1/2", "g_C2-1": "topic1/3"},
            id="RR2-threads-sort-as-text",
        ),
        pytest.param(
            {"a": 2, "b": 3, "c": 4},
            ["g_c1-0", "g_c2-0", "g_c2-1"],
            {"g_c1-0": "a/0 b/1 c/1", "g_c2-0": "a/1 b/2 c/2", "g_c2-1": "b/0 c/0 c/3"},
            id="RR3",
        ),
        pytest.param(
            {"t": 12},
            ["g_c1-0", "g_c1-1", "g_c1-2"],
            {"g_c1-0": "t/10 t/1 t/4 t/7", "g_c1-1": "t/11 t/2 t/5 t/8", "g_c1-2": "t/0 t/3 t/6 t/9"},
            id="RR4-the-order-of-the-hash-is-not-that-of-numbers",
        ),
    ],
)
def test_roundrobin_of_0_8_2_equals_the_references_vector(sizes, threads, expected):
    assert assigned(roundrobin_0_8_2, sizes, dict.fromkeys(sizes, threads)) == expected


@pytest.mark.parametrize(
    "threads",
    [
        pytest.param({"a": ["c1-0", "c2-0"], "b": ["c2-0"]}, id="RR5-a-topic-that-not-everybody-consumes"),
        pytest.param({"a": ["c1-0"], "b": ["c1-0", "c1-1"]}, id="RR6-unequal-streams"),
        pytest.param({}, id="nobody-subscribes-to-anything"),
        pytest.param({"a": ["c1-0"], "gone": ["c2-0"]}, id="a-topic-that-does-not-exist"),
    ],
)
def test_roundrobin_of_0_8_2_refuses_unequal_subscriptions_and_an_empty_group(threads):
    with pytest.raises(UnequalSubscriptions, match=r"round robin of 0\.8\.2"):
        roundrobin_0_8_2({"a": (0,)}, threads)


def test_the_refusal_names_both_topics_and_a_few_threads():
    with pytest.raises(UnequalSubscriptions, match=r"c-0, c-1, c-2, c-3, c-4 and 4 more consume a, but c-0 consume b"):
        roundrobin_0_8_2({}, {"a": [f"c-{n}" for n in range(9)], "b": ["c-0"]})


def test_roundrobin_of_1_1_accepts_unequal_subscriptions():
    threads = {"a": ["c1-0", "c2-0"], "b": ["c2-0"]}
    assert assigned(roundrobin_1_1, {"a": 2, "b": 2}, threads) == {"c1-0": "a/0", "c2-0": "a/1 b/0 b/1"}


def test_roundrobin_of_1_1_assigns_nothing_without_subscriptions():
    assert roundrobin_1_1({"a": (0, 1)}, {}) == {}


def test_members_of_both_releases_in_one_group_are_incompatible():
    """Two topics as measured on the originals: what the 0.8.2 member leaves, the 1.1 member does not take."""
    sizes, threads = {"t": 12, "u": 7}, ["g_new-0", "g_old-0"]
    old = roundrobin_0_8_2({t: range(n) for t, n in sizes.items()}, dict.fromkeys(sizes, threads))
    new = roundrobin_1_1({t: range(n) for t, n in sizes.items()}, dict.fromkeys(sizes, threads))
    owned = {*old["g_old-0"], *new["g_new-0"]}
    assert 0 < len(owned) < 19


@given(SIZES, st.sets(st.sampled_from(THREADS), min_size=1))
def test_equal_subscriptions_get_everything_once_and_evenly(sizes, threads):
    for assign in (roundrobin_0_8_2, roundrobin_1_1):
        answer = assign({t: range(n) for t, n in sizes.items()}, dict.fromkeys(sizes, sorted(threads)))
        loads = [len(part) for part in answer.values()]
        assert max(loads) - min(loads) <= 1
        every = sorted(tp for part in answer.values() for tp in part)
        assert every == sorted(TopicPartition(t, number) for t, n in sizes.items() for number in range(n))


@given(SIZES, GROUPS)
def test_1_1_gives_each_partition_once_to_a_thread_that_consumes_its_topic(sizes, group):
    answer = roundrobin_1_1({t: range(n) for t, n in sizes.items()}, group)
    every = sorted(tp for part in answer.values() for tp in part)
    assert every == sorted(TopicPartition(t, number) for t in group for number in range(sizes[t]))
    assert all(thread in group[tp.topic] for thread, part in answer.items() for tp in part)


@given(SIZES, GROUPS, st.randoms(use_true_random=False))
def test_the_order_of_the_maps_does_not_matter(sizes, group, random):
    shuffled = list(group.items())
    random.shuffle(shuffled)
    partitions = {t: range(n) for t, n in sizes.items()}
    assert roundrobin_1_1(partitions, group) == roundrobin_1_1(partitions, dict(shuffled))
