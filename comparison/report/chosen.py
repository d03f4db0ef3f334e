"""Some runs of a result, or those of several results, as one result. Reads plain mappings; measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.report.figures import check_version
from comparison.results.outcomes import worst

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Result = Mapping[str, Any]


def only(result: Result, wanted: Callable[[Mapping[str, Any]], bool]) -> Result:
    """The result with the runs that are wanted."""
    check_version(result)
    kept = [number for number, run in enumerate(result["runs"]) if wanted(run)]
    place = {number: new for new, number in enumerate(kept)}
    runs = [result["runs"][number] for number in kept]
    scenarios = [
        _scenario(each["scenario"], [place[number] for number in each["runs"] if number in place], runs)
        for each in result["scenarios"]
    ]
    return {
        **result,
        "runs": runs,
        "scenarios": [each for each in scenarios if each["runs"]],
        "repeated": [
            {**each, "runs": [place[number] for number in each["runs"]], "worst": place[each["worst"]]}
            for each in result["repeated"]
            if all(number in place for number in each["runs"])
        ],
        "growths": [
            {**each, "runs": [place[number] for number in each["runs"]]}
            for each in result["growths"]
            if all(number in place for number in each["runs"])
        ],
        "verdict": worst(run["verdict"] for run in runs),
    }


def together(results: Sequence[Result]) -> Result:
    """Several results as one, in their order; a scenario that several have is one."""
    runs: list[Mapping[str, Any]] = []
    places: dict[str, list[int]] = {}
    repeated: list[Mapping[str, Any]] = []
    growths: list[Mapping[str, Any]] = []
    for result in results:
        check_version(result)
        first = len(runs)
        runs += result["runs"]
        for each in result["scenarios"]:
            places.setdefault(each["scenario"], []).extend(first + number for number in each["runs"])
        for each in result["repeated"]:
            moved = {"runs": [first + number for number in each["runs"]], "worst": first + each["worst"]}
            repeated.append({**each, **moved})
        growths += [{**each, "runs": [first + number for number in each["runs"]]} for each in result["growths"]]
    left_out = {(each["scenario"], each["design"]): each for result in results for each in result["not_applicable"]}
    return {
        **results[0],
        "runs": runs,
        "scenarios": [_scenario(name, numbers, runs) for name, numbers in places.items()],
        "repeated": repeated,
        "growths": growths,
        "not_applicable": list(left_out.values()),
        "verdict": worst(run["verdict"] for run in runs),
    }


def _scenario(name: str, numbers: Sequence[int], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"scenario": name, "runs": list(numbers), "verdict": worst(runs[number]["verdict"] for number in numbers)}
