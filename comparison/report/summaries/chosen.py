"""Some runs of a result, or those of several results, as one result. Measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.results.outcomes import worst
from comparison.results.result import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comparison.results.result import Growth, Repeated, Result
    from comparison.results.run import Run


def only(result: Result, wanted: Callable[[Run], bool]) -> Result:
    """The result with the runs that are wanted, and the scenarios that these were made for."""
    kept = [number for number, run in enumerate(result.runs) if wanted(run)]
    place = {number: new for new, number in enumerate(kept)}
    runs = [result.runs[number] for number in kept]
    made_for = {run.scenario for run in runs}
    scenarios = [
        _scenario(each.scenario, [place[number] for number in each.runs if number in place], runs)
        for each in result.scenarios
        if each.scenario in made_for
    ]
    return replace(
        result,
        runs=runs,
        scenarios=scenarios,
        repeated=[
            replace(each, runs=[place[number] for number in each.runs], worst=place[each.worst])
            for each in result.repeated
            if all(number in place for number in each.runs)
        ],
        growths=[
            replace(each, runs=[place[number] for number in each.runs])
            for each in result.growths
            if all(number in place for number in each.runs)
        ],
        not_applicable=[each for each in result.not_applicable if each.scenario in made_for],
        verdict=worst(run.verdict for run in runs),
    )


def together(results: Sequence[Result]) -> Result:
    """Several results as one, in their order; a scenario that several have is one."""
    runs: list[Run] = []
    places: dict[str, list[int]] = {}
    repeated: list[Repeated] = []
    growths: list[Growth] = []
    for result in results:
        first = len(runs)
        runs += result.runs
        for each in result.scenarios:
            places.setdefault(each.scenario, []).extend(first + number for number in each.runs)
        repeated += [
            replace(each, runs=[first + number for number in each.runs], worst=first + each.worst)
            for each in result.repeated
        ]
        growths += [replace(each, runs=[first + number for number in each.runs]) for each in result.growths]
    left_out = {(each.scenario, each.design): each for result in results for each in result.not_applicable}
    return replace(
        results[0],
        runs=runs,
        scenarios=[_scenario(name, numbers, runs) for name, numbers in places.items()],
        repeated=repeated,
        growths=growths,
        not_applicable=list(left_out.values()),
        verdict=worst(run.verdict for run in runs),
    )


def _scenario(name: str, numbers: list[int], runs: Sequence[Run]) -> Scenario:
    return Scenario(scenario=name, runs=numbers, verdict=worst(runs[number].verdict for number in numbers))
