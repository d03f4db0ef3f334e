"""The tables of `coordinators.md`, from the results of runs. Pure: `draw` makes the runs and fills the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.summaries.restarts import costs, remarks
from docs.generators.pages import markdown_table
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from comparison.results.run import Change, Run

NOTHING = "–"


def changes(runs: Sequence[Run]) -> str:
    """The cost of a join, a leave and a kill in each design."""
    rows = []
    for scenario in ("join", "leave", "crash"):
        for run in _of(runs, scenario):
            (change,) = (each for each in run.changes if each.change == scenario)
            rows.append(
                [
                    scenario,
                    f"`{run.design}`",
                    change.rounds,
                    change.stopped,
                    change.moved,
                    _requests(change),
                    _watched(run.design, change),
                    "" if change.unowned_partition_s is None else f"{change.unowned_partition_s:.1f}",
                    _seconds(change.converge_ms),
                ]
            )
    headings = (
        "change",
        "design",
        "rebalances",
        "stopped",
        "moved",
        "JoinGroup + SyncGroup",
        "ZooKeeper reads, notifications (coordinator)",
        "unowned, partition-s",
        "settled, s",
    )
    return _table(headings, rows)


def restarts(runs: Sequence[Run]) -> str:
    """All restarts of a rolling restart together."""
    rows = []
    for run in _of(runs, "rolling-restart"):
        each = [change for change in run.changes if change.change == "restart"]
        rows.append(
            [
                f"`{run.design}`",
                *(sum(getattr(change, name) for change in each) for name in ("rounds", "stopped", "moved")),
                _requests(*each),
                f"{sum(change.unowned_partition_s or 0 for change in each):.1f}",
                _seconds(max(change.converge_ms for change in each)),
            ]
        )
    headings = (
        "design",
        "rebalances",
        "stopped",
        "moved",
        "JoinGroup + SyncGroup",
        "unowned, partition-s",
        "slowest restart settled, s",
    )
    return _table(headings, rows)


def stall(runs: Sequence[Run]) -> str:
    """The slow member: how long nothing is delivered, and who waited for it."""
    rows = []
    for run in _of(runs, "slow-member"):
        joined = next(change for change in run.changes if change.change == "join")
        longest = max((wait.longest_ms for wait in run.waits), default=None)
        rows.append(
            [
                f"`{run.design}`",
                f"{run.metrics['stalled_s']:.1f}",
                _seconds(longest),
                _seconds(joined.converge_ms),
                f"{run.metrics['unowned_partition_s']:.1f}",
            ]
        )
    headings = (
        "design",
        "nothing delivered, s",
        "longest wait for a member, s",
        "the join settled, s",
        "unowned, partition-s",
    )
    return _table(headings, rows)


#: Column, metric, digits.
_FAULTS = (
    ("two members deliver, partition-s", "two_delivering_partition_s", 1),
    ("commits accepted from a replaced member", "stale_writes", 0),
    ("commits accepted with an old generation", "old_accepted", 0),
    ("offsets moved back", "moved_back", 0),
    ("commits fenced", "fenced", 0),
    ("commits refused in all", "refused", 0),
    ("records lost", "lost", 0),
)


def faults(runs: Sequence[Run]) -> str:
    """What a removed member does before it learns of its removal."""
    rows = [
        [scenario, f"`{run.design}`", *(_metric(run, name, digits) for _, name, digits in _FAULTS)]
        for scenario in ("pause", "split-brain")
        for run in _of(runs, scenario)
    ]
    return _table(("fault", "design", *(heading for heading, _, _ in _FAULTS)), rows)


def failovers(runs: Sequence[Run]) -> str:
    """The coordinating broker is killed."""
    rows = []
    for run in _of(runs, "coordinator-failover"):
        (change,) = (each for each in run.changes if each.change == "failover")
        cells = [change.rounds, change.stopped, _metric(run, "moved_back", 0), _seconds(change.settled_ms)]
        rows.append([f"`{run.design}`", *cells])
    return _table(
        ("design", "rebalances", "stopped", "offsets moved back", "every partition delivered and committed again, s"),
        rows,
    )


def folklore(runs: Sequence[Run]) -> str:
    """The report's remarks on a rolling restart."""
    shown = remarks(costs(_of(runs, "rolling-restart")))
    return "\n".join(f"- {remark}" for remark in shown)


#: The page's places, the functions that fill them, and the scenarios that they need.
TABLES: Mapping[str, tuple[Callable[[Sequence[Run]], str], tuple[str, ...]]] = {
    "changes": (changes, ("join", "leave", "crash")),
    "restarts": (restarts, ("rolling-restart",)),
    "folklore": (folklore, ("rolling-restart",)),
    "stall": (stall, ("slow-member",)),
    "faults": (faults, ("pause", "split-brain")),
    "failovers": (failovers, ("coordinator-failover",)),
}


def _of(runs: Sequence[Run], scenario: str) -> list[Run]:
    found = [run for run in runs if run.scenario == scenario]
    return sorted(found, key=lambda run: DESIGN_NAMES.index(run.design))


def _requests(*changed: Change) -> str:
    counts = [sum(change.requests.get(api, 0) for change in changed) for api in ("JoinGroup", "SyncGroup")]
    return f"{counts[0]} + {counts[1]}" if any(counts) else NOTHING


def _watched(design: str, change: Change) -> str:
    """Members' reads and notifications; in `server`, the coordinator's in brackets."""
    members = f"{change.zk_reads}, {change.notifications}"
    if design == "server":
        counted = {each.what: each.measured for each in change.counted}
        return f"{members} ({counted.get('coordinator reads')}, {counted.get('coordinator notifications')})"
    return members if design == "zookeeper" else NOTHING


def _metric(run: Run, name: str, digits: int) -> str:
    value = run.metrics[name]
    return NOTHING if value is None else f"{value:.{digits}f}"


def _seconds(ms: float | None) -> str:
    return NOTHING if ms is None else f"{ms / 1000:.1f}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table with numbers aligned right."""
    kept = [[NOTHING if cell is None else str(cell) for cell in row] for row in rows]
    assert kept, "runs of other scenarios"
    texts = [
        place for place in range(len(headings)) if any(row[place][:1].isalpha() or "`" in row[place] for row in kept)
    ]
    rule = ["---" if place in texts else "---:" for place in range(len(headings))]
    return markdown_table(headings, kept, rule)
