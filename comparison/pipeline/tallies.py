"""The counts of one run, window by window, summed as asked; plain Python."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.pipeline.counts import READS
from comparison.pipeline.windows import WHOLE_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Row

    from comparison.pipeline.collect import Measured


@dataclass(frozen=True, slots=True)
class Tallies:
    """The counts of one window, summed as asked."""

    rows: tuple[Row, ...]

    def sum(self, kind: str, *, role: str | None = "member", where: Callable[[Row], bool] = lambda _: True) -> int:
        return sum(row.n for row in self.rows if row.kind == kind and role in (None, row.role) and where(row))

    def by(self, kind: str, key: Callable[[Row], str], *, role: str = "member") -> dict[str, int]:
        tally: Tally[str] = Tally()
        for row in self.rows:
            if row.kind == kind and row.role == role:
                tally[key(row)] += row.n
        return dict(sorted(tally.items()))

    def operations(self, *, reads: bool, ok: bool | None = None, commits: bool | None = None) -> int:
        """ZooKeeper operations by members; `commits`: only writes below offsets, or only others."""
        return self.sum(
            "zk_op",
            where=lambda row: (
                (row.name in READS) is reads
                and (ok is None or (row.outcome == "ok") is ok)
                and (commits is None or (row.area == "offsets") is commits)
            ),
        )

    def first_ns(self, kind: str) -> int | None:
        return min((row.first_ns for row in self.rows if row.kind == kind), default=None)


def tallies(measured: Measured) -> Mapping[int, Tallies]:
    """The counts by window; a window in which nothing happened counts nothing."""
    numbers = {WHOLE_RUN, *(change.window for change in measured.changes)}
    return {number: Tallies(tuple(row for row in measured.counts if row.window == number)) for number in numbers}
