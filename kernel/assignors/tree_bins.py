"""Tree bins of java.util.HashMap, for tables with many strings in one bucket: the part that hash_order.py leaves out.

With the ninth entry of a bucket, a table of fewer than 64 buckets doubles, and in a larger table the bucket becomes a
red-black tree (a tree bin). Iteration still follows the bucket's list, but the tree moves its root to the front of the
list, and inserts a new entry after its parent. When the table doubles, a half of at most six entries becomes a list.

Source: java.util.HashMap of OpenJDK 8 and later (JEP 180), for entries that are added one by one and never removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernel.java_hash import java_hash, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

SMALLEST_TABLE = 16
MIN_TREEIFY_CAPACITY = 64  #: buckets of the smallest table with tree bins; smaller ones double instead
TREEIFY_THRESHOLD = 8  #: the most entries in a bucket that is a list
UNTREEIFY_THRESHOLD = 6  #: the most entries in half a tree that becomes a list

CHARACTERS_MAX = 256  #: of strings that are hashed together; a longer one would pad all others to its length


def spread(text: str) -> int:
    """HashMap.hash: String.hashCode with the high bits folded into the low ones, as a signed 32-bit int."""
    hashed = java_hash(text) & 0xFFFFFFFF
    return signed(hashed ^ hashed >> 16)


def spreads(texts: Sequence[str]) -> NDArray[np.uint32]:
    """`spread` of each string, vectorized over the strings unless one is very long."""
    units = [text.encode("utf-16-be", "surrogatepass") for text in texts]
    width = max(map(len, units), default=0)
    if not 0 < width <= 2 * CHARACTERS_MAX:
        return np.array([spread(text) & 0xFFFFFFFF for text in texts], np.uint32)
    padded = b"".join(unit.rjust(width, b"\0") for unit in units)  # leading zeros do not change a hash
    hashes = np.zeros(len(units), np.uint32)
    for column in np.frombuffer(padded, ">u2").reshape(len(units), -1).T:
        hashes = hashes * np.uint32(31) + column
    return hashes ^ hashes >> np.uint32(16)


def has_full_bucket(hashes: NDArray[np.uint32]) -> bool:
    """Whether a bucket ever gets a ninth entry while the table is filled in this order; `hashes` are from `spreads`."""
    if len(hashes) <= TREEIFY_THRESHOLD:
        return False
    size = SMALLEST_TABLE
    while True:
        filled = hashes[: size * 3 // 4 + 1]  # the last one is added before the table doubles
        if np.bincount(filled & (size - 1)).max() > TREEIFY_THRESHOLD:
            return True
        if len(hashes) * 4 <= size * 3:
            return False
        size *= 2


def iteration_order(texts: Iterable[str]) -> list[str]:
    """Distinct strings in the iteration order of a table that was filled in the given order, with tree bins or not."""
    table = [Bucket() for _ in range(SMALLEST_TABLE)]
    for position, text in enumerate(texts, start=1):
        entry = Entry(text)
        bucket = table[entry.hashed & (len(table) - 1)]
        bucket.put(entry)
        if bucket.root is None and len(bucket.walk) > TREEIFY_THRESHOLD:
            if len(table) < MIN_TREEIFY_CAPACITY:
                table = doubled(table)
            else:
                bucket.make_tree()
        if position * 4 > len(table) * 3:
            table = doubled(table)
    return [entry.text for bucket in table for entry in bucket.walk]


class Entry:
    """A string in a bucket, and its place in the tree if the bucket is a tree bin."""

    __slots__ = ("hashed", "key", "parent", "red", "sides", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.hashed = spread(text)
        self.key = (self.hashed, text.encode("utf-16-be", "surrogatepass"))  #: ties: String.compareTo
        self.leave_tree()

    def leave_tree(self) -> None:
        self.red = False
        self.parent: Entry | None = None
        self.sides: list[Entry | None] = [None, None]  #: the smaller and the larger child

    def side(self) -> int:
        """Its index in the `sides` of its parent."""
        assert self.parent is not None
        return int(self.parent.sides[1] is self)


class Bucket:
    """Entries in iteration order, and the root of their tree if the bucket is a tree bin."""

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
        """Turn a list, or the rest of a tree, into a new tree."""
        first, *others = self.walk
        for entry in self.walk:
            entry.leave_tree()
        self.root = first
        for entry in others:
            self._grow(entry)
        self._root_to_front()

    def split(self, bit: int) -> list[Bucket]:
        """The two buckets into which this one is split when the table doubles from `bit` buckets."""
        halves = [[entry for entry in self.walk if bool(entry.hashed & bit) is upper] for upper in (False, True)]
        if self.root is None:
            return [Bucket(half) for half in halves]
        buckets = []
        for half in halves:
            bucket = Bucket(half, self.root if len(half) == len(self.walk) else None)
            if UNTREEIFY_THRESHOLD < len(half) < len(self.walk):
                bucket.make_tree()
            buckets.append(bucket)
        return buckets

    def _root_to_front(self) -> None:
        assert self.root is not None
        self.walk.remove(self.root)
        self.walk.insert(0, self.root)

    def _grow(self, entry: Entry) -> Entry:
        """Insert an entry into the tree. Returns its parent before rebalancing."""
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
        """Rebalance after an insertion, so that no red entry has a red parent and the root is black."""
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
        """Rotate `top` down on this side; its child on the other side takes its place."""
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
