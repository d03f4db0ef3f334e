"""The event counts of one run by window, and sums over them; plain Python."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.results.counts import COUNTS, OFFSETS, READS
from comparison.results.keys import WHOLE_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.pipeline.measured import EventCount, Measured


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """The event counts of one window."""

    counts: tuple[EventCount, ...]

    def sum(
        self, kind: str, *, role: str | None = "member", where: Callable[[EventCount], bool] = lambda _: True
    ) -> int:
        return sum(
            count.n for count in self.counts if count.kind == kind and role in (None, count.role) and where(count)
        )

    def figure(self, name: str) -> int:
        """A figure of COUNTS."""
        return sum(self.sum(kind, role=role, where=where) for kind, where, role in COUNTS[name])

    def by(self, kind: str, key: Callable[[EventCount], str], *, role: str = "member") -> dict[str, int]:
        tally: Tally[str] = Tally()
        for count in self.counts:
            if count.kind == kind and count.role == role:
                tally[key(count)] += count.n
        return dict(sorted(tally.items()))

    def operations(self, *, reads: bool, commits: bool | None = None) -> int:
        """Count members' ZooKeeper operations; `commits` selects writes below offsets (True) or all others (False)."""
        return self.sum(
            "zk_op",
            where=lambda count: (
                (count.name in READS) is reads and (commits is None or (count.area == OFFSETS) is commits)
            ),
        )

    def first_ns(self, kind: str) -> int | None:
        found = (count.first_ns for count in self.counts if count.kind == kind)
        return min((first_ns for first_ns in found if first_ns is not None), default=None)


def counts_by_window(measured: Measured) -> Mapping[int, WindowCounts]:
    """The counts by window; empty for a window without events."""
    numbers = {WHOLE_RUN, *(change.window for change in measured.changes)}
    return {
        number: WindowCounts(tuple(count for count in measured.counts if count.window == number)) for number in numbers
    }
