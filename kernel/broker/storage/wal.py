"""Finds out whether SQLite's write-ahead log has lost commits to damage. Pure.

SQLite silently takes the first frame with a wrong checksum for the end of the log, and drops everything committed
after it. A process killed in the middle of a write leaves such a frame too, but no *commit* after it that belongs to
the same generation of the log.

Format: https://www.sqlite.org/fileformat.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: Magic, version, page size, sequence number, two salts, two checksums.
_HEADER = struct.Struct(">8I")
#: Page number, pages of the database after a commit (0: no commit), two salts, two checksums.
_FRAME = struct.Struct(">6I")
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # and the byte order of its checksums
_PAGE_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Damage:
    """`frame` is the first of `frames` with a wrong checksum; 0 is the header. `commits` lie at or after it."""

    frame: int
    frames: int
    commits: int


def damage(log: bytes) -> Damage | None:
    """None for a log that is intact, empty, or cut off in the middle of its last transaction."""
    if len(log) < _HEADER.size + _FRAME.size:
        return None
    magic, _, page_bytes, _, *salts, sum0, sum1 = _HEADER.unpack_from(log)
    order = _MAGIC.get(magic, "<")
    sound = magic in _MAGIC and _checksum(order, log[: _HEADER.size - 8], 0, 0) == (sum0, sum1)
    if not 512 <= page_bytes <= _PAGE_BYTES_MAX or page_bytes & (page_bytes - 1):
        sound, page_bytes = False, 4096
    if not sound:
        salts = list(_FRAME.unpack_from(log, _HEADER.size)[2:4])
    size = _FRAME.size + page_bytes
    starts = range(_HEADER.size, len(log) - size + 1, size)
    good = 0
    for start in starts if sound else ():
        *_, salt0, salt1, frame0, frame1 = _FRAME.unpack_from(log, start)
        sum0, sum1 = _checksum(order, log[start : start + 8], sum0, sum1)
        sum0, sum1 = _checksum(order, log[start + _FRAME.size : start + size], sum0, sum1)
        if [salt0, salt1] != salts or (sum0, sum1) != (frame0, frame1):
            break
        good += 1
    lost = [_FRAME.unpack_from(log, start) for start in starts[good:]]
    commits = sum(1 for _, pages, salt0, salt1, *_ in lost if pages and [salt0, salt1] == salts)
    return Damage(good + 1 if sound else 0, len(starts), commits) if commits else None


def _checksum(order: str, data: bytes, sum0: int, sum1: int) -> tuple[int, int]:
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        sum0 = (sum0 + first + sum1) & 0xFFFFFFFF
        sum1 = (sum1 + second + sum0) & 0xFFFFFFFF
    return sum0, sum1
