"""The sticky strategies from bytes to bytes: arrays give the same answers as decoding and encoding one by one."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment import claimed_partitions, topic_names
from coordinator.assignment.assignment_arrays import encode_assignments
from coordinator.assignment.sticky import BALANCED, EQUAL, KAFKAS_ORDER, READERS, assign, decide
from coordinator.assignment.subscription_arrays import read_cooperative, read_sticky
from coordinator.protocol.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
    subscription_of,
)
from kernel.assignors.claims import cooperative_claim, sticky_claim
from kernel.assignors.group_arrays import Grid
from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.sticky_data import encode_cooperative, encode_sticky
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

#: Names shorter than a word, as long as one, longer; ordered differently in Java and in Python; and what Java reads
#: where bytes are not UTF-8.
TOPICS = ["", "t", "u\ufffd", "exactly8", "more than eight", "more than eighteen", "\ufb00x", "\U0001d4b3"]
BOTH = pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])

generations = st.one_of(st.none(), st.integers(0, 3))
claimed = st.lists(st.builds(TopicPartition, st.sampled_from([*TOPICS, "gone"]), st.integers(-1, 6)), max_size=8)


def one_by_one(strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes]) -> dict[str, bytes]:
    decoded = {member: subscription_of(data) for member, data in members.items()}
    answer = ASSIGNORS[strategy](sizes, decoded)
    return {member: encode_assignment(partitions) for member, partitions in answer.items()}


def assert_read_as_one_by_one(strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes]) -> None:
    """Per member: topics, claims on partitions that exist, generation of the claim, generation of the subscription."""
    read = READERS[strategy](members)
    grid = read.grid(sizes)
    read_claims = read.claims_on(grid)
    claimed_by: dict[int, list[TopicPartition]] = {index: [] for index in range(len(members))}
    for member, topic, number in zip(read_claims.claimants.tolist(), *grid.located(read_claims.ids), strict=True):
        claimed_by[member].append(TopicPartition(grid.topics[topic], number))
    claim_of = sticky_claim if strategy == "sticky" else cooperative_claim
    wanted = {topic for data in members.values() for topic in subscription_of(data).topics}
    exists = {TopicPartition(topic, number) for topic in wanted for number in range(sizes.get(topic, 0))}
    assert read.topics == wanted
    for index, member in enumerate(read.roster.members):
        subscription = subscription_of(members[member])
        claim = claim_of(subscription)
        assert {read.names[topic] for topic in read.subscribed[index]} == set(subscription.topics)
        assert sorted(claimed_by[index]) == sorted(tp for tp in claim.partitions if tp in exists)
        generations_read = read_claims.generations[index], read_claims.in_subscriptions[index]
        assert generations_read == tuple(-1 if g is None else g for g in (claim.generation, subscription.generation))


def assert_as_one_by_one(strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes]) -> dict[str, bytes]:
    answer = assign(strategy, sizes, members)
    assert list(answer.items()) == list(one_by_one(strategy, sizes, members).items())
    return answer


@st.composite
def damaged(draw: st.DrawFn, written: bytes) -> bytes:
    """Sometimes cut, or a few bytes written over: lengths that are negative or too large, names that are not UTF-8."""
    data = bytearray(written)
    match draw(st.sampled_from(["as it is", "as it is", "cut", "longer", "written over"])):
        case "cut":
            del data[draw(st.integers(0, len(data))) :]
        case "longer":
            data += draw(st.binary(max_size=5))
        case "written over":
            for at in draw(st.lists(st.integers(0, max(len(data) - 1, 0)), max_size=3)):
                data[at : at + 1] = bytes([draw(st.sampled_from([0, 1, 2, 8, 127, 128, 255]))])
    return bytes(data)


@st.composite
def subscription_bytes(draw: st.DrawFn) -> bytes:
    """One member's subscription, of any version and age, mostly to all topics."""
    had = draw(claimed)
    topics = draw(st.one_of(st.just(TOPICS), st.just(TOPICS), st.lists(st.sampled_from(TOPICS), unique=True)))
    user_data = draw(
        st.one_of(
            st.none(),
            st.just(b""),
            generations.map(lambda generation: encode_sticky(had, generation)).flatmap(damaged),
            st.integers(-1, 3).map(encode_cooperative).flatmap(damaged),
        )
    )
    owned = tuple(draw(claimed)) if draw(st.booleans()) else ()
    said = MemberSubscription(topics=tuple(topics), owned=owned, generation=draw(generations), user_data=user_data)
    return draw(damaged(encode_subscription(said, version=draw(st.integers(0, 3)))))


group_sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 6))
groups = st.dictionaries(st.integers(0, 20).map("m{}".format), subscription_bytes(), max_size=9)


