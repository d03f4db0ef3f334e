"""Decide the checks on what applications do: rebalance listeners that are slow, partitions that are paused.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import (
    EXPECTED,
    NOT_EXPECTED,
    NotShown,
    counted_noun,
    first_change,
    injected_fault,
    needs,
    shown,
)
from comparison.pipeline.figures.group_checks import STALLED_SHARE_MAX, STALLED_SHARE_MIN
from comparison.pipeline.figures.model import JOIN

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run

SLOW_LISTENER = "slow-listener"
_CALLED = "a member with a slow listener that has to give something up to one that joins"
_PAUSED = "a rebalance while a member has paused partitions, some of which stay with it"


@needs(_CALLED, of_one_group=True)
def slow_listener_stops_all(run: Run) -> CheckResult:
    """All members have stopped everything, and wait until the slowest listener has returned."""
    joined, slow_s, summary = _held_up(run)
    return (EXPECTED if (joined.stalled_s or 0) >= STALLED_SHARE_MIN * slow_s else NOT_EXPECTED), summary


@needs(_CALLED, of_one_group=True)
def stops_what_moves(run: Run) -> CheckResult:
    """Only what the member gives up waits for its listener; everything else is delivered meanwhile."""
    joined, slow_s, summary = _held_up(run)
    if joined.stopped_kept:
        return NOT_EXPECTED, f"{summary}; {counted_noun(joined.stopped_kept, 'partition')} stopped and given back"
    return (EXPECTED if (joined.stalled_s or 0) <= STALLED_SHARE_MAX * slow_s else NOT_EXPECTED), summary


def _held_up(run: Run) -> tuple[Change, float, str]:
    """The change that waited for the listener, how long that took in seconds, and both in words."""
    fault = shown(first_change(run, SLOW_LISTENER), "no listener was slow")
    joined = next((each for each in run.changes if each.change == JOIN and each.from_ms >= fault.from_ms), None)
    if joined is None or joined.converge_ms is None or joined.stalled_s is None:
        raise NotShown("no member joined, and owned a partition, while a listener was slow")
    slow_s = float(injected_fault(run, SLOW_LISTENER).get("for_ms", 0)) / 1000
    if not slow_s or joined.converge_ms / 1000 < STALLED_SHARE_MIN * slow_s:
        raise NotShown(f"the group settled after {joined.converge_ms:.0f} ms: it waited for no listener")
    summary = (
        f"the listener of {fault.target} took {slow_s:g} s, the group settled after {joined.converge_ms / 1000:.1f} s, "
        f"nothing was delivered for {joined.stalled_s:.1f} s"
    )
    return joined, slow_s, summary


@needs(_PAUSED)
def pauses_dropped(run: Run) -> CheckResult:
    """A rebalance drops the pauses of all partitions, also of those that the same member gets back."""
    dropped, summary = _pauses(run)
    return (EXPECTED if dropped else NOT_EXPECTED), summary


@needs(_PAUSED)
def pauses_kept(run: Run) -> CheckResult:
    """A partition that stays with its member stays paused."""
    dropped, summary = _pauses(run)
    return (NOT_EXPECTED if dropped else EXPECTED), summary


def _pauses(run: Run) -> tuple[float, str]:
    """How many were dropped, and what became of all in words. Raises `NotShown` if no rebalance tried any."""
    dropped = shown(run.metrics["pauses_dropped"], "nothing was paused")
    moved, outlasting = run.metrics["pauses_moved"] or 0, run.metrics["pauses_outlasting"] or 0
    summary = (
        f"{counted_noun(dropped, 'pause')} dropped though the member kept the partition, {moved:g} ended because it "
        f"moved, {outlasting:g} outlasted a rebalance"
    )
    if not dropped and not outlasting:
        raise NotShown(summary)
    return dropped, summary
