"""Look up the topics of a million names in bytes at once.

Names are hashed, eight bytes at a time, and compared with the topic of the same hash. Names without a match are looked
up one by one, so that accidental or malicious collisions make no difference.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from coordinator.assignment.claimed_partitions import Bytes
from coordinator.protocol.consumer_protocol import MalformedMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coordinator.assignment.claimed_partitions import Pieces

UNKNOWN = -1

_FACTOR = 0x9E3779B97F4A7C15  #: odd, and its bits look random
_HALF = 32


@cache
def _masks() -> NDArray[np.uint64]:
    """Of the first 0 to 8 bytes of a little-endian word."""
    return np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


class TopicNames:
    """Numbers topics in the order in which they are learned."""

    def __init__(self) -> None:
        self.codes: dict[bytes, int] = {}
        self.texts: list[str] = []

    def learn(self, name: bytes) -> int:
        """Return the topic's number, a new one if it is unknown. Raises `MalformedMetadata` if it is not UTF-8."""
        code = self.codes.get(name)
        if code is None:
            try:
                self.texts.append(name.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise MalformedMetadata(f"a topic name is not UTF-8: {error}") from error
            code = self.codes[name] = len(self.texts) - 1
        return code

    def recognise(self, data: Bytes, pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the topic number of each piece, or `UNKNOWN`; and the indices of the names that are not UTF-8."""
        found = self._by_hash(data, pieces)
        odd = []
        checked: dict[bytes, int | None] = {}
        for at, name in self._names(data, pieces, np.flatnonzero(found == UNKNOWN)):
            if name not in checked:
                checked[name] = self.codes.get(name, UNKNOWN) if is_utf8(name) else None
            code = checked[name]
            if code is None:
                odd.append(at)
            else:
                found[at] = code
        return found, np.array(odd, np.int64)

    def recognise_as_java(self, data: Bytes, pieces: Pieces) -> NDArray[np.int64]:
        """Return the topic numbers, decoding invalid UTF-8 to U+FFFD as Java does."""
        found, odd = self.recognise(data, pieces)
        by_text = {text: code for code, text in enumerate(self.texts)}
        for at, name in self._names(data, pieces, odd):
            found[at] = by_text.get(name.decode("utf-8", "replace"), UNKNOWN)
        return found

    @staticmethod
    def _names(data: Bytes, pieces: Pieces, which: NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
        begins, lengths = pieces.names_at[which].tolist(), pieces.name_lengths[which].tolist()
        for at, begin, length in zip(which.tolist(), begins, lengths, strict=True):
            yield at, data.data[begin : begin + length]

    def _by_hash(self, data: Bytes, pieces: Pieces) -> NDArray[np.int64]:
        if not self.codes:
            return np.full(len(pieces.counts), UNKNOWN)
        known = Bytes(list(self.codes))
        lengths = known.ends - known.begins
        length_max = int(lengths.max())
        hashes = _hashes(known, known.begins, lengths, length_max)
        order = np.argsort(hashes)
        theirs = _hashes(data, pieces.names_at, pieces.name_lengths, length_max)
        places = np.searchsorted(hashes[order], theirs)
        candidates = order[np.minimum(places, len(order) - 1)]
        found = np.where(lengths[candidates] == pieces.name_lengths, candidates, UNKNOWN)
        which = np.flatnonzero(found != UNKNOWN)
        for offset in range(0, length_max, 8):
            which = which[pieces.name_lengths[which] > offset]
            if not len(which):
                break
            candidates = found[which]
            words = _words(known, known.begins[candidates], lengths[candidates], offset)
            differ = words != _words(data, pieces.names_at[which], pieces.name_lengths[which], offset)
            found[which[differ]] = UNKNOWN
            which = which[~differ]
        return found


def is_utf8(name: bytes) -> bool:
    """Return whether the name is valid UTF-8."""
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _words(data: Bytes, begins: NDArray[np.int64], lengths: NDArray[np.int64], offset: int) -> NDArray[np.uint64]:
    """Return eight bytes of each name from `offset` on, zero beyond its end."""
    places = np.minimum(begins + offset, len(data.words) - 1)
    words: NDArray[np.uint64] = data.words[places] & _masks()[np.clip(lengths - offset, 0, 8)]
    return words


def _hashes(data: Bytes, begins: NDArray[np.int64], lengths: NDArray[np.int64], length_max: int) -> NDArray[np.uint64]:
    """Hash the names' lengths and their first `length_max` bytes."""
    hashes = lengths.astype(np.uint64)
    which = np.arange(len(lengths))
    for offset in range(0, length_max, 8):
        which = which[lengths[which] > offset]
        if not len(which):
            break
        hashed = (hashes[which] ^ _words(data, begins[which], lengths[which], offset)) * _FACTOR
        hashes[which] = hashed ^ hashed >> _HALF
    return hashes