@given(group_sizes, groups)
def test_arrays_give_the_same_answer_as_decoding_one_by_one_for_any_bytes(
    sizes: dict[str, int], members: dict[str, bytes]
) -> None:
    """Members read alone and side by side; names with different hashes, and with equal ones."""
    for strategy in READERS:
        expected = list(one_by_one(strategy, sizes, members).items())
        assert list(assign(strategy, sizes, members).items()) == expected
        with patch.object(claimed_partitions, "TOGETHER_MIN", 1), patch.object(topic_names, "_FACTOR", np.uint64(0)):
            assert list(assign(strategy, sizes, members).items()) == expected
            assert_read_as_one_by_one(strategy, sizes, members)
        assert_read_as_one_by_one(strategy, sizes, members)


FIRST = struct.pack(">h1siii", 1, b"t", 2, 1, 2)  #: t1 and t2, kept if the rest of the array can be read
ARRAYS = {
    "whole": struct.pack(">i", 1) + FIRST,
    "null": struct.pack(">i", -1),
    "more topics than bytes": struct.pack(">i", 2**31 - 1) + FIRST,
    "a topic less than said": struct.pack(">i", 2) + FIRST,
    "a null name": struct.pack(">i", 2) + FIRST + struct.pack(">hi", -1, 0),
    "a name too long": struct.pack(">i", 2) + FIRST + struct.pack(">hi", 300, 0),
    "a name that is no UTF-8": struct.pack(">i", 2) + FIRST + struct.pack(">h1sii", 1, b"\xff", 1, 0),
    "null partitions": struct.pack(">i", 2) + FIRST + struct.pack(">h1si", 1, b"u", -1),
    "more partitions than bytes": struct.pack(">i", 2) + FIRST + struct.pack(">h1si", 1, b"u", 100),
}


@pytest.mark.parametrize("place", ["owned", "user data"])
@pytest.mark.parametrize("together_least", [1, claimed_partitions.TOGETHER_MIN])
@pytest.mark.parametrize("kind", ARRAYS)
def test_array_of_claims_is_accepted_or_ignored_as_one_by_one(kind: str, together_least: int, place: str) -> None:
    strategy = "cooperative-sticky" if place == "owned" else "sticky"
    topics, array, generation = struct.pack(">ih1sh1s", 2, 1, b"t", 1, b"u"), ARRAYS[kind], struct.pack(">i", 5)
    if place == "owned":
        said = struct.pack(">h", 2) + topics + struct.pack(">i", -1) + array + generation
    else:
        user_data = array + generation
        said = struct.pack(">h", 0) + topics + struct.pack(">i", len(user_data)) + user_data
    rival = MemberSubscription(topics=("t", "u"), owned=(TopicPartition("t", 1),), generation=1)
    members = {"a": encode_subscription(rival), "b": said, "c": encode_subscription(rival)}
    with patch.object(claimed_partitions, "TOGETHER_MIN", together_least):
        assert_read_as_one_by_one(strategy, {"t": 5, "u": 3}, members)
        assert_as_one_by_one(strategy, {"t": 5, "u": 3}, members)


def rejoining(strategy: str, answer: Mapping[str, bytes | None], generation: int) -> dict[str, bytes]:
    """Members as they rejoin with what they were given; None is a new one, which has nothing."""
    found = {}
    for member, given_bytes in answer.items():
        had = tuple(sorted(decode_assignment(given_bytes or b"").partitions))
        now = None if given_bytes is None else generation
        if strategy == "sticky":
            user_data = None if now is None else encode_sticky(had, now)
            said = MemberSubscription(topics=tuple(TOPICS), generation=now, user_data=user_data)
        else:
            user_data = encode_cooperative(-1 if now is None else now)
            said = MemberSubscription(topics=tuple(TOPICS), owned=had, generation=now, user_data=user_data)
        found[member] = encode_subscription(said)
    return found


@BOTH
def test_arrays_give_the_same_answers_over_the_rounds_of_a_large_group(strategy: str) -> None:
    """More members than are read alone; some come back after a while with what they had."""
    drawn = random.Random(strategy)
    sizes = {topic: drawn.randrange(1, 300) for topic in TOPICS}
    group: dict[str, bytes | None] = {f"member-{n}": None for n in range(150)}
    away: dict[str, bytes] = {}
    for generation in range(6):
        members = rejoining(strategy, group, generation) | away
        away.clear()
        group = {**assert_as_one_by_one(strategy, sizes, members)}
        for member in drawn.sample(sorted(group), 20):
            group.pop(member)
            away[member] = members[member]
        group |= {f"new-{generation}-{n}": None for n in range(drawn.randrange(1, 30))}


def test_user_data_names_a_topic_in_bytes_that_java_decodes_as_another() -> None:
    """Kafka reads bytes that are not UTF-8 as U+FFFD: a member that claims such a name keeps the topic so called."""
    had = encode_sticky([TopicPartition("u!", 0)], 1).replace(b"!", b"\xff")
    members = {
        name: encode_subscription(MemberSubscription(topics=("u\ufffd",), generation=1, user_data=data))
        for name, data in {"a": encode_sticky([], 1), "b": had}.items()
    }
    answer = assert_as_one_by_one("sticky", {"u\ufffd": 1}, members)
    assert decode_assignment(answer["b"]).partitions == {("u\ufffd", 0)}


