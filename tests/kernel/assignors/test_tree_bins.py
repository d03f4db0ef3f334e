"""Tree bins, compared with java.util.HashMap of OpenJDK 17."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.hash_order import bucket, table_size, texts_in_hash_order
from kernel.assignors.tree_bins import has_full_bucket, iteration_order, spreads
from kernel.java_hash import java_hash

#: Sixteen texts with the same hash.
ONE_HASH = ["".join(text) for text in itertools.product(("Aa", "BB"), repeat=4)]

#: m2, m18, ...: one bucket of 16, and of 64.
OF_16 = [2, 18, 29, 90, 103, 114, 125, 136, 147, 158, 169, 202]
OF_64 = [90, 1006, 1028, 1105, 1127, 1149, 1204, 1226, 1248, 1303, 1325, 1347, 1369, 1402]
OF_64 += [1424, 1446, 1468, 1501, 1523, 1545, 1567, 1589, 1600, 1622, 1644, 1666, 1688, 1721, 1743, 1765]


@pytest.mark.parametrize(
    ("count", "expected"), [(10, list(range(10))), (11, [3, 0, 1, 2, *range(4, 11)]), (16, [3, 0, 1, 2, *range(4, 16)])]
)
def test_table_doubles_twice_before_a_bucket_becomes_a_tree_with_its_root_in_front(count, expected):
    assert texts_in_hash_order(ONE_HASH[:count]) == [ONE_HASH[n] for n in expected]


def numbers_in_order(numbers):
    return [int(text[1:]) for text in texts_in_hash_order(f"m{number}" for number in numbers)]


def test_ninth_entry_of_a_bucket_makes_a_small_table_double():
    assert numbers_in_order(OF_16) == [90, 18, 103, 125, 147, 169, 202, 2, 29, 114, 136, 158]
    assert numbers_in_order(OF_16[:8]) == OF_16[:8]


def test_entry_of_a_tree_follows_its_parent_and_trees_are_split():
    expected = [1006, 90, 1028, 1347, 1369, 1105, 1127, 1149, 1204, 1402, 1226, 1248, 1303, 1325]
    assert numbers_in_order(OF_64[:14]) == expected
    expected = [1226, 1006, 90, 1028, 1347, 1369, 1105, 1127, 1149, 1204, 1402, 1468, 1501, 1589, 1523, 1545, 1567]
    expected += [1424, 1446, 1721, 1743, 1765, 1600, 1622, 1644, 1666, 1688, 1248, 1303, 1325]
    assert numbers_in_order(OF_64) == expected


@given(st.lists(st.text(max_size=3), unique=True, max_size=60))
def test_table_without_tree_bins_is_in_plain_hash_order(texts):
    if not has_full_bucket(spreads(texts)):
        in_order = sorted(texts, key=lambda text: bucket(java_hash(text), table_size(len(texts))))
        assert iteration_order(texts) == texts_in_hash_order(texts) == in_order


@given(st.permutations(range(30)), st.integers(0, 400))
def test_order_is_a_permutation(order, others):
    texts = [f"m{OF_64[n]}" for n in order] + [f"x{n}" for n in range(others)]
    assert has_full_bucket(spreads(texts))
    assert sorted(texts_in_hash_order(texts)) == sorted(texts)
