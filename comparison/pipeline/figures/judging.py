"""Judge a run by the table of checks: what each says, and whether its trace allows to say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from comparison.pipeline.figures.deciding import ABOUT_ONE_GROUP, counted_noun
from comparison.pipeline.figures.verdicts import CHECKS, MISSED
from comparison.results.keys import COMPLETE
from comparison.results.outcomes import Kind, VerdictOutcome, worst
from comparison.results.run import Run, Verdict

if TYPE_CHECKING:
    from comparison.pipeline.figures.verdicts import Check


def judge(run: Run) -> Run:
    """The run with its verdicts; unknown if no check covers it."""
    covering = {(check.name, check.decide): check for check in reversed(CHECKS) if check.covers(run)}
    checked = [_verdict(check, run) for check in CHECKS if covering.get((check.name, check.decide)) is check]
    verdicts = [verdict for verdict in checked if verdict is not None]
    return msgspec.structs.replace(run, verdicts=verdicts, verdict=worst(v.outcome for v in verdicts))


def _verdict(check: Check, run: Run) -> Verdict | None:
    result = check.decide(run)
    if result is None:
        return None
    outcome, reason = result
    if run.problems:
        return _unknown(check, f"{_first_problem(run)}; as recorded: {reason}")
    if len(run.groups) > 1 and check.decide in ABOUT_ONE_GROUP:
        return _unknown(check, f"the run has {len(run.groups)} groups, this is about one; as recorded: {reason}")
    kept, missed = check.kind is not Kind.HISTORY, check.failing is MISSED
    open_ = {VerdictOutcome.EXPECTED: kept, VerdictOutcome.NOT_EXPECTED: missed}
    if open_.get(outcome, False) and (doubt := _doubt(run)):
        outcome, reason = VerdictOutcome.UNKNOWN, f"{doubt}; as recorded: {reason}"
    return Verdict(check=check.name, kind=check.kind, outcome=outcome, reason=reason)


def _unknown(check: Check, reason: str) -> Verdict:
    return Verdict(check=check.name, kind=check.kind, outcome=VerdictOutcome.UNKNOWN, reason=reason)


def _first_problem(run: Run) -> str:
    """Records that are missing, doubled or out of order can make anything appear, and hide anything."""
    first, *more = run.problems
    return f"{first} (and {counted_noun(len(more), 'more problem')} of the trace)" if more else first


def _doubt(run: Run) -> str:
    """Why the trace may not show everything that happened, though nothing is wrong with it; '' if it does."""
    if run.outcome == COMPLETE:
        return ""
    ends = {"failed": "the run failed", "interrupted": "the run was interrupted"}
    return ends.get(run.outcome, "the trace does not say how the run ended")