def test_topics_are_known_before_their_sizes_except_from_malformed_subscriptions() -> None:
    members = {
        "a": encode_subscription(MemberSubscription(topics=("t", "gone"))),
        "b": encode_subscription(MemberSubscription(topics=("u", "t")))[:-20],
        "c": encode_subscription(MemberSubscription(topics=("gone", "t", "t"))),
    }
    read = read_sticky(members)
    assert read.topics == {"t", "gone"}
    assert not read.alike
    del members["b"]
    assert read_sticky(members).alike


def test_assignment_names_its_algorithm_and_number_of_partitions() -> None:
    members = {name: encode_subscription(MemberSubscription(topics=("t", "gone"))) for name in "ab"}
    equal = decide("sticky", {"t": 3, "u": 2}, members, read_sticky(members), exact_up_to=5)
    assert (equal.algorithm, equal.partitions) == (EQUAL, 3)
    members["c"] = encode_subscription(MemberSubscription(topics=("u",)))
    other = decide("sticky", {"t": 3, "u": 2}, members, read_sticky(members), exact_up_to=5)
    assert (other.algorithm, other.partitions) == (KAFKAS_ORDER, 5)


@given(group_sizes, groups)
def test_groups_above_the_limit_get_a_valid_balanced_assignment(
    sizes: dict[str, int], members: dict[str, bytes]
) -> None:
    """Nothing twice, and every subscribed topic; cooperatively except for what others may still read."""
    for strategy in READERS:
        assert_balanced(strategy, sizes, members)


def assert_balanced(strategy: str, sizes: Mapping[str, int], members: Mapping[str, bytes]) -> None:
    subscriptions = READERS[strategy](members)
    decision = decide(strategy, sizes, members, subscriptions, exact_up_to=0)
    grid = subscriptions.grid(sizes)
    everywhere_equal = subscriptions.alike or grid.partitions == 0
    assert decision.algorithm in ((EQUAL, KAFKAS_ORDER) if everywhere_equal else (BALANCED,))
    assigned = {member: decode_assignment(data).partitions for member, data in decision.assignments.items()}
    assert assigned.keys() == members.keys()
    wanted = {member: set(subscription_of(data).topics) for member, data in members.items()}
    every = {
        TopicPartition(topic, n) for topics in wanted.values() for topic in topics for n in range(sizes.get(topic, 0))
    }
    withheld = every.difference(*assigned.values())
    assert sum(map(len, assigned.values())) + len(withheld) == len(every)
    assert all(tp.topic in wanted[member] for member, given_to in assigned.items() for tp in given_to)
    owned = {tp for data in members.values() for tp in subscription_of(data).owned}
    assert withheld <= (owned if strategy == "cooperative-sticky" else set())


def test_balanced_cooperative_assignment_withholds_claimed_partitions() -> None:
    """a has all four of t; c joins, and gets u, which nobody claims, but nothing of t yet."""
    had = tuple(TopicPartition("t", n) for n in range(4))
    members = {
        "a": encode_subscription(MemberSubscription(topics=("t",), owned=had, generation=3)),
        "c": encode_subscription(MemberSubscription(topics=("t", "u"), generation=3)),
    }
    group = ("cooperative-sticky", {"t": 4, "u": 1}, members)
    withholding = decide(*group, read_cooperative(members), exact_up_to=4)
    assert withholding.algorithm == BALANCED
    assigned = {member: sorted(decode_assignment(data).partitions) for member, data in withholding.assignments.items()}
    assert len(assigned["a"]) in (2, 3)
    assert assigned["c"] == [("u", 0)]
    assert decide(*group, read_cooperative(members), exact_up_to=5).algorithm == KAFKAS_ORDER


@BOTH
def test_group_without_members_and_members_without_topics(strategy: str) -> None:
    assert assign(strategy, {"t": 1}, {}) == {}
    assert READERS[strategy]({}).topics == frozenset()
    assert assign(strategy, {}, {"a": b"", "b": b"\0\3"}) == dict.fromkeys("ab", encode_assignment([]))


@given(group_sizes, st.integers(1, 5), st.randoms(use_true_random=False))
def test_owners_are_written_as_assignments(sizes: dict[str, int], members: int, drawn: random.Random) -> None:
    grid = Grid.of(sizes)
    every = [TopicPartition(topic, n) for topic in grid.topics for n in range(sizes[topic])]
    owner = [drawn.randrange(-1, members) for _ in every]
    assert encode_assignments(members, grid, np.array(owner, np.int32)) == [
        encode_assignment([tp for tp, has in zip(every, owner, strict=True) if has == member])
        for member in range(members)
    ]


def test_malicious_lengths_cost_no_memory() -> None:
    """A claim of two billion topics in a few bytes, among members whose claims are read side by side."""
    had = encode_sticky([TopicPartition("t", 0)], 1)
    huge = struct.pack(">i", 2**31 - 1) + had[4:]
    members = {
        f"m{n}": encode_subscription(MemberSubscription(topics=("t",), user_data=had if n else huge))
        for n in range(claimed_partitions.TOGETHER_MIN + 1)
    }
    assert_as_one_by_one("sticky", {"t": 2}, members)
