"""Members that their groups refused for good: who, why, and how often each asked; and the checks on them.

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
    needs,
    shown,
)
from comparison.pipeline.figures.model import JOIN
from comparison.results.keys import place_of
from comparison.results.refusals import FULL, Refusal, refused_in_words
from kernel.clock import in_ms
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.pipeline.measured_members import Refused
    from comparison.results.outcomes import VerdictOutcome
    from comparison.results.run import Run

BOUNCE = "bounce"
NO_COMMON_STRATEGY = "INCONSISTENT_GROUP_PROTOCOL"
#: The checks of runs in which members are refused, by their keys.
EXPECTED_BY = frozenset(
    {"refused for good", "no common strategy", "full group", "older one is fenced", "newer one is refused"}
)
_NOBODY = "no member was refused"


def refusals_of(refused: Iterable[Refused]) -> list[Refusal]:
    """One for each place, group and error, in the order of the first."""
    together: dict[tuple[str, str, str, str], list[Refused]] = {}
    for each in sorted(refused, key=lambda each: each.t_ns):
        together.setdefault((place_of(each.process), each.group, each.api, each.error), []).append(each)
    return [
        Refusal(
            place=place,
            group=group,
            api=api,
            error=error,
            asked=len(times),
            at_ms=in_ms(times[0].t_ns),
            was_in=times[0].was_in,
            admitted_ms=None if (admitted := times[-1].admitted_ns) is None else in_ms(admitted - times[0].t_ns),
        )
        for (place, group, api, error), times in together.items()
    ]


@needs("a member that was refused for good")
def nobody_is_refused(run: Run) -> CheckResult:
    """The group takes every member, in a run that is not about refusals."""
    return (NOT_EXPECTED, refused_in_words(run.refusals)) if run.refusals else None


@needs("a member that was refused for good")
def refused_for_good(run: Run) -> CheckResult:
    """The group refuses at least one member, and says so once each time that an application asks."""
    return (EXPECTED, refused_in_words(run.refusals)) if run.refusals else (NOT_EXPECTED, _NOBODY)


@needs("members restarted one after the other, without waiting for the group")
def no_common_strategy(run: Run) -> CheckResult:
    """While one member is left that has not been restarted, the group refuses those that have.

    As ClassicGroup.supportsProtocols: a member needs a strategy that all others list. The places of static members
    stand for a session timeout, so even the last one is refused.
    """
    change = shown(first_change(run, BOUNCE), "the trace does not show a rolling change")
    least = (change.members or 1) - (not DESIGNS[run.design].static_membership)
    outcome, summary = _judged(run, NO_COMMON_STRATEGY)
    if outcome is EXPECTED and len(run.refusals) < least:
        return UNKNOWN, f"{summary}; others asked when no old member was left, as on a busy machine"
    return outcome, summary


@needs("members restarted one after the other, without waiting for the group")
def strategies_conflict(run: Run) -> CheckResult:
    """Nobody votes, so members with different strategies claim the same partitions; all agree again at the end."""
    change = shown(first_change(run, BOUNCE), "the trace does not show a rolling change")
    summary = f"{counted_noun(change.attempts_failed, 'attempt')} failed while members had two strategies"
    return (EXPECTED if change.attempts_failed and change.converge_ms is not None else NOT_EXPECTED), summary


@needs("a member that joins a full group")
def full_group_refuses(run: Run) -> CheckResult:
    """One member more than the brokers' limit is refused; the others notice nothing of it (KAFKA-7641, KIP-848)."""
    change = shown(first_change(run, JOIN), "the trace does not show a member that joins")
    cost = f"{counted_noun(change.rounds, 'rebalance')}, {counted_noun(change.stopped, 'partition')} stopped"
    if change.rounds or change.stopped:
        return NOT_EXPECTED, f"{cost}: the group should have noticed nothing"
    outcome, summary = _judged(run, FULL)
    return outcome, f"{summary}; {cost}"


def _judged(run: Run, error: str) -> tuple[VerdictOutcome, str]:
    """Members are refused, all with this error, and are members when its cause is gone."""
    summary = refused_in_words(run.refusals) or _NOBODY
    wrong = [each for each in run.refusals if each.error != error or each.admitted_ms is None]
    return (EXPECTED if run.refusals and not wrong else NOT_EXPECTED), summary
