"""Balancing by counts guarantees what Kafka's algorithm does: valid, fair, and a fair assignment stays as it is."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors import balanced
from kernel.assignors.balanced import balance
from tests.kernel.assignors.unequal_groups import NOBODY, Group, counts, fault_of, group, kinds

TINY, SMALL = (300, 25, 12), (3_000, 70, 30)


@st.composite
def groups(draw):
    """Any group, with any owners: some own what they do not subscribe to, some own nothing."""
    sizes = draw(st.lists(st.integers(0, 9), max_size=6))
    members = draw(st.integers(0, 7))
    subscribed = draw(st.lists(st.booleans(), min_size=members * len(sizes), max_size=members * len(sizes)))
    owners = st.integers(NOBODY, members - 1) if draw(st.booleans()) else st.just(members - 1)
    owner = draw(st.lists(owners, min_size=sum(sizes), max_size=sum(sizes)))
    return group(sizes, np.array(subscribed, bool).reshape(members, len(sizes)), owner)


@given(groups())
def test_assignment_is_valid_fair_and_stable(asked):
    before = Group(*(array.copy() for array in asked))
    answer = balance(*asked)
    assert fault_of(asked, answer) == ""
    assert all(np.array_equal(*pair) for pair in zip(asked, before, strict=True))
    assert answer.dtype == np.int32
    assert np.array_equal(balance(*asked), answer)
    assert np.array_equal(balance(*asked._replace(owner=answer)), answer)


@given(groups())
def test_balancing_of_large_groups_is_as_fair(asked):
    """Topic by topic after computing all shares, as for groups that are too large to serve members one by one."""
    with patch.multiple(balanced, CELL_READS_MAX=0, READS_PER_CELL_MAX=0, FEW=1):
        assert fault_of(asked, balance(*asked)) == ""


@pytest.mark.parametrize("kind", kinds(*TINY, seed=0))
@pytest.mark.parametrize("size", [TINY, SMALL])
def test_group_is_fair_after_every_leave_and_join(kind: str, size: tuple[int, int, int]) -> None:
    """One, a tenth and half of the members leave and come back; then a tenth of them subscribe to other topics."""
    asked = kinds(*size, seed=1)[kind].balanced()
    assert fault_of(asked, asked.owner) == ""
    members = len(asked.subscribed)
    for gone in (np.array([members // 3]), np.arange(0, members, 10), np.arange(0, members, 2)):
        left = asked.without(gone).balanced()
        assert fault_of(left, left.owner) == ""
        back = left.joined_by(asked.subscribed[gone]).balanced()
        assert fault_of(back, back.owner) == ""
        assert np.array_equal(back.balanced().owner, back.owner)
    others = asked.subscribed.copy()
    others[::10] = others[::10][::-1]
    changed = asked._replace(subscribed=others)
    assert fault_of(changed, balance(*changed)) == ""


def test_topics_without_subscribers_and_members_without_topics_are_ignored():
    asked = group([2, 3, 0], [[True, False, True], [False, False, False]], [1, NOBODY, 0, 1, NOBODY])
    assert balance(*asked).tolist() == [0, 0, NOBODY, NOBODY, NOBODY]
    assert balance(*group([], np.zeros((3, 0)))).tolist() == []
    assert balance(*group([2], np.zeros((0, 1)))).tolist() == [NOBODY, NOBODY]


def test_more_members_than_partitions():
    asked = group([2, 1], np.ones((5, 2)), [4, 4, 4])
    answer = balance(*asked)
    assert fault_of(asked, answer) == ""
    assert sorted(np.bincount(answer, minlength=5)) == [0, 0, 1, 1, 1]
    assert (answer == 4).sum() == 1


def test_member_gives_up_its_highest_numbers():
    """a has all six of t, then b comes: three each."""
    assert balance(*group([6], [[True], [True]], [0] * 6)).tolist() == [0, 0, 0, 1, 1, 1]


def test_partition_moves_through_an_intermediate_member():
    """a may have t, b may have t and u, c may have u: what c needs comes from b, and b's from a."""
    asked = group([8, 4], [[True, False], [True, True], [False, True]], [0] * 8 + [1] * 4)
    answer = balance(*asked)
    assert fault_of(asked, answer) == ""
    had = counts(asked, answer)
    assert had[0, 1] > 0
    assert had[1, 2] > 0


def test_one_huge_topic_beside_small_ones():
    subscribed = np.eye(40, dtype=bool)
    subscribed[:, 0] = True
    asked = group([10_000] + [3] * 39, subscribed)
    answer = balance(*asked)
    assert fault_of(asked, answer) == ""
    loads = np.bincount(answer)
    assert loads.max() - loads.min() <= 1


def test_members_without_a_common_topic_do_not_affect_each_other():
    """Two groups in one: the second one is fair and keeps everything, whatever the first one has to move."""
    asked = group([4, 2], [[True, False], [True, False], [False, True], [False, True]], [0, 0, 0, 0, 2, 3])
    answer = balance(*asked)
    assert answer[4:].tolist() == [2, 3]
    assert sorted(answer[:4].tolist()) == [0, 0, 1, 1]
