"""What each assignment strategy gave the members, and what it moved for one that joined and one that left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.report.figures import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCENARIO = "strategies"
TITLE = "what each strategy gives and moves: the larger balance, and the sums of a join and a leave"
#: Short and long headings, in the order of `Outcome.cells`.
HEADINGS = (
    ("balance", "most partitions less fewest"),
    ("moves", "partitions moved"),
    ("minimum", "minimum"),
    ("stops", "partitions stopped"),
    ("rounds", "rebalances of the group"),
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


def outcomes(runs: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """One for each strategy of each run of the scenario, in the order in which they were tried."""
    found = []
    for run in runs:
        if run["scenario"] != SCENARIO:
            continue
        by_strategy: dict[str, list[Mapping[str, Any]]] = {}
        for change in run["changes"]:
            strategy, _, what = change["change"].rpartition(" ")
            if strategy and what in ("join", "leave"):
                by_strategy.setdefault(strategy, []).append(change)
        found += [_outcome(strategy, changes) for strategy, changes in by_strategy.items()]
    return found


def _outcome(strategy: str, changes: Sequence[Mapping[str, Any]]) -> Outcome:
    def known(name: str) -> list[Any] | None:
        values = [change[name] for change in changes]
        return None if None in values else values

    balance, moved, minimum, settled = map(known, ("balance", "moved", "moved_minimum", "converge_ms"))
    return Outcome(
        strategy=strategy,
        balance=max(balance) if balance else None,
        moved=sum(moved) if moved else None,
        minimum=sum(minimum) if minimum else None,
        stopped=sum(change["stopped"] for change in changes),
        rounds=sum(change["rounds"] for change in changes),
        slowest_ms=max(settled) if settled else None,
    )


def sentence(outcome: Outcome) -> str:
    """What one strategy gave and moved, for a list of findings."""
    minimum = f" ({number(outcome.minimum)} would have been enough)" if outcome.minimum is not None else ""
    return (
        f"{outcome.strategy}: shares differ by up to {number(outcome.balance)}; {number(outcome.moved)} partitions "
        f"moved{minimum} and {number(outcome.stopped)} stopped, for a join and a leave."
    )
