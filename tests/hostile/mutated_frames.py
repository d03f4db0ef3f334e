"""Valid requests and their mutations: counts, lengths, numbers, tags, cuts, duplicated and random bytes.

    for frame in MutatedFrames(seed=3).take(1000): ...

Every API and version gets the same share. `how` names the mutation, so that a failure identifies its frame; the same
seed gives the same frames. `is_refused` is our own decoder's verdict.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kernel.wire.codec import decode_request
from kernel.wire.errors import MalformedFrame, UnsupportedVersion
from kernel.wire.tags import uvarint
from kernel.wire.versions import Api
from tests.support.wire.marked_frames import MESSAGES, Kind, Mark, Message, marks, random_body

REQUESTS = tuple(message for message in MESSAGES if message.is_request)

#: Fields with timeouts or waiting times in milliseconds.
_PATIENCE = {"max_wait": 1, "wait_ms": 1, "timeout": 100, "session_timeout": 6_000, "rebalance_timeout": 1_000}
_EXTREMES = (0, 1, -1, -2, 127, 128, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))


class MutatedFrame(NamedTuple):
    """A frame; `data` begins with its size, which one mutation makes wrong."""

    message: Message
    how: str
    data: bytes

    @property
    def is_refused(self) -> bool:
        """Whether it is not a valid request, so that the broker must close the connection without any effect."""
        size = struct.unpack_from(">i", self.data)[0] if len(self.data) >= 4 else -1
        if size != len(self.data) - 4:
            return True
        try:
            decode_request(self.data[4:])
        except MalformedFrame:
            return True
        except UnsupportedVersion as error:
            return error.api_key != Api.ApiVersions  # which is answered even then (KIP-511)
        return False

    @property
    def name(self) -> str:
        return f"{self.message.api.name} {self.message.version}, {self.how}: {self.data.hex()}"


class MutatedFrames:
    """An endless supply of frames, cycling over all requests of the version table."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def take(self, number: int) -> Iterator[MutatedFrame]:
        for count in range(number):
            yield self.frame(REQUESTS[count % len(REQUESTS)])

    def frame(self, message: Message) -> MutatedFrame:
        """A new valid request with one mutation, sometimes two."""
        rng = self._rng
        body = random_body(message.entity, rng)
        body.update({name: ms for name, ms in _PATIENCE.items() if name in body})
        frame = message.encoded(body)
        parts = marks(message, frame)
        mutation = rng.choice(_MUTATIONS)
        data = mutation(frame, parts, rng)
        how = mutation.__name__.strip("_")
        if rng.random() < 0.1:
            data, how = _random_bytes(data, parts, rng), f"{how} and random_bytes"
        return MutatedFrame(message, how, data)


def sized(frame: bytes | bytearray) -> bytes:
    """A frame with its correct size."""
    return struct.pack(">i", max(len(frame) - 4, 0)) + bytes(frame[4:])


def _replaced(frame: bytes, mark: Mark, by: bytes) -> bytes:
    return sized(frame[: mark.at] + by + frame[mark.at + mark.size :])


def _one_of(parts: list[Mark], rng: random.Random, *kinds: Kind) -> Mark | None:
    found = [mark for mark in parts if mark.kind in kinds]
    return rng.choice(found) if found else None


def _another_size(frame: bytes, mark: Mark, rng: random.Random) -> bytes:
    left = len(frame) - mark.at - mark.size
    number = rng.choice((-2, -1, 0, 1, 2, 3, left - 1, left, left + 1, 2**15, 2**20, 2**28, 2**31 - 1, 2**32 - 2))
    if mark.is_compact:
        by = uvarint(max(number + (mark.kind is not Kind.TAGS), 0))
    elif mark.size == 2:
        by = struct.pack(">h", max(min(number, 2**15 - 1), -(2**15)))
    else:
        by = struct.pack(">i", min(number, 2**31 - 1))
    return _replaced(frame, mark, by)


def _count(frame: bytes, parts: list[Mark], rng: random.Random) -> bytes:
    mark = _one_of(parts, rng, Kind.COUNT)
    return _random_bytes(frame, parts, rng) if mark is None else _another_size(frame, mark, rng)


def _length(frame: bytes, parts: list[Mark], rng: random.Random) -> bytes:
    mark = _one_of(parts, rng, Kind.LENGTH)
    return _random_bytes(frame, parts, rng) if mark is None else _another_size(frame, mark, rng)


def _tags(frame: bytes, parts: list[Mark], rng: random.Random) -> bytes:
    """Change the count of tagged fields, or add an unknown one."""
    mark = _one_of(parts, rng, Kind.TAGS)
    if mark is None:
        return _header(frame, parts, rng)
    if rng.random() < 0.5:
        return _another_size(frame, mark, rng)
    content = rng.randbytes(rng.randrange(5))
    unknown = uvarint(rng.choice((77, 2**31, 2**32 - 1))) + uvarint(rng.choice((len(content), 2**28))) + content
    return _replaced(frame, mark, b"\1" + unknown)


def _number(frame: bytes, parts: list[Mark], rng: random.Random) -> bytes:
    mark = _one_of(parts, rng, Kind.NUMBER)
    if mark is None:
        return _header(frame, parts, rng)
    bits = 8 * mark.size
    by = (rng.choice(_EXTREMES) % 2**bits).to_bytes(mark.size, "big")
    return _replaced(frame, mark, by)


def _content(frame: bytes, parts: list[Mark], rng: random.Random) -> bytes:
    """Replace the bytes of a string with as many others, often not UTF-8."""
    found = [mark for mark in parts if mark.kind is Kind.CONTENT and mark.size]
    if not found:
        return _random_bytes(frame, parts, rng)
    mark = rng.choice(found)
    return _replaced(frame, mark, rng.choice((rng.randbytes(mark.size), bytes(mark.size), b"\xed\xa0\x80" * mark.size)))


def _cut(frame: bytes, _parts: list[Mark], rng: random.Random) -> bytes:
    return sized(frame[: rng.randrange(4, len(frame))])


def _doubled(frame: bytes, _parts: list[Mark], rng: random.Random) -> bytes:
    """Repeat a part of the frame."""
    at = rng.randrange(4, len(frame))
    stretch = frame[at : at + rng.randrange(1, 40)]
    return sized(frame[:at] + stretch * rng.choice((2, 2, 50)) + frame[at + len(stretch) :])


def _random_bytes(frame: bytes, _parts: list[Mark], rng: random.Random) -> bytes:
    changed = bytearray(frame)
    for _ in range(rng.randrange(1, 5)):
        if len(changed) > 12:
            changed[rng.randrange(12, len(changed))] = rng.randrange(256)
    return sized(changed)


def _header(frame: bytes, _parts: list[Mark], rng: random.Random) -> bytes:
    """Change key, version or client id; most results do not exist."""
    changed = bytearray(frame)
    for _ in range(rng.randrange(1, 3)):
        changed[rng.choice([at for at in (4, 5, 6, 7, 12, 13) if at < len(changed)])] = rng.randrange(256)
    return sized(changed)


def _size(frame: bytes, _parts: list[Mark], rng: random.Random) -> bytes:
    """Make the size of the frame wrong."""
    size = rng.choice((-1, -(2**31), 2**31 - 1, 104_857_601, len(frame), len(frame) + 1000))
    return struct.pack(">i", size) + frame[4:]


_MUTATIONS: tuple[Callable[[bytes, list[Mark], random.Random], bytes], ...] = (
    _count,
    _count,
    _length,
    _length,
    _tags,
    _number,
    _content,
    _cut,
    _doubled,
    _random_bytes,
    _header,
    _size,
)
