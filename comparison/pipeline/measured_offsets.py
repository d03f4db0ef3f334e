"""What was measured of a group's offsets at its end, and where they were set to the log's end; a part of `Measured`."""

from __future__ import annotations

import msgspec


class FinalOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions whose committed offset was read at the end, and how many of them were wrong."""

    read: int
    behind: int
    beyond: int


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """A reset to the log's end behind offsets that the group had not been handed.

    `records` is how many of the offsets `first` to `end`-1 were written, `committed` what had last been committed, and
    `by` the stream, `process/member/stream`.
    """

    group: str
    topic: str
    partition: int
    first: int
    end: int
    records: int
    reset: str
    committed: int | None
    by: str
    t_ns: int
