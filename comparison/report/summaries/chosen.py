"""Some runs of a result, or those of several results, as one result. Measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.results.outcomes import worst
from comparison.results.result import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from comparison.results.result import Growth, Repeated, Result
    from comparison.results.run import Run


def only(result: Result, wanted: Callable[[Run], bool]) -> Result:
    """The result with the runs that are wanted, and the scenarios that these were made for."""
    kept = [number for number, run in enumerate(result.runs) if wanted(run)]
    return _with(result, kept, {result.runs[number].scenario for number in kept})


def of_scenario(result: Result, scenario: Scenario) -> Result:
    """The result with the runs of one of its scenarios, also those that were made for another one, which it shares."""
    return _with(result, sorted(scenario.runs), {scenario.scenario})


def _with(result: Result, kept: Sequence[int], names: Container[str]) -> Result:
    """The result with these runs, and the scenarios of these names."""
    place = {number: new for new, number in enumerate(kept)}
    runs = [result.runs[number] for number in kept]
    scenarios = [
        _scenario(each.scenario, [place[number] for number in each.runs if number in place], runs)
        for each in result.scenarios
        if each.scenario in names
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
        not_applicable=[each for each in result.not_applicable if each.scenario in names],
        verdict=worst(run.verdict for run in runs),
    )


def together(results: Sequence[Result]) -> Result:
    """Several results as one, in their order; a scenario or a run that several have is one."""
    runs: dict[str, Run] = {}
    scenarios: dict[str, dict[int, None]] = {}
    repeated: dict[tuple[int, ...], Repeated] = {}
    growths: dict[tuple[str, str, *tuple[int, ...]], Growth] = {}
    for result in results:
        for run in result.runs:
            runs.setdefault(run.path, run)
        place = {path: number for number, path in enumerate(runs)}
        numbers = [place[run.path] for run in result.runs]
        for each in result.scenarios:
            scenarios.setdefault(each.scenario, {}).update((numbers[number], None) for number in each.runs)
        for repeats in result.repeated:
            those = [numbers[number] for number in repeats.runs]
            repeated[tuple(those)] = replace(repeats, runs=those, worst=numbers[repeats.worst])
        for growth in result.growths:
            those = [numbers[number] for number in growth.runs]
            growths[growth.change, growth.figure, *those] = replace(growth, runs=those)
    left_out = {(each.scenario, each.design): each for result in results for each in result.not_applicable}
    return replace(
        results[0],
        runs=list(runs.values()),
        scenarios=[_scenario(name, list(those), list(runs.values())) for name, those in scenarios.items()],
        repeated=list(repeated.values()),
        growths=list(growths.values()),
        not_applicable=list(left_out.values()),
        verdict=worst(run.verdict for run in runs.values()),
    )


def _scenario(name: str, numbers: list[int], runs: Sequence[Run]) -> Scenario:
    return Scenario(scenario=name, runs=numbers, verdict=worst(runs[number].verdict for number in numbers))
