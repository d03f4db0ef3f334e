"""Groups as arrays: numbering of partitions and members, and claims settled as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors import claims
from kernel.assignors.group_arrays import NOBODY, ClaimArrays, Grid, Roster, settle
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.sticky_data import NO_GENERATION, Claim
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition

MEMBERS = [f"m{n}" for n in range(7)]
GENERATIONS = st.one_of(st.none(), st.integers(-1, 3))


def test_partitions_are_numbered_by_topics_in_java_order():
    """A character beyond the basic plane sorts before U+FB00 there, and after it in Python."""
    grid = Grid.of({"\ufb00": 2, "gone": 0, "\U0001d4b3": 3})
    assert grid.topics == ("\U0001d4b3", "\ufb00")
    assert grid.starts.tolist() == [0, 3, 5]
    topics, numbers = grid.located(np.array([4, 0, 2]))
    assert (topics.tolist(), numbers.tolist()) == ([1, 0, 0], [1, 0, 2])
    assert Grid.of({}).partitions == 0


def test_members_are_numbered_in_hash_order_and_ranked_in_java_order():
    ids = ["\ufb00", "\U0001d4b3", *MEMBERS]
    roster = Roster.of(ids)
    assert list(roster.members) == texts_in_hash_order(ids)
    assert [roster.members[n] for n in roster.walk] == texts_in_hash_order(roster.members)
    ranked = dict(zip(roster.ranks.tolist(), roster.members, strict=True))
    assert [ranked[n] for n in range(len(ids))] == [*MEMBERS, "\U0001d4b3", "\ufb00"]


@given(
    st.dictionaries(st.sampled_from("tu"), st.integers(0, 4)),
    st.dictionaries(
        st.sampled_from(MEMBERS),
        st.tuples(st.lists(st.tuples(st.sampled_from("tu"), st.integers(-1, 4)), max_size=8), GENERATIONS, GENERATIONS),
        min_size=1,
    ),
)
def test_claims_are_settled_as_one_by_one(sizes, said):
    """Some members claim a partition twice, some name two generations, or none."""
    group = {m: MemberSubscription(topics=("t", "u"), generation=subscribed) for m, (_, _, subscribed) in said.items()}
    claim = {
        id(group[m]): Claim(tuple(TopicPartition(*tp) for tp in had), generation)
        for m, (had, generation, _) in said.items()
    }
    existing = {topic: size for topic, size in sizes.items() if size}
    expected = claims.settle(existing, group, lambda subscription: claim[id(subscription)])

    grid, roster = Grid.of(sizes), Roster.of(group)
    every = [TopicPartition(t, n) for t in grid.topics for n in range(sizes[t])]
    number = {tp: at for at, tp in enumerate(every)}
    claimed = [
        (number[tp], index)
        for index, member in enumerate(roster.members)
        for tp in claim[id(group[member])].partitions
        if tp in number
    ]
    by_member = [
        [NO_GENERATION if generation is None else generation for generation in (said[member][1], said[member][2])]
        for member in roster.members
    ]
    settled = settle(
        grid,
        ClaimArrays(
            np.array([tp for tp, _ in claimed], np.int64),
            np.array([member for _, member in claimed], np.int32),
            *np.array(by_member, np.int64).T,
        ),
    )
    assert {every[n] for n in np.flatnonzero(settled.contested)} == expected.contested
    owner = {tp: member for member, owned in expected.owned.items() for tp in owned}
    assert [None if n == NOBODY else roster.members[n] for n in settled.owner.tolist()] == [
        owner.get(tp) for tp in every
    ]
