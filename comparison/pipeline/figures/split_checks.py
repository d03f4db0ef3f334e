"""Decide the checks on split brains: views that differ, and owners that nobody replaces.

As in comparison.pipeline.figures.checks: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.checks import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun
from comparison.pipeline.figures.group_checks import timer_s

if TYPE_CHECKING:
    from comparison.pipeline.figures.checks import CheckResult
    from comparison.pipeline.result import Run

#: As in the trace: a member that joins at a server that lags, and another one.
BEHIND = "join-behind"
#: How long the authority has to name no owner, of the cut beyond the session timeout.
UNCLAIMED_SHARE_MIN = 0.8


def nobody_takes_over(run: Run) -> CheckResult:
    """While the brokers' sessions are gone as well, members take nothing over until the heal."""
    cut = next((each for each in run.changes if each.change == "cut"), None)
    unnamed_s = run.metrics["unowned_authority_partition_s"]
    if cut is None or cut.healed_ms is None or unnamed_s is None:
        return UNKNOWN, "the trace does not show the cut from start to heal, or no owner was traced at the authority"
    session_s = timer_s(run, "session_ms") or 0.0
    possible_s = cut.healed_ms / 1000 - session_s
    if not session_s or possible_s <= 0:
        return UNKNOWN, f"a cut of {cut.healed_ms / 1000:.1f} s is too short for a session to end in it"
    summary = f"{unnamed_s:.1f} partition-seconds without an owner in a cut of {cut.healed_ms / 1000:.1f} s"
    if cut.takeover_ms is not None and cut.takeover_ms < cut.healed_ms:
        return NOT_EXPECTED, f"{summary}: others took over after {cut.takeover_ms / 1000:.1f} s"
    enough = unnamed_s >= UNCLAIMED_SHARE_MIN * possible_s
    return (EXPECTED if enough else NOT_EXPECTED), f"{summary}; nobody took anything over before the heal"


def lagging_member_conflicts(run: Run) -> CheckResult:
    """The member at the server that lags decides by an old list, and claims what others have claimed.

    So do others' claims of what is not released yet; with a sync before the reads only those are left.
    """
    change = next((each for each in run.changes if each.change == BEHIND), None)
    if change is None:
        return UNKNOWN, "the trace does not show the members that joined"
    if not change.target_attempts:
        return UNKNOWN, "the trace shows no attempt of the member at the server that lags"
    summary = (
        f"{change.target_conflicts} of {counted_noun(change.target_attempts, 'attempt')} of {change.target}, whose "
        f"server lags, met claims of others; {change.attempts_failed} of {counted_noun(change.attempts, 'attempt')} "
        f"failed in all; a partition was without an owner for {change.unowned_longest_s:.1f} s"
    )
    return (EXPECTED if change.target_conflicts else NOT_EXPECTED), summary
