"""The two corners of Java's library that clients of ZooKeeper can see: passwords, and the order of a set of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOW_32 = 0xFFFFFFFF
_LOW_48 = (1 << 48) - 1


def random_bytes(seed: int, number: int) -> bytes:
    """`new Random(seed).nextBytes(new byte[number])`."""
    state = (seed ^ 0x5DEECE66D) & _LOW_48
    drawn = bytearray()
    while len(drawn) < number:
        state = (state * 0x5DEECE66D + 0xB) & _LOW_48
        drawn += (state >> 16 & _LOW_32).to_bytes(4, "little")
    return bytes(drawn[:number])


def string_hash(text: str) -> int:
    """`String.hashCode()`, as an unsigned number."""
    value = 0
    encoded = text.encode("utf-16-be")
    for at in range(0, len(encoded), 2):
        value = (31 * value + (encoded[at] << 8 | encoded[at + 1])) & _LOW_32
    return value


class HashSet:
    """A `java.util.HashSet<String>`, iterated in its order: by hash, and in the table's size of the moment.

    A table grows and never shrinks. What Java does with eight strings in one place (a tree) is left out: it does not
    change the order of those that were there.
    """

    __slots__ = ("_places", "_table")

    def __init__(self) -> None:
        self._places = 16
        #: The strings with their hashes, in the order of insertion.
        self._table: dict[str, int] = {}

    def add(self, text: str) -> None:
        value = string_hash(text)
        self._table[text] = value ^ value >> 16
        while len(self._table) > self._places * 3 // 4:
            self._places *= 2

    def discard(self, text: str) -> None:
        self._table.pop(text, None)

    def __iter__(self) -> Iterator[str]:
        mask = self._places - 1
        # Sorting is stable: within a place, the order of insertion counts, as in Java's lists.
        return iter(sorted(self._table, key=lambda text: self._table[text] & mask))

    def __len__(self) -> int:
        return len(self._table)

    def clone(self) -> HashSet:
        """`clone()`: a table as small as possible (since Java 19), filled in this one's order."""
        other = HashSet()
        if self._table:
            other._places = 1
            while other._places * 3 < len(self._table) * 4:
                other._places *= 2
        other._table = {text: self._table[text] for text in self}
        return other
