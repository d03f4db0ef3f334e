"""java.util.HashMap when many texts fall into one bucket: what hash_order.py leaves out.

A bucket's ninth entry makes a table of fewer than 64 buckets double, however few entries there are, and makes a
red-black tree of the bucket in a larger one. The walk still follows a list, but the tree moves its root to the front
of it, and puts a new entry behind the one that becomes its parent. When a table doubles, half a tree of six or fewer
is a list again.

Source: java.util.HashMap of OpenJDK 8 and later (JEP 180), for what is put in one by one and never removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.java_hash import java_hash, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

SMALLEST_TABLE = 16
TREES_FROM_TABLE = 64  #: smaller tables double instead
LIST_MOST = 8  #: entries of a bucket that is no tree
SPLIT_LIST_MOST = 6  #: entries of half a tree that becomes a list

CHARACTERS_MOST = 256  #: of texts that are hashed at once; one that is longer would make all others as long


def spread(text: str) -> int:
    """The hash that the table goes by: high bits folded into the low ones, a signed 32-bit int."""
    hashed = java_hash(text) & 0xFFFFFFFF
    return signed(hashed ^ hashed >> 16)


def spreads(texts: Sequence[str]) -> NDArray[np.uint32]:
    """`spread` of each; of usual lengths all at once, one character of all texts after the other."""
    units = [text.encode("utf-16-be", "surrogatepass") for text in texts]
    width = max(map(len, units), default=0)
    if not 0 < width <= 2 * CHARACTERS_MOST:
        return np.array([spread(text) & 0xFFFFFFFF for text in texts], np.uint32)
    padded = b"".join(unit.rjust(width, b"\0") for unit in units)  # zeros in front leave a hash as it is
    hashes = np.zeros(len(units), np.uint32)
    for column in np.frombuffer(padded, ">u2").reshape(len(units), -1).T:
        hashes = hashes * np.uint32(31) + column
    return hashes ^ hashes >> np.uint32(16)


def is_crowded(hashes: NDArray[np.uint32]) -> bool:
    """Whether any bucket ever gets a ninth entry while the table is filled in this order; `hashes` as by `spread`."""
    if len(hashes) <= LIST_MOST:
        return False
    size = SMALLEST_TABLE
    while True:
        filled = hashes[: size * 3 // 4 + 1]  # the last of them is put before the table doubles
        if np.bincount(filled & (size - 1)).max() > LIST_MOST:
            return True
        if len(hashes) * 4 <= size * 3:
            return False
        size *= 2


def crowded_order(texts: Iterable[str]) -> list[str]:
    """Distinct texts in the order of a table that was filled in the order given, crowded or not."""
    table = [Bucket() for _ in range(SMALLEST_TABLE)]
    for position, text in enumerate(texts, start=1):
        entry = Entry(text)
        bucket = table[entry.hashed & (len(table) - 1)]
        bucket.put(entry)
        if bucket.root is None and len(bucket.walk) > LIST_MOST:
            if len(table) < TREES_FROM_TABLE:
                table = doubled(table)
            else:
                bucket.make_tree()
        if position * 4 > len(table) * 3:
            table = doubled(table)
    return [entry.text for bucket in table for entry in bucket.walk]


class Entry:
    """A text in its bucket; the rest is its place in the tree, if the bucket is one."""

    __slots__ = ("hashed", "key", "parent", "red", "sides", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.hashed = spread(text)
        self.key = (self.hashed, text.encode("utf-16-be", "surrogatepass"))  #: equal hashes: String.compareTo
        self.leave_tree()

    def leave_tree(self) -> None:
        self.red = False
        self.parent: Entry | None = None
        self.sides: list[Entry | None] = [None, None]  #: smaller ones, larger ones

    def side(self) -> int:
        """On which side of its parent it is."""
        assert self.parent is not None
        return int(self.parent.sides[1] is self)


class Bucket:
    """Entries in the order of the walk, and the root of the tree that they form, if they do."""

    def __init__(self, walk: Iterable[Entry] = (), root: Entry | None = None) -> None:
        self.walk = list(walk)
        self.root = root

    def put(self, entry: Entry) -> None:
        if self.root is None:
            self.walk.append(entry)
        else:
            parent = self._grow(entry)
            self.walk.insert(self.walk.index(parent) + 1, entry)
            self._root_to_front()

    def make_tree(self) -> None:
        """Of a list, or of what is left of a tree."""
        first, *others = self.walk
        for entry in self.walk:
            entry.leave_tree()
        self.root = first
        for entry in others:
            self._grow(entry)
        self._root_to_front()

    def split(self, bit: int) -> list[Bucket]:
        """The two buckets that become of it when the table doubles from `bit` buckets."""
        halves = [[entry for entry in self.walk if bool(entry.hashed & bit) is upper] for upper in (False, True)]
        if self.root is None:
            return [Bucket(half) for half in halves]
        buckets = []
        for half in halves:
            bucket = Bucket(half, self.root if len(half) == len(self.walk) else None)
            if SPLIT_LIST_MOST < len(half) < len(self.walk):
                bucket.make_tree()
            buckets.append(bucket)
        return buckets

    def _root_to_front(self) -> None:
        assert self.root is not None
        self.walk.remove(self.root)
        self.walk.insert(0, self.root)

    def _grow(self, entry: Entry) -> Entry:
        """The entry at which it was put into the tree, before the tree was balanced."""
        assert self.root is not None
        parent = self.root
        while (below := parent.sides[entry.key > parent.key]) is not None:
            parent = below
        parent.sides[entry.key > parent.key] = entry
        entry.parent = parent
        entry.red = True
        self._balance(entry)
        return parent

    def _balance(self, entry: Entry) -> None:
        """After an insertion: no red entry has a red parent, and the root is black."""
        while (parent := entry.parent) is not None and parent.red:
            top = parent.parent
            assert top is not None, "a red root"
            side = parent.side()
            uncle = top.sides[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                top.red = True
                entry = top
                continue
            if entry.side() != side:
                self._rotate(parent, side)
                parent = entry
            parent.red = False
            top.red = True
            self._rotate(top, 1 - side)
            break
        assert self.root is not None
        self.root.red = False

    def _rotate(self, top: Entry, side: int) -> None:
        """`top` goes down on this side, and what was on the other comes up."""
        risen = top.sides[1 - side]
        assert risen is not None
        moved = risen.sides[side]
        top.sides[1 - side] = moved
        if moved is not None:
            moved.parent = top
        risen.parent = top.parent
        if top.parent is None:
            self.root = risen
        else:
            top.parent.sides[top.side()] = risen
        risen.sides[side] = top
        top.parent = risen


def doubled(table: Sequence[Bucket]) -> list[Bucket]:
    """The same entries in twice as many buckets."""
    halves = [bucket.split(len(table)) for bucket in table]
    return [lower for lower, _ in halves] + [upper for _, upper in halves]
