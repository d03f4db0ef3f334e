"""The figures of a synthetic run, counted while it is written."""

from __future__ import annotations

from dataclasses import dataclass

#: Overlaps in time must be longer than this to count: on one machine, and between machines.
TOLERANCE_MS, TOLERANCE_ACROSS_BOOTS_MS = 1, 50


@dataclass(slots=True)
class Truth:
    """The figures that an analysis must find."""

    events: int = 0
    files: int = 0
    rounds: int = 0
    deaths: int = 0
    torn: int = 0
    tolerance_ms: int = TOLERANCE_MS
    rebalances: int = 0
    delivered: int = 0  #: different records
    duplicates: int = 0
    lost: int = 0
    out_of_order: int = 0
    double_owned_ms: int = 0
    double_owned_longest_ms: int = 0
    unowned_ms: int = 0
    unowned_longest_ms: int = 0
    unowned_authority_ms: int = 0
    two_delivering_ms: int = 0
    two_delivering_longest_ms: int = 0
    stale_deliveries: int = 0
    commits: int = 0
    stale_writes: int = 0
    moved_back: int = 0
    moved_back_records: int = 0
    started_behind: int = 0
    final_read: int = 0
    final_behind: int = 0
    final_beyond: int = 0

    def unowned(self, ms: int) -> None:
        self.unowned_ms += ms
        self.unowned_longest_ms = max(self.unowned_longest_ms, ms)

    def double_owned(self, ms: int) -> None:
        if ms > self.tolerance_ms:
            self.double_owned_ms += ms
            self.double_owned_longest_ms = max(self.double_owned_longest_ms, ms)

    def two_delivering(self, ms: int) -> None:
        if ms > self.tolerance_ms:
            self.two_delivering_ms += ms
            self.two_delivering_longest_ms = max(self.two_delivering_longest_ms, ms)
