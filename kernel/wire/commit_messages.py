"""OffsetCommit's answer by hand, in all versions, when everything was accepted: what a commit is told nearly always.

Requests are not decoded by hand: kio's compiled reader takes few microseconds for ten partitions. Its writer takes a
hundred for the answer to them.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

from kernel.wire.tags import uvarint

if TYPE_CHECKING:
    from collections.abc import Sequence

_THROTTLES, _FLEXIBLE = 3, 8  # the versions from which on there is a throttle time, there are tags
_INT, _SHORT = struct.Struct(">i"), struct.Struct(">h")


def accepted(version: int, topics: Sequence[tuple[str, Sequence[int]]]) -> bytes:
    """The response behind its correlation id: (topic, partitions) without an error, in this order."""
    if version >= _FLEXIBLE:
        parts = [b"\0\0\0\0\0", uvarint(len(topics) + 1)]
        for name, partitions in topics:
            encoded = name.encode()
            parts += [uvarint(len(encoded) + 1), encoded, uvarint(len(partitions) + 1)]
            parts += [_rows(len(partitions), 3).pack(*partitions), b"\0"]
        parts.append(b"\0")
        return b"".join(parts)
    parts = [bytes(4) if version >= _THROTTLES else b"", _INT.pack(len(topics))]
    for name, partitions in topics:
        encoded = name.encode()
        parts += [_SHORT.pack(len(encoded)), encoded, _INT.pack(len(partitions))]
        parts.append(_rows(len(partitions), 2).pack(*partitions))
    return b"".join(parts)


@functools.lru_cache(maxsize=256)
def _rows(count: int, zeros: int) -> struct.Struct:
    """So many partitions with an error code of 0 behind each, and with tags if there are three zeros."""
    return struct.Struct(">" + f"i{zeros}x" * count)
