"""The worked examples of the articles in docs/sources.md and of the reference, as tables."""

from __future__ import annotations

import pytest

from kernel.assignors.registry import ASSIGNORS, assignor_name
from kernel.assignors.subscription import MemberSubscription, java_order
from kernel.assignors.thread_range import thread_range
from kernel.errors import ConfigurationError


def assigned(strategy, sizes, topics_of, instances=None):
    """Answers as {member: "t0p0 t0p1"}, so that the tables read like the texts that they come from."""
    subscriptions = {
        member: MemberSubscription(topics=tuple(topics.split()), instance_id=(instances or {}).get(member))
        for member, topics in topics_of.items()
    }
    answer = ASSIGNORS[strategy](sizes, subscriptions)
    return {member: " ".join(f"{tp.topic}p{tp.partition}" for tp in sorted(answer[member])) for member in answer}


#: The reference's name, strategy, partitions per topic, topics per member, expected.
VECTORS = """
000-a | range | t1:4 | c0 c1 c2: t1 | c0: t1p0 t1p1 / c1: t1p2 / c2: t1p3
000-b | range | t1:4 t2:4 | c0 c1 c2: t1 t2 | c0: t1p0 t1p1 t2p0 t2p1 / c1: t1p2 t2p2 / c2: t1p3 t2p3
003-a | range | t0:4 t1:4 | C0 C1: t0 t1 | C0: t0p0 t0p1 t1p0 t1p1 / C1: t0p2 t0p3 t1p2 t1p3
003-b | range | t0:3 t1:3 | C0 C1: t0 t1 | C0: t0p0 t0p1 t1p0 t1p1 / C1: t0p2 t1p2
001-c | range | t:5 | C0 C1: t | C0: tp0 tp1 tp2 / C1: tp3 tp4
001-d | range | t:4 | C0 C1: t | C0: tp0 tp1 / C1: tp2 tp3
001-e | roundrobin | t0:3 t1:3 | C0 C1: t0 t1 | C0: t0p0 t0p2 t1p1 / C1: t0p1 t1p0 t1p2
001-f | roundrobin | t0:1 t1:2 t2:3 | C0: t0 / C1: t0 t1 / C2: t0 t1 t2 | C0: t0p0 / C1: t1p0 / C2: t1p1 t2p0 t2p1 t2p2
001-g | roundrobin | t:5 | C0 C1: t | C0: tp0 tp2 tp4 / C1: tp1 tp3
001-h | roundrobin | T0:3 T1:2 T2:4 | C0: T0 T1 / C1: T1 T2 / C2: T2 T0 \
    | C0: T0p0 T0p2 T1p1 / C1: T1p0 T2p0 T2p2 / C2: T0p1 T2p1 T2p3
001-h-range | range | T0:3 T1:2 T2:4 | C0: T0 T1 / C1: T1 T2 / C2: T2 T0 \
    | C0: T0p0 T0p1 T1p0 / C1: T1p1 T2p0 T2p1 / C2: T0p2 T2p2 T2p3
000-i | roundrobin | t0:3 t1:3 | C0 C1 C2: t0 t1 | C0: t0p0 t1p0 / C1: t0p1 t1p1 / C2: t0p2 t1p2
000-j | roundrobin | t0:3 t1:3 | C5 C3 C4: t0 t1 | C3: t0p0 t1p0 / C4: t0p1 t1p1 / C5: t0p2 t1p2
000-l | roundrobin | t0:2 t1:2 t2:2 t3:2 | C0 C1 C2: t0 t1 t2 t3 \
    | C0: t0p0 t1p1 t3p0 / C1: t0p1 t2p0 t3p1 / C2: t1p0 t2p1
000-m | roundrobin | t0:2 t1:2 t2:2 t3:2 | C0 C2: t0 t1 t2 t3 | C0: t0p0 t1p0 t2p0 t3p0 / C2: t0p1 t1p1 t2p1 t3p1
000-q | roundrobin | t0:1 t1:2 t2:3 | C1: t0 t1 / C2: t0 t1 t2 | C1: t0p0 t1p1 / C2: t1p0 t2p0 t2p1 t2p2
002-a | range | P:4 | C1 C2 C3: P | C1: Pp0 Pp1 / C2: Pp2 / C3: Pp3
002-a | roundrobin | P:4 | C1 C2 C3: P | C1: Pp0 Pp3 / C2: Pp1 / C3: Pp2
no such topic | range | t:1 | C0: t gone | C0: tp0
no such topic | roundrobin | t:1 empty:0 | C0: t gone empty | C0: tp0
nobody | roundrobin | t:1 |  |
nothing | range |  | C0:  | C0:
topics named twice | range | t:3 | C0: t t / C1: t | C0: tp0 tp1 / C1: tp2
"""


def by_member(cell: str) -> dict[str, str]:
    """Read `a b: x / c: y`."""
    rows = [part.partition(":") for part in cell.split(" / ") if part]
    return {member: told.strip() for members, _, told in rows for member in members.split()}


