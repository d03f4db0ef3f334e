"""Encode the assignments of a whole group from an array of owners, as `encode_assignment` does for one member.

One buffer holds all of them; a few numpy steps over all members put every number in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coordinator.protocol.consumer_protocol import NEWEST_VERSION
from kernel.assignors.group_arrays import NOBODY, Grid, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEAD = 6  #: bytes before the first topic: version, number of topics
_TAIL = 4  #: null user data
_WORD = 8


def encode_assignments(members: int, grid: Grid, owner: NDArray[np.int32]) -> list[bytes]:
    """Return SyncGroup's bytes for each member, topics in the order of their names, as in `encode_assignment`."""
    grid, owner = _by_name(grid, owner)
    ids = np.flatnonzero(owner != NOBODY)
    ids = ids[stable_order(owner[ids])]
    owners = owner[ids]
    topics, numbers = grid.located(ids)

    # A piece is one member's partitions of one topic.
    begins = np.ones(len(ids), np.bool_)
    begins[1:] = (owners[1:] != owners[:-1]) | (topics[1:] != topics[:-1])
    firsts = np.flatnonzero(begins)
    counts = np.diff(firsts, append=len(ids))
    of_member, of_topic = owners[firsts], topics[firsts]
    names = [_name(topic) for topic in grid.topics]
    lengths = np.array([len(name) for name in names], np.int64)[of_topic]
    sizes = lengths + 4 + 4 * counts
    pieces_at = np.cumsum(sizes) - sizes + (_HEAD + _TAIL) * of_member + _HEAD
    pieces_of = np.bincount(of_member, minlength=members)
    last_pieces = np.cumsum(pieces_of)
    ends = np.append(0, np.cumsum(sizes))[last_pieces] + (_HEAD + _TAIL) * np.arange(1, members + 1)

    data = np.zeros(ends[-1] + _WORD, np.uint8)
    int16, int32 = (np.ndarray((len(data) - 3,), kind, data, strides=(1,)) for kind in (">i2", ">i4"))
    _put_names(data, names, pieces_at, lengths, of_topic)
    int32[pieces_at + lengths] = counts
    int32[np.repeat(pieces_at + lengths + 4 - 4 * firsts, counts) + 4 * np.arange(len(ids))] = numbers
    starts = np.append(0, ends[:-1])
    int16[starts] = NEWEST_VERSION
    int32[starts + 2] = pieces_of
    int32[ends - _TAIL] = -1
    written = data.data
    return [bytes(written[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _put_names(
    data: NDArray[np.uint8],
    names: list[bytes],
    at: NDArray[np.int64],
    lengths: NDArray[np.int64],
    topics: NDArray[np.int64],
) -> None:
    """Write names in whole words; the up to seven bytes overwritten after each belong to numbers written later."""
    words: NDArray[np.uint64] = np.ndarray((len(data) - _WORD + 1,), np.uint64, data, strides=(1,))
    for offset in range(0, max(map(len, names), default=0), _WORD):
        part = np.frombuffer(b"".join(name[offset : offset + _WORD].ljust(_WORD, b"\0") for name in names), np.uint64)
        which = np.flatnonzero(lengths > offset)
        words[at[which] + offset] = part[topics[which]]


def _name(topic: str) -> bytes:
    encoded = topic.encode("utf-8")
    return len(encoded).to_bytes(2, signed=True) + encoded


def _by_name(grid: Grid, owner: NDArray[np.int32]) -> tuple[Grid, NDArray[np.int32]]:
    """Sort topics in Python's string order, which differs from Java's only beyond the basic multilingual plane."""
    topics = tuple(sorted(grid.topics))
    if topics == grid.topics:
        return grid, owner
    at = {topic: slice(*grid.starts[index : index + 2]) for index, topic in enumerate(grid.topics)}
    parts = [owner[at[topic]] for topic in topics]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return Grid(topics, starts), np.concatenate(parts)
