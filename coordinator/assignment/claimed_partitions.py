"""Walk the `[topic, [partition]]` arrays of many members in parallel.

A piece is one topic with its partitions. A group of 2000 members may claim a million partitions in a million pieces.
One numpy step reads the first piece of all members, the next one the second pieces, and so on, so that Python takes no
step for a single piece. Once few members have pieces left, each of them is walked alone.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: With fewer members, walk each one alone: a numpy step for all of them costs about as much.
TOGETHER_MIN = 64

#: The end of an array that could not be read.
NOWHERE = -1

_PADDING = bytes(8)  #: after the last byte, so that whole words can be read anywhere
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Bytes:
    """Byte strings joined in one buffer, with views of the numbers at any offset. Positions are offsets into `data`."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.data = b"".join([*parts, _PADDING])
        lengths = np.array([len(part) for part in parts], np.int64)
        self.ends = np.cumsum(lengths)
        self.begins = self.ends - lengths
        size = len(self.data)
        self.int16: NDArray[np.int16] = np.ndarray((size - 1,), ">i2", self.data, strides=(1,))
        self.int32: NDArray[np.int32] = np.ndarray((size - 3,), ">i4", self.data, strides=(1,))
        self.words: NDArray[np.uint64] = np.ndarray((size - 7,), "<u8", self.data, strides=(1,))


class Pieces(NamedTuple):
    """Pieces of all members, one topic of one member each, in no particular order."""

    members: NDArray[np.int64]  #: indices of the members among those that were walked
    names_at: NDArray[np.int64]
    name_lengths: NDArray[np.int64]
    numbers_at: NDArray[np.int64]
    counts: NDArray[np.int64]  #: how many partitions, four bytes each

    def of(self, chosen: NDArray[np.bool_]) -> Pieces:
        return Pieces(*(column[chosen] for column in self))


def walk(
    data: Bytes, at: NDArray[np.int64], ends: NDArray[np.int64], *, null_is_empty: bool
) -> tuple[Pieces, NDArray[np.int64]]:
    """Return the pieces of the arrays that begin at `at`, bounded by `ends`, and where each array ends.

    An array that does not fit, or has a negative length, yields no pieces and ends `NOWHERE`. With `null_is_empty`,
    negative counts of topics and partitions mean 0.
    """
    walking = _Walk(data, at, ends, null_is_empty)
    active = np.flatnonzero(walking.left > 0)
    while len(active) >= TOGETHER_MIN:
        active = walking.step(active)
    for walker in active.tolist():
        walking.alone(walker)
    return walking.pieces(), np.where(walking.broken, NOWHERE, walking.here)


class _Walk:
    """The position of each walker (one per array), and how many pieces it has left."""

    def __init__(self, data: Bytes, at: NDArray[np.int64], ends: NDArray[np.int64], null_is_empty: bool) -> None:
        self._data = data
        self._ends = ends
        self._null_is_empty = null_is_empty
        self.here = at + 4
        fits = self.here <= ends
        self.left = self._counts(np.where(fits, at, 0))
        self.broken = ~fits | (self.left < 0) | (self.left * 6 > ends - self.here)  # a piece has at least six bytes
        self.left[self.broken] = 0
        self._found: list[tuple[NDArray[np.int64], ...]] = []
        self._found_alone: list[tuple[int, ...]] = []

    def step(self, active: NDArray[np.int64]) -> NDArray[np.int64]:
        """Read one piece of each of these walkers; return those that have more."""
        here, ends = self.here[active], self._ends[active]
        lengths = self._data.int16[here].astype(np.int64)
        numbers_at = here + lengths + 6
        fits = (lengths >= 0) & (numbers_at <= ends)
        counts = self._counts(np.where(fits, numbers_at - 4, 0))
        after = numbers_at + 4 * counts
        fits &= (counts >= 0) & (after <= ends)
        self._found.append((active, here + 2, lengths, numbers_at, counts))
        self.here[active] = after
        self.left[active] -= 1
        if not fits.all():
            self.broken[active[~fits]] = True
            active = active[fits]
        return active[self.left[active] > 0]

    def alone(self, walker: int) -> None:
        """Read all remaining pieces of one walker."""
        data, here, end = self._data.data, int(self.here[walker]), int(self._ends[walker])
        for _ in range(int(self.left[walker])):
            (length,) = _INT16.unpack_from(data, here)
            numbers_at = here + length + 6
            if length < 0 or numbers_at > end:
                self.broken[walker] = True
                return
            (count,) = _INT32.unpack_from(data, numbers_at - 4)
            if count < 0 and self._null_is_empty:
                count = 0
            self._found_alone.append((walker, here + 2, length, numbers_at, count))
            here = numbers_at + 4 * count
            if count < 0 or here > end:
                self.broken[walker] = True
                return
        self.here[walker] = here

    def pieces(self) -> Pieces:
        alone = np.array(self._found_alone, np.int64).reshape(-1, len(Pieces._fields))
        columns = zip(*self._found, alone.T, strict=True) if self._found else ((column,) for column in alone.T)
        found = Pieces(*map(np.concatenate, columns))
        return found.of(~self.broken[found.members]) if self.broken.any() else found

    def _counts(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = self._data.int32[at].astype(np.int64)
        return np.maximum(counts, 0) if self._null_is_empty else counts