def vectors():
    for row in VECTORS.strip().splitlines():
        name, strategy, sizes, topics_of, expected = (cell.strip() for cell in row.split("|"))
        counts = {topic: int(number) for topic, number in (each.split(":") for each in sizes.split())}
        yield pytest.param(strategy, counts, by_member(topics_of), by_member(expected), id=f"{name}-{strategy}")


@pytest.mark.parametrize(("strategy", "sizes", "topics_of", "expected"), [*vectors()])
def test_assignment_equals_the_texts_example(strategy, sizes, topics_of, expected):
    assert assigned(strategy, sizes, topics_of) == expected


def test_roundrobin_of_static_members_ignores_new_member_ids():
    """000-k: C5, C3, C4 are the restarted I0, I1, I2."""
    answer = assigned(
        "roundrobin",
        {"t0": 3, "t1": 3},
        dict.fromkeys(("C3", "C4", "C5"), "t0 t1"),
        {"C5": "I0", "C3": "I1", "C4": "I2"},
    )
    assert answer == {"C5": "t0p0 t1p0", "C3": "t0p1 t1p1", "C4": "t0p2 t1p2"}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("range", {"C1": "t0p0 t0p1 t1p0 t1p1", "C0": "t0p2 t1p2"}),
        ("roundrobin", {"C1": "t0p0 t0p2 t1p1", "C0": "t0p1 t1p0 t1p2"}),
    ],
)
def test_static_members_come_before_dynamic_ones(strategy, expected):
    answer = assigned(strategy, {"t0": 3, "t1": 3}, {"C0": "t0 t1", "C1": "t0 t1"}, {"C1": "zzz"})
    assert answer == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("range", {"C4": "tp0 tp1", "C6": "tp2", "D0": ""}), ("roundrobin", {"C4": "tp0 tp2", "C6": "tp1", "D0": ""})],
)
def test_members_with_one_instance_id_come_in_hash_order(strategy, expected):
    """As Kafka 4.1.1's classes answer; a broker lets only one of them into a group."""
    answer = assigned(strategy, {"t": 3}, {"D0": "u", "C6": "t", "C4": "t"}, dict.fromkeys(("D0", "C6", "C4"), "i2"))
    assert answer == expected


def test_members_sort_by_utf16_code_units_as_java_strings_do():
    """U+1F600 is two surrogates in UTF-16 and sorts before U+FF21 there, after it by code points."""
    assert sorted(["\uff21", "\U0001f600"], key=java_order) == ["\U0001f600", "\uff21"]
    answer = assigned("range", {"t": 1}, {"\uff21": "t", "\U0001f600": "t"})
    assert answer == {"\U0001f600": "tp0", "\uff21": ""}


#: zookeeper-consumer-0.8 §3.1: partitions, threads as given (any order), expected
THREAD_VECTORS = [
    (5, "C1-0 C1-1 C2-0 C2-1", {"C1-0": [0, 1], "C1-1": [2], "C2-0": [3], "C2-1": [4]}),
    (10, "g_c2-0 g_c1-0 g_c3-0", {"g_c1-0": [0, 1, 2, 3], "g_c2-0": [4, 5, 6], "g_c3-0": [7, 8, 9]}),
    (3, "g_a-0 g_a-1 g_b-0 g_b-1 g_b-2", {"g_a-0": [0], "g_a-1": [1], "g_b-0": [2], "g_b-1": [], "g_b-2": []}),
    (3, "C0-0 C1-0", {"C0-0": [0, 1], "C1-0": [2]}),
    (4, "g_c1-0 g_c2-0 g_c10-0", {"g_c1-0": [0, 1], "g_c10-0": [2], "g_c2-0": [3]}),
    (0, "g_c1-0", {"g_c1-0": []}),
]


@pytest.mark.parametrize(("size", "threads", "expected"), THREAD_VECTORS)
def test_thread_range_equals_the_references_vector(size, threads, expected):
    assert thread_range(list(reversed(range(size))), threads.split()) == expected


def test_thread_range_sorts_threads_as_strings_and_partitions_as_numbers():
    """R4: twelve streams of one member; thread 10 comes before thread 2."""
    answer = thread_range(range(13), [f"g_c1-{n}" for n in range(12)])
    assert list(answer) == [f"g_c1-{n}" for n in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    assert answer["g_c1-0"] == [0, 1]
    assert [answer[thread] for thread in list(answer)[1:]] == [[n] for n in range(2, 13)]
    assert thread_range([10, 9, 2], ["a-0", "b-0"]) == {"a-0": [2, 9], "b-0": [10]}


def test_strategy_is_known_by_its_name_and_by_its_java_class():
    assert assignor_name("range") == "range"
    assert assignor_name("org.apache.kafka.clients.consumer.RoundRobinAssignor") == "roundrobin"
    with pytest.raises(ConfigurationError, match="Choose from range, roundrobin"):
        assignor_name("afei")
