"""All scenarios by design at once: both verdicts, and the three prices that most readers ask for first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.summaries.figures import NOT_APPLICABLE
from comparison.report.summaries.glance import cells, labelled
from comparison.report.summaries.two_verdicts import promised
from comparison.results.promises import by_design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.summaries.glance import Cell
    from comparison.report.summaries.two_verdicts import Promised
    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run

#: What is below both verdicts, by names of figures, and in words.
_PRICES = ("standstill_s", "stopped", "duplicates")
PRICES = "; ".join(", ".join(filter(None, labelled(name))) for name in _PRICES)


class Judged(NamedTuple):
    """One design in one scenario: the outcomes are those of result.json, and of `comparison.results.promises`."""

    verdict: str  #: '' if it was not run
    promises: Promised | None  #: None if it was not run
    words: str
    prices: Sequence[Cell]


def judged(scenario: Scenario, runs: Sequence[Run], result: Result, missing: Mapping[str, str]) -> dict[str, Judged]:
    """By design, all of the result's; `runs` are the scenario's, one a design."""
    promises = by_design(scenario, result)
    by_run = zip(*(cells(name, runs) for name in _PRICES), strict=True)
    prices = {run.design: of for run, of in zip(runs, by_run, strict=True)}
    found = {}
    for design in dict.fromkeys(run.design for run in result.runs):
        run = next((each for each in runs if each.design == design), None)
        if run is None:
            found[design] = Judged(NOT_APPLICABLE if design in missing else "", None, missing.get(design, ""), ())
            continue
        of = promised(promises[design])
        broken = "; ".join(each.promise.name for each in of.broken)
        words = f"{scenario.scenario} in {design}: {run.verdict}, promises: {of.text}"
        found[design] = Judged(run.verdict, of, f"{words} ({broken})" if broken else words, prices[design])
    return found
