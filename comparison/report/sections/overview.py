"""All scenarios by design at once: both verdicts, and the three prices that most readers ask for first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.summaries.figures import NOT_APPLICABLE, number, unseen
from comparison.report.summaries.glance import seconds
from comparison.report.summaries.two_verdicts import promised
from comparison.results.promises import by_design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.summaries.two_verdicts import Promised
    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run

#: What is below both verdicts.
PRICES = "longest standstill, s; partitions stopped; records delivered again"


class Judged(NamedTuple):
    """One design in one scenario: the outcomes are those of result.json, and of `comparison.results.promises`."""

    verdict: str  #: '' if it was not run
    promises: Promised | None  #: None if it was not run
    words: str
    prices: str


def judged(scenario: Scenario, runs: Sequence[Run], result: Result, missing: Mapping[str, str]) -> dict[str, Judged]:
    """By design, all of the result's; `runs` are the scenario's, one a design."""
    promises = by_design(scenario, result)
    found = {}
    for design in dict.fromkeys(run.design for run in result.runs):
        run = next((each for each in runs if each.design == design), None)
        if run is None:
            found[design] = Judged(NOT_APPLICABLE if design in missing else "", None, missing.get(design, ""), "")
            continue
        of = promised(promises[design])
        broken = "; ".join(each.promise.name for each in of.broken)
        words = f"{scenario.scenario} in {design}: {run.verdict}, promises: {of.text}"
        found[design] = Judged(run.verdict, of, f"{words} ({broken})" if broken else words, _prices(run))
    return found


def _prices(run: Run) -> str:
    stood_s = run.metrics.get("standstill_s")
    counts = [run.metrics.get(name) for name in ("stopped", "duplicates")]
    return "; ".join(
        "?" if known is None else shown
        for known, shown in [
            (stood_s, seconds(stood_s) if stood_s else unseen(run)),
            *((count, number(count)) for count in counts),
        ]
    )
