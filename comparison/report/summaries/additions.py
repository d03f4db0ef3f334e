"""How long it took until partitions that were added to a topic were read, and what that time is made of."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.report.summaries.figures import SumTable, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.results.run import Run

TITLE = "until the added partitions were delivered from: where the time went, ms"
#: The parts in their order, each with what it means (comparison.pipeline.figures.additions).
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "grow": "the topic grows",
        "notice": "nobody in the group knows yet",
        "hear": "a member has not heard of the rebalance",
        "backoff": "waiting after a failed attempt",
        "detect": "notified, and not reacting yet",
        "stop": "stopping and committing",
        "release": "giving up claims",
        "join": "reading the group, or JoinGroup",
        "decide": "the assignor",
        "claim": "claiming, or SyncGroup",
        "resume": "starting fetchers",
        "wait": "nobody rebalances",
        "deliver": "the first records arrive",
    }
)
_APART = ("grow", "notice", "hear", "deliver")
#: Short and long headings, in the order of `Addition.cells`.
HEADINGS = (
    ("in all", "in all"),
    ("grow", "the topic grew"),
    ("notice", "nobody knew"),
    ("hear", "not all had heard"),
    ("rebalance", "rebalance"),
    ("deliver", "first records"),
)


@dataclass(frozen=True, slots=True)
class Addition:
    """One change that added partitions; `total_ms` is None if not all of them were delivered from."""

    design: str
    partitions: int
    delivered: int
    total_ms: float | None
    parts: Mapping[str, float]

    @property
    def rebalance_ms(self) -> float:
        """What the members' phases took, and the waits between them."""
        return sum(ms for name, ms in self.parts.items() if name not in _APART)

    def cells(self) -> list[str]:
        return [
            number(self.total_ms, whole=True),
            *(number(self.parts.get(name), whole=True) for name in ("grow", "notice", "hear")),
            number(self.rebalance_ms, whole=True),
            number(self.parts.get("deliver"), whole=True),
        ]


def additions(runs: Sequence[Run]) -> list[Addition]:
    """One for each change that added partitions, in the runs' order."""
    return [
        Addition(
            design=run.design,
            partitions=added.partitions,
            delivered=added.delivered,
            total_ms=added.delivered_ms,
            parts=added.parts,
        )
        for run in runs
        for change in run.changes
        if (added := change.added) is not None
    ]


def table(runs: Sequence[Run]) -> SumTable | None:
    """A row for each of them; None without any."""
    rows = [(each.design, each.cells()) for each in additions(runs)]
    return SumTable(TITLE, "design", HEADINGS, rows) if rows else None


def sentence(addition: Addition) -> str:
    """Of an addition that not all partitions of were delivered from, for a list of findings."""
    return f"{addition.delivered} of {addition.partitions} added partitions were delivered from."
