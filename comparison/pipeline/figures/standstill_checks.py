"""Decide the checks on partitions that stand still although a member owns them.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import EXPECTED, NOT_EXPECTED, UNKNOWN, needs, shown
from comparison.results.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run

KILL, RESTART = "kill", "restart"
#: Whoever is without an owner for longer than this does not stand still for the brokers' sake alone.
UNOWNED_S_MAX = 0.5
#: A clean restart stops partitions for less than this share of what a killed broker does.
HANDED_OVER_SHARE_MAX = 0.5

_NEEDED = "a killed broker that led partitions, and records acknowledged to a traced producer"


@needs(_NEEDED)
def stands_still_though_owned(run: Run) -> CheckResult:
    """A broker dies, and nothing is delivered of what it led until its session ends: no member notices, or moves."""
    killed = _longest(_of_brokers(run, KILL), "no broker was killed")
    unowned_s = max((change.unowned_longest_s or 0 for change in _of_brokers(run, KILL, RESTART)), default=0)
    leaderless_s = run.standstill_causes.get(Cause.NO_LEADER, 0)
    summary = (
        f"a partition stood still for {killed:.1f} s, and was without an owner for {unowned_s:.1f} s; "
        f"{leaderless_s:.1f} partition-seconds without a leader"
    )
    if not leaderless_s:
        return UNKNOWN, f"{summary}: the broker led nothing"
    return (EXPECTED if killed > unowned_s and unowned_s <= UNOWNED_S_MAX else NOT_EXPECTED), summary


@needs(_NEEDED)
def restarted_brokers_hand_over(run: Run) -> CheckResult:
    """A broker that shuts down in order gives its leaderships to others first: members only look up where they are."""
    killed = _longest(_of_brokers(run, KILL), "no broker was killed")
    restarted = _longest(_of_brokers(run, RESTART), "no broker was restarted")
    summary = f"restarts stopped partitions for {restarted:.1f} s at most, the kill for {killed:.1f} s"
    return (EXPECTED if restarted <= HANDED_OVER_SHARE_MAX * killed else NOT_EXPECTED), summary


def _of_brokers(run: Run, *names: str) -> Sequence[Change]:
    return [change for change in run.changes if change.change in names and change.target.startswith("broker-")]


def _longest(changes: Sequence[Change], why_not: str) -> float:
    """The longest standstill in them."""
    shown(changes or None, why_not)
    return max(shown(change.standstill_s, "nobody traced which records waited when") for change in changes)
