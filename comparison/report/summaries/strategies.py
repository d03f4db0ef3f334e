"""What each assignment strategy gave the members, and what it moved for one that joined and one that left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.summaries.figures import SumTable, all_known, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Change, Run

SCENARIO = "strategies"
TITLE = "what each strategy gives and moves: the larger balance, and the sums of a join and a leave"
#: Short and long headings, in the order of the cells.
HEADINGS = (
    ("balance", "most partitions less fewest"),
    ("moves", "partitions moved"),
    ("minimum", "minimum"),
    ("stops", "partitions stopped"),
    ("rebalances", "rebalances of the group"),
    ("slowest ms", "settled after, ms (worst)"),
)


def table(runs: Sequence[Run]) -> SumTable | None:
    """A row for each strategy of each run of the scenario, in the order in which they were tried; None without any."""
    rows = [
        (strategy, _cells(changes))
        for run in runs
        if run.scenario == SCENARIO
        for strategy, changes in _by_strategy(run).items()
    ]
    return SumTable(TITLE, "strategy", HEADINGS, rows) if rows else None


def _by_strategy(run: Run) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in run.changes:
        strategy, _, what = change.change.rpartition(" ")
        if strategy and what in ("join", "leave"):
            found.setdefault(strategy, []).append(change)
    return found


def _cells(changes: Sequence[Change]) -> list[str]:
    """Of the changes of one strategy together; unknown where one of them does not show it."""
    balance = all_known(change.balance for change in changes)
    moved = all_known(change.moved for change in changes)
    minimum = all_known(change.moved_minimum for change in changes)
    settled = all_known(change.converge_ms for change in changes)
    return [
        number(max(balance) if balance else None),
        number(sum(moved) if moved else None),
        number(sum(minimum) if minimum else None),
        number(sum(change.stopped for change in changes)),
        number(sum(change.rounds for change in changes)),
        number(max(settled) if settled else None, whole=True),
    ]
