"""What a rolling restart costs each design, side by side, with remarks on common claims about the designs.

Every remark is derived from the figures of the runs shown, and contradicts the claim where they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.report.summaries.figures import SumTable, all_known, number
from comparison.results.keys import RESTART
from kernel.designs import EAGER, INCREMENTAL, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Change, Run

SCENARIO = "rolling-restart"
#: Short and long headings, in the order of `Cost.cells`.
HEADINGS = (
    ("rebalances", "rebalances of the group"),
    ("stops", "partitions stopped"),
    ("moves", "partitions moved"),
    ("unowned s", "unowned, partition-s"),
    ("stalled s", "nothing delivered, s"),
    ("slowest ms", "settled after, ms (worst)"),
)
#: A time counts as less only below this share of the other, because the machine may be busy.
_LESS = 0.8


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of all restarts of one run together."""

    design: str
    members: int
    rounds: int
    stopped: int
    moved: int | None
    unowned_partition_s: float
    stalled_s: float | None
    slowest_ms: float | None

    def cells(self) -> list[str]:
        return [
            number(self.rounds),
            number(self.stopped),
            number(self.moved),
            number(self.unowned_partition_s),
            number(self.stalled_s),
            number(self.slowest_ms, whole=True),
        ]


def costs(runs: Sequence[Run]) -> list[Cost]:
    """One for each run with restarts, in the runs' order."""
    found = []
    for run in runs:
        restarts = [change for change in run.changes if change.change == RESTART]
        if run.scenario == SCENARIO and restarts:
            found.append(_cost(run.design, restarts))
    return found


def _cost(design: str, restarts: Sequence[Change]) -> Cost:
    settled = all_known(change.converge_ms for change in restarts)
    moved = all_known(change.moved for change in restarts)
    stalled = [change.stalled_s for change in restarts if change.stalled_s is not None]
    return Cost(
        design=design,
        members=len(restarts),
        rounds=sum(change.rounds for change in restarts),
        stopped=sum(change.stopped for change in restarts),
        moved=None if moved is None else sum(moved),
        unowned_partition_s=round(sum(change.unowned_partition_s or 0 for change in restarts), 2),
        stalled_s=round(sum(stalled), 1) if stalled else None,
        slowest_ms=None if settled is None else max(settled),
    )


def table(runs: Sequence[Run]) -> SumTable | None:
    """A row for each run with restarts; None without any."""
    shown = costs(runs)
    members = sorted({cost.members for cost in shown})
    title = f"cost of restarting {' or '.join(map(str, members))} members one after the other"
    return SumTable(title, "design", HEADINGS, [(cost.design, cost.cells()) for cost in shown]) if shown else None


def remarks(shown: Sequence[Cost]) -> list[str]:
    """What these runs show about static membership and incremental rebalances, compared with eager."""
    by_design = {cost.design: cost for cost in shown}
    eager = by_design.get(EAGER)
    if eager is None:
        return []
    found = []
    if (static := by_design.get(STATIC)) is not None:
        spared = f"static: {_changes(static, eager)}"
        if static.unowned_partition_s < _LESS * eager.unowned_partition_s:
            found.append(f"{spared}, and less unowned time: {_times(static, eager)}")
        else:
            found.append(f"{spared}, but no less unowned time: {_times(static, eager)}")
    found += [_incremental(by_design[design], eager) for design in INCREMENTAL if design in by_design]
    if (oldest := by_design.get(ZOOKEEPER)) is not None and oldest.unowned_partition_s < eager.unowned_partition_s:
        found.append(
            f"zookeeper: less unowned time at this size, because no member waits for a coordinator's rounds: "
            f"{_times(oldest, eager)}"
        )
    return found


def _incremental(cost: Cost, eager: Cost) -> str:
    more = cost.rounds > eager.rounds, cost.unowned_partition_s > eager.unowned_partition_s
    rounds = f"rebalances ({number(cost.rounds)} instead of {number(eager.rounds)})"
    unowned = f"unowned time ({_times(cost, eager)})"
    price = {
        (True, True): f"at the price of more {rounds} and more {unowned}",
        (True, False): f"at the price of more {rounds}, but no more {unowned}",
        (False, True): f"with no more {rounds}, but more {unowned}",
        (False, False): f"with no more {rounds} and no more {unowned}",
    }[more]
    return f"{cost.design}: {_changes(cost, eager)}, {price}"


def _changes(cost: Cost, eager: Cost) -> str:
    """What was spared: stops and moves."""
    return (
        f"{number(cost.stopped)} stops instead of {number(eager.stopped)}, "
        f"{number(cost.moved)} moves instead of {number(eager.moved)}"
    )


def _times(cost: Cost, eager: Cost) -> str:
    return f"{number(cost.unowned_partition_s)} partition-s, eager {number(eager.unowned_partition_s)}"
