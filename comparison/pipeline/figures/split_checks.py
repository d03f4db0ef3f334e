"""Decide the checks on split brains: views that differ, and owners that nobody replaces.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import (
    EXPECTED,
    NOT_EXPECTED,
    UNKNOWN,
    counted_noun,
    first_change,
    injected_fault,
    needs,
    shown,
    timer_s,
)
from comparison.results.keys import CONFLICT, OK

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Run

#: As in the trace: a member that joins at a server that lags, and another one.
BEHIND = "join-behind"
#: How long the authority has to name no owner, of the cut beyond the session timeout.
UNCLAIMED_SHARE_MIN = 0.8
#: What makes a server lag, as in the parameters of a run; and how much of that a sync has to wait at least, to show it.
DELAY = "delay"
LAG_SHARE_MIN = 0.5


@needs("a cut that outlasts a session, and an owner before it")
def nobody_takes_over(run: Run) -> CheckResult:
    """While the brokers' sessions are gone as well, members take nothing over until the heal."""
    cut = first_change(run, "cut")
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


@needs("an attempt of the member at the server that lags")
def lagging_member_conflicts(run: Run) -> CheckResult:
    """The member at the server that lags decides by an old list, and claims what others have claimed.

    So do others' claims of what is not released yet; with a sync before the reads only those are left.
    """
    change = shown(first_change(run, BEHIND), "the trace does not show the members that joined")
    if not change.target_attempts:
        return UNKNOWN, "the trace shows no attempt of the member at the server that lags"
    summary = (
        f"{change.target_conflicts} of {counted_noun(change.target_attempts, 'attempt')} of {change.target}, whose "
        f"server lags, met claims of others; {change.attempts_failed} of {counted_noun(change.attempts, 'attempt')} "
        f"failed in all; a partition was without an owner for {change.unowned_longest_s:.1f} s"
    )
    return (EXPECTED if change.target_conflicts else NOT_EXPECTED), summary


@needs("a sync of that member that waits for half the lag or more")
def lagging_member_knows_the_group(run: Run) -> CheckResult:
    """With a sync before its reads, the first attempt of the member at the server that lags meets no claim of others.

    That the server lagged shows in how long that member waited for what its phase of reading the group begins with.
    """
    change = shown(first_change(run, BEHIND), "the trace does not show the members that joined")
    first = shown(change.target_first, "the trace shows no attempt of the member at the server that lags")
    lag_ms = float(injected_fault(run, DELAY).get("by_ms", 0))
    waited_ms = (first.detect_ms or 0.0) + (first.join_ms or 0.0)
    settled = "did not settle" if change.converge_ms is None else f"settled after {change.converge_ms / 1000:.1f} s"
    price = (
        f"it waited {waited_ms / 1000:.1f} s in the two phases that begin with a sync, the group {settled}, "
        f"and members sent {counted_noun(change.syncs, 'sync')}"
    )
    if not change.syncs or not lag_ms or (first.join_ms or 0.0) < LAG_SHARE_MIN * lag_ms:
        return UNKNOWN, f"{price}; that does not show a server that lags by {lag_ms / 1000:g} s"
    summary = f"the first attempt of {change.target}, whose server lags by {lag_ms / 1000:g} s,"
    if first.outcome == CONFLICT:
        return NOT_EXPECTED, f"{summary} met claims of others; {price}"
    if first.outcome != OK:
        return UNKNOWN, f"{summary} ended with {first.outcome!r}; {price}"
    return EXPECTED, f"{summary} met no claim of others; {price}"
