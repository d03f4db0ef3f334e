"""What a rolling restart costs each design, side by side, and what that says of what people say.

Every remark is made from the figures of the runs shown, and says the opposite where they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.report.figures import number
from kernel.designs import EAGER, INCREMENTAL, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESTART = "restart"
SCENARIO = "rolling-restart"
#: Headings in the order of `Cost.cells`: where there is little room, and where there is more.
HEADINGS = (
    ("rounds", "rebalances of the group"),
    ("stops", "partitions stopped"),
    ("moves", "partitions moved"),
    ("unowned s", "unowned, partition-s"),
    ("stalled s", "nothing delivered, s"),
    ("slowest ms", "settled after, ms (worst)"),
)
#: Below this share of the other's, a time on a busy machine is called less.
_LESS = 0.8


@dataclass(frozen=True, slots=True)
class Cost:
    """Of all restarts of one run together."""

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


def costs(runs: Sequence[Mapping[str, Any]]) -> list[Cost]:
    """One for each run in which members were restarted, in the runs' order."""
    found = []
    for run in runs:
        restarts = [change for change in run["changes"] if change["change"] == RESTART]
        if run["scenario"] == SCENARIO and restarts:
            found.append(_cost(run["design"], restarts))
    return found


def _cost(design: str, restarts: Sequence[Mapping[str, Any]]) -> Cost:
    settled = [change["converge_ms"] for change in restarts]
    moved = [change["moved"] for change in restarts]
    stalled = [change["stalled_s"] for change in restarts if change["stalled_s"] is not None]
    return Cost(
        design=design,
        members=len(restarts),
        rounds=sum(change["rounds"] for change in restarts),
        stopped=sum(change["stopped"] for change in restarts),
        moved=None if None in moved else sum(moved),
        unowned_partition_s=round(sum(change["unowned_partition_s"] for change in restarts), 2),
        stalled_s=round(sum(stalled), 1) if stalled else None,
        slowest_ms=None if None in settled else max(settled),
    )


def title(shown: Sequence[Cost]) -> str:
    members = sorted({cost.members for cost in shown})
    return f"what restarting {' or '.join(map(str, members))} members one after the other costs"


def remarks(shown: Sequence[Cost]) -> list[str]:
    """What these runs say of static membership and of incremental rebalances, held against eager."""
    by_design = {cost.design: cost for cost in shown}
    eager = by_design.get(EAGER)
    if eager is None:
        return []
    found = []
    if (static := by_design.get(STATIC)) is not None:
        spared = f"static: {_against(static.stopped, eager.stopped)} stops, {_against(static.moved, eager.moved)} moves"
        if static.unowned_partition_s < _LESS * eager.unowned_partition_s:
            found.append(f"{spared}, and here less time without an owner: {_times(static, eager)}")
        else:
            found.append(f"{spared}; it does not lessen the time without an owner: {_times(static, eager)}")
    found += [_incremental(by_design[design], eager) for design in INCREMENTAL if design in by_design]
    if (oldest := by_design.get(ZOOKEEPER)) is not None and oldest.unowned_partition_s < eager.unowned_partition_s:
        found.append(
            f"zookeeper: at this size nobody waits for a coordinator's rounds, and partitions are without an owner for "
            f"less time than in eager: {_times(oldest, eager)}"
        )
    return found


def _incremental(cost: Cost, eager: Cost) -> str:
    won = f"{_against(cost.stopped, eager.stopped)} stops, {_against(cost.moved, eager.moved)} moves"
    more = cost.rounds > eager.rounds, cost.unowned_partition_s > eager.unowned_partition_s
    rounds, unowned = (
        f"rebalances ({_against(cost.rounds, eager.rounds)})",
        f"time without an owner: {_times(cost, eager)}",
    )
    price = {
        (True, True): f"it costs more {rounds} and more {unowned}",
        (True, False): f"it costs more {rounds}, and here not more {unowned}",
        (False, True): f"here it costs no more {rounds}, but more {unowned}",
        (False, False): f"here it costs no more {rounds} and not more {unowned}",
    }[more]
    return f"{cost.design}: {price}; what it gains is {won}"


def _against(value: float | None, other: float | None) -> str:
    return f"{number(value)} against {number(other)}"


def _times(cost: Cost, other: Cost) -> str:
    return (
        f"{number(cost.unowned_partition_s)} partition-s against {number(other.unowned_partition_s)} in {other.design}"
    )
