"""What became of each promise (`comparison.results.promised`) in a run, over several, and in a whole result.

A verdict says whether a run went as the model says, and the model says that some designs break some promises: such a
run is as expected, and not good. These outcomes are the second column beside each verdict.

They are derived from a run's figures and verdicts, and not stored beside them: there is nothing to measure, no two
columns can contradict each other, and results that were written before have them as well. As for verdicts, nothing is
kept in a trace with problems, or in a run that did not go to its end; what was seen to break is broken.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from comparison.results.keys import COMPLETE
from comparison.results.outcomes import VerdictOutcome
from comparison.results.promised import PROMISES, SETTLES, Promise, shown_as, verdict_on
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run

    _ByDesign = Mapping[str, Sequence["Outcome"]]

#: Of more sets of designs than these that broke promises, a title counts what each design broke.
_GROUPS_MAX = 3
_ONE = {
    VerdictOutcome.EXPECTED: "the run is as the model says",
    VerdictOutcome.NOT_EXPECTED: "the run is not as the model says",
    VerdictOutcome.UNKNOWN: "whether the run is as the model says is unknown",
}


class PromiseOutcome(StrEnum):
    """What became of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    NOT_ASKED = "not asked"  #: nothing happened that could have broken it


KEPT, BROKEN, UNKNOWN, NOT_ASKED = PromiseOutcome
#: The worst first.
_WORST = (BROKEN, UNKNOWN, KEPT, NOT_ASKED)


class Outcome(NamedTuple):
    """What became of a promise in one run or several, and the figure that shows it, or why nothing does."""

    promise: Promise
    outcome: PromiseOutcome
    shown: str


def promises_of(run: Run) -> list[Outcome]:
    """What became of each promise in a run."""
    return [Outcome(promise, *_outcome(promise, run)) for promise in PROMISES]


def _outcome(promise: Promise, run: Run) -> tuple[PromiseOutcome, str]:
    if run.problems:
        return UNKNOWN, run.problems[0]
    figures = {name: run.metrics.get(name) for name in (*promise.figures, *promise.if_known)}
    words = {**promise.figures, **promise.if_known}
    if seen := [shown_as(words[name], value) for name, value in figures.items() if value]:
        return BROKEN, "; ".join(seen)
    if other := promise.others(run) or "; ".join(each.reason for each in promise.failed(run)):
        return BROKEN, other
    if reason := promise.not_asked(run):
        return NOT_ASKED, reason
    return _unless_broken(promise, run, figures)


def _unless_broken(promise: Promise, run: Run, figures: Mapping[str, float | None]) -> tuple[PromiseOutcome, str]:
    if lacking := next((words for name, words in promise.figures.items() if figures[name] is None), ""):
        return UNKNOWN, f"{lacking}: not known from this trace"
    if run.outcome != COMPLETE:
        return UNKNOWN, "the run did not go to its end"
    if SETTLES in promise.checks and (settles := verdict_on(run, SETTLES)) is not None:
        return (UNKNOWN if settles.outcome == VerdictOutcome.UNKNOWN else KEPT), settles.reason
    known = [shown_as(words, figures[name] or 0) for name, words in promise.figures.items()]
    return KEPT, "; ".join(known) or "nothing was seen that breaks it"


# -- several runs ------------------------------------------------------------------------------------------------------


def over(runs: Sequence[Run]) -> list[Outcome]:
    """What became of each promise in several runs: broken if in one of them, and kept if in all that asked."""
    of_runs = [promises_of(run) for run in runs]
    return [_worst([outcomes[place] for outcomes in of_runs]) for place in range(len(PROMISES))]


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    found = min(outcomes, key=lambda each: _WORST.index(each.outcome))
    times = sum(each.outcome == found.outcome for each in outcomes)
    if times == len(outcomes) and len({each.shown for each in outcomes}) == 1:
        return found
    return found._replace(shown=f"in {times} of {len(outcomes)} runs, the first: {found.shown}")


def by_design(scenario: Scenario, result: Result) -> dict[str, list[Outcome]]:
    """What became of each promise in a scenario, by design."""
    runs: dict[str, list[Run]] = {}
    for place in scenario.runs:
        runs.setdefault(result.runs[place].design, []).append(result.runs[place])
    return {design: over(made) for design, made in runs.items()}


# -- words -------------------------------------------------------------------------------------------------------------


def overall(outcomes: Iterable[Outcome]) -> PromiseOutcome:
    """The worst of several promises: what became of all that were asked."""
    return min((each.outcome for each in outcomes), key=_WORST.index, default=NOT_ASKED)


def summary(outcomes: Iterable[Outcome], *, noun: str = "") -> str:
    """`kept`, `broke 2 of 6`, `broke 1 of 6, 2 unknown`, `3 of 6 unknown`, or `not asked`.

    With a noun, `promises kept`, `broke 2 of 6 promises`, and so on.
    """
    asked = [each.outcome for each in outcomes if each.outcome != NOT_ASKED]
    broken, unknown = asked.count(BROKEN), asked.count(UNKNOWN)
    before, after = (f"{noun} ", f" {noun}") if noun else ("", "")
    if broken:
        return f"broke {broken} of {len(asked)}{after}" + (f", {unknown} unknown" if unknown else "")
    if unknown:
        return f"{before}unknown" if unknown == len(asked) else f"{unknown} of {len(asked)}{after} unknown"
    return f"{before}{KEPT if asked else NOT_ASKED}"


