"""The corners of Java's library, by what Java gives."""

from __future__ import annotations

import pytest

from comparison.simulation.zookeeper.model.java import HashSet, random_bytes, string_hash


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("abc", 96354), ("Aa", 2112), ("BB", 2112), ("polygenelubricants", 1 << 31)]
)
def test_hash_of_a_string_is_javas(text: str, value: int) -> None:
    assert string_hash(text) == value


def test_hash_counts_a_character_beyond_the_first_plane_as_two() -> None:
    assert string_hash("\U0001f600") == (31 * 0xD83D + 0xDE00) & 0xFFFFFFFF


def test_random_bytes_are_those_of_javas_generator() -> None:
    """`new Random(42).nextInt()` is -1170105035, and `nextBytes` takes the lowest byte of each integer first."""
    assert int.from_bytes(random_bytes(42, 4), "little", signed=True) == -1170105035
    assert len(random_bytes(42, 16)) == 16


def test_set_is_iterated_by_place_and_then_by_insertion() -> None:
    names = HashSet()
    for name in ("b", "a", "q", "Q", "A"):  # hashes 98, 97, 113, 81, 65: all but "b" are in the second place of 16
        names.add(name)
    assert list(names) == ["a", "q", "Q", "A", "b"]
    names.discard("q")
    names.add("q")
    assert list(names) == ["a", "Q", "A", "q", "b"]


def test_clone_of_a_set_has_the_smallest_table() -> None:
    names = HashSet()
    for number in range(13):
        names.add(chr(ord("a") + number))
    for name in "bcefghijklm":
        names.discard(name)
    assert list(names) == ["a", "d"]  # of 32 places
    assert list(names.clone()) == ["d", "a"]  # of 4: 100 is in the first, 97 in the second


def test_empty_clone_grows_as_a_new_set_does() -> None:
    names = HashSet().clone()
    for name in ("b", "Q"):
        names.add(name)
    assert list(names) == ["Q", "b"]
