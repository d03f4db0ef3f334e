"""Decide the checks on partitions that were added to a topic.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.additions import NOTICE
from comparison.pipeline.figures.deciding import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun, needs, shown, timer_s

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Added, Run

_NONE_ADDED = "no partitions were added"
#: A watch that takes longer than this on a busy machine is none.
AT_ONCE_S = 5.0
#: How late the leader may look on a busy machine.
LATE_S = 5.0
#: The least share of the metadata's age that passes in a group that has just formed.
AGE_SHARE_MIN = 0.5
#: With a shorter age nothing shows that nobody noticed.
AGE_S_MIN = 60.0


@needs("partitions added to a topic")
def new_partitions_read(run: Run) -> CheckResult:
    """Every added partition gets an owner, and is delivered from."""
    added = shown(_added(run), _NONE_ADDED)
    summary = f"{added.delivered} of {counted_noun(added.partitions, 'added partition')} delivered from"
    if added.delivered_ms is None:
        return NOT_EXPECTED, f"{summary}, {added.owned} owned"
    return EXPECTED, f"{summary}, the last one after {added.delivered_ms / 1000:.1f} s"


@needs("partitions added to a topic, and a rebalance")
def noticed_at_once(run: Run) -> CheckResult:
    """New partitions are noticed at once: a watch tells, or in `consumer` the next heartbeat of any member."""
    within_s = AT_ONCE_S + (timer_s(run, "heartbeat_ms") or 0.0)
    return noticed(run, within_s, f"a watch or a heartbeat should tell within {within_s:g} s")


@needs("partitions added to a topic, and a rebalance")
def noticed_in_time(run: Run) -> CheckResult:
    """The leader notices new partitions when its metadata is metadata.max.age.ms old at the latest (KAFKA-3135)."""
    age_s = shown(timer_s(run, "metadata_age_ms"), "the trace does not say metadata.max.age.ms")
    return noticed(run, age_s + LATE_S, f"metadata.max.age.ms is {age_s:g} s")


@needs("partitions added to a topic, and a rebalance, and a metadata.max.age.ms of a minute or more")
def unnoticed_for_long(run: Run) -> CheckResult:
    """With metadata.max.age.ms at its five minutes, a group that has just formed leaves new partitions alone."""
    age_s, added = timer_s(run, "metadata_age_ms"), _added(run)
    if age_s is None or added is None or NOTICE not in added.parts:
        return UNKNOWN, "the trace does not show when anybody noticed the added partitions, or metadata.max.age.ms"
    unnoticed_s = added.parts[NOTICE] / 1000
    summary = f"nobody knew for {unnoticed_s:.1f} s; metadata.max.age.ms is {age_s:g} s"
    if age_s < AGE_S_MIN:
        return UNKNOWN, f"{summary}, too short to show anything"
    return (EXPECTED if unnoticed_s >= AGE_SHARE_MIN * age_s else NOT_EXPECTED), summary


def noticed(run: Run, within_s: float, why: str) -> CheckResult:
    """Whether somebody noticed added partitions in time; `why` says what should have told."""
    added = _added(run)
    if added is None or NOTICE not in added.parts:
        return UNKNOWN, _NONE_ADDED if added is None else "no rebalance began after partitions were added"
    unnoticed_s = added.parts[NOTICE] / 1000
    summary = f"nobody knew for {unnoticed_s:.1f} s; {why}"
    return (EXPECTED if unnoticed_s <= within_s else NOT_EXPECTED), summary


def _added(run: Run) -> Added | None:
    return next((change.added for change in run.changes if change.added is not None), None)