def title(result: Result) -> str:
    """`all 21 runs as the model says; zookeeper broke 2 promises that the others keep`: a result in one sentence."""
    return "; ".join(part for part in (as_the_model_says(result.runs), *_of_promises(result)) if part)


def as_the_model_says(runs: Sequence[Run]) -> str:
    """How many runs went as the model says."""
    verdicts = [run.verdict for run in runs]
    counts = {each: verdicts.count(each) for each in VerdictOutcome}
    if len(runs) == 1:
        return _ONE[verdicts[0]]
    if counts[VerdictOutcome.EXPECTED] == len(runs):
        return f"{'both' if len(runs) == 2 else f'all {len(runs)}'} runs as the model says"
    expected = f"{counts[VerdictOutcome.EXPECTED] or 'none'} of {len(runs)} runs as the model says"
    others = ((VerdictOutcome.NOT_EXPECTED, "not"), (VerdictOutcome.UNKNOWN, "unknown"))
    return ", ".join([expected, *(f"{counts[outcome]} {words}" for outcome, words in others if counts[outcome])])


def _of_promises(result: Result) -> list[str]:
    found = [by_design(scenario, result) for scenario in result.scenarios]
    designs = list(dict.fromkeys(run.design for run in result.runs))
    broken = {design: names for design in designs if (names := broken_by(design, found))}
    if not broken:
        return [_none_broken(found)]
    if len(result.runs) == 1:
        return [f"it {summary(promises_of(result.runs[0]), noun='promises')}"]
    together = _broken_together(broken)
    if len(together) > _GROUPS_MAX:
        kept = {who[0]: _kept_by_others(who[0], names, found) for who, names in together.items() if len(who) == 1}
        return [_by_number(broken, kept, len(designs))]
    return [_of_group(who, names, designs, found) for who, names in together.items()]


def _broken_together(broken: Mapping[str, Sequence[str]]) -> dict[tuple[str, ...], list[str]]:
    """The promises by the designs that broke them; those of one design first."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name in (promise.name for promise in PROMISES):
        if who := tuple(design for design, names in broken.items() if name in names):
            together.setdefault(who, []).append(name)
    return dict(sorted(together.items(), key=lambda each: len(each[0])))


def _of_group(who: Sequence[str], names: Sequence[str], designs: Sequence[str], found: Sequence[_ByDesign]) -> str:
    if len(who) == len(designs) > 2:
        return f"all designs broke {_counted(len(names))}"
    kept = _kept_by_others(who[0], names, found) if len(who) == 1 else 0
    keep = " that the others keep" if kept == len(names) else _of_which(kept)
    return f"{listed(who)} broke {_counted(len(names))}{keep}"


def _by_number(broken: Mapping[str, Sequence[str]], kept: Mapping[str, int], of: int) -> str:
    """`zookeeper broke 6 promises, 2 of which the others keep, static 4, eager and server 3`: the most first."""
    designs: dict[int, list[str]] = {}
    for design in sorted(broken, key=lambda each: -len(broken[each])):
        designs.setdefault(len(broken[design]), []).append(design)
    (most, first), *less = designs.items()
    keep = _of_which(kept.get(first[0], 0)) if len(first) == 1 else " each"
    return ", ".join([f"{listed(first)} broke {_counted(most)}{keep}", *numbered(less, is_all=len(broken) == of)])


def numbered(groups: Sequence[tuple[int, Sequence[str]]], *, is_all: bool) -> list[str]:
    """`static 4`, `eager and server 3`; the last ones as `the others 2` if `is_all` that there are."""
    texts = [f"{listed(names)} {number}" for number, names in groups]
    if groups and is_all and len(groups[-1][1]) > 1:
        texts[-1] = f"the others {groups[-1][0]}"
    return texts


def _of_which(kept: int) -> str:
    return f", {kept} of which the others keep" if kept else ""


def broken_by(design: str, found: Iterable[_ByDesign]) -> list[str]:
    """The names of the promises that a design broke, in display order; `found` has what `by_design` says."""
    names = {each.promise.name for of in found for each in of.get(design, ()) if each.outcome == BROKEN}
    return [promise.name for promise in PROMISES if promise.name in names]


def _none_broken(found: Iterable[_ByDesign]) -> str:
    all_outcomes = [each.outcome for of in found for outcomes in of.values() for each in outcomes]
    if UNKNOWN in all_outcomes:
        return "no promise was seen to break, but some are unknown"
    return "every promise kept" if KEPT in all_outcomes else ""


def _kept_by_others(design: str, names: Iterable[str], found: Sequence[_ByDesign]) -> int:
    return sum(_others_keep(design, name, found) for name in names)


def _others_keep(design: str, name: str, found: Iterable[_ByDesign]) -> bool:
    """Whether other designs kept a promise wherever this one broke it; it is known that nobody else broke it."""
    others = {
        outcome
        for of in found
        if any(own.outcome == BROKEN and own.promise.name == name for own in of.get(design, ()))
        for other, outcomes in of.items()
        if other != design
        for promise, outcome, _ in outcomes
        if promise.name == name
    }
    return KEPT in others and UNKNOWN not in others


def _counted(count: int) -> str:
    return f"{count} promise{'' if count == 1 else 's'}"
