"""What each assignment strategy gave the members, and what it moved for one that joined and one that left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.report.summaries.figures import all_known, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Change, Run

SCENARIO = "strategies"
TITLE = "what each strategy gives and moves: the larger balance, and the sums of a join and a leave"
#: Short and long headings, in the order of `Outcome.cells`.
HEADINGS = (
    ("balance", "most partitions less fewest"),
    ("moves", "partitions moved"),
    ("minimum", "minimum"),
    ("stops", "partitions stopped"),
    ("rebalances", "rebalances of the group"),
    ("slowest ms", "settled after, ms (worst)"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes of one strategy together; None where a change does not show it."""

    strategy: str
    balance: int | None
    moved: int | None
    minimum: int | None
    stopped: int
    rounds: int
    slowest_ms: float | None

    def cells(self) -> list[str]:
        return [
            number(self.balance),
            number(self.moved),
            number(self.minimum),
            number(self.stopped),
            number(self.rounds),
            number(self.slowest_ms, whole=True),
        ]


def outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """One for each strategy of each run of the scenario, in the order in which they were tried."""
    found = []
    for run in runs:
        if run.scenario != SCENARIO:
            continue
        by_strategy: dict[str, list[Change]] = {}
        for change in run.changes:
            strategy, _, what = change.change.rpartition(" ")
            if strategy and what in ("join", "leave"):
                by_strategy.setdefault(strategy, []).append(change)
        found += [_outcome(strategy, changes) for strategy, changes in by_strategy.items()]
    return found


def _outcome(strategy: str, changes: Sequence[Change]) -> Outcome:
    balance = all_known(change.balance for change in changes)
    moved = all_known(change.moved for change in changes)
    minimum = all_known(change.moved_minimum for change in changes)
    settled = all_known(change.converge_ms for change in changes)
    return Outcome(
        strategy=strategy,
        balance=max(balance) if balance else None,
        moved=sum(moved) if moved else None,
        minimum=sum(minimum) if minimum else None,
        stopped=sum(change.stopped for change in changes),
        rounds=sum(change.rounds for change in changes),
        slowest_ms=max(settled) if settled else None,
    )
