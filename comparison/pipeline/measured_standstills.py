"""What was measured of partitions from which nothing was delivered although records waited; a part of `Measured`."""

from __future__ import annotations

import msgspec

from comparison.results.causes import Cause

#: The causes that are faults of the owner, by the fault.
FAULTS = {"freeze": Cause.FROZEN, "slow": Cause.SLOW, "stuck-record": Cause.SLOW}


class Standstill(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a partition waited and nothing was delivered, for `causes` nanoseconds by cause."""

    group: str
    topic: str
    partition: int
    from_ns: int
    until_ns: int
    causes: dict[str, int]


class Standstills(msgspec.Struct, frozen=True, kw_only=True):
    """All of some partitions together, and the longest of each."""

    causes: dict[str, int]  #: nanoseconds over all partitions, by cause
    by_window: dict[int, int]  #: the longest part of one that is in each change's window
    longest: list[Standstill]  #: the longest first
