"""What each restart cost a group that changes over to the consumer protocol, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.summaries.figures import SumTable, number
from comparison.results.keys import RESTART

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Change, Run

SCENARIOS = ("group-protocol-migration", "group-protocol-migration-cooperative")
TITLE = "each restart with the other protocol: the group afterwards, and what it cost the others"
#: Short and long headings, in the order of the cells.
HEADINGS = (
    ("type", "type of the group"),
    ("epoch", "epoch or generation"),
    ("stops", "partitions stopped"),
    ("back", "given back"),
    ("moves", "partitions moved"),
    ("unowned s", "unowned, partition-s"),
    ("ms", "settled after, ms"),
)


def table(runs: Sequence[Run]) -> SumTable | None:
    """A row for each restart, by the process that left; None without any."""
    rows = [
        (f"{change.round}: {change.target}", _cells(change))
        for run in runs
        if run.scenario in SCENARIOS
        for change in run.changes
        if change.change == RESTART
    ]
    return SumTable(TITLE, "restart", HEADINGS, rows) if rows else None


def _cells(change: Change) -> list[str]:
    return [
        change.group_type or "-",
        number(change.generation),
        number(change.stopped),
        number(change.stopped_kept),
        number(change.moved),
        number(change.unowned_partition_s),
        number(change.converge_ms, whole=True),
    ]
