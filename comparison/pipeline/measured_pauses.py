"""What was measured of the partitions that applications paused; a part of `Measured`."""

from __future__ import annotations

import msgspec


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """How many pauses of a partition met with a rebalance, in one of three ways."""

    dropped: int = 0  #: a rebalance ended it, and gave the partition back to the stream that had paused it
    moved: int = 0  #: a rebalance ended it, and gave the partition to another stream, or to nobody
    outlasting: int = 0  #: a whole rebalance of the group passed, and it was still paused

    def __add__(self, other: Pauses) -> Pauses:
        return Pauses(
            dropped=self.dropped + other.dropped,
            moved=self.moved + other.moved,
            outlasting=self.outlasting + other.outlasting,
        )
