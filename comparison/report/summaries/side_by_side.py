"""Two results as one, for the page that shows runs of one scenario beside each other.

Each scenario in a design becomes a scenario of its own, whose columns are the two sides: what a page calls a design is
the name of a column, and here that is the side's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from comparison.differences.places import Place
from comparison.results.outcomes import worst
from comparison.results.result import Scenario

if TYPE_CHECKING:
    from comparison.results.result import Growth, Repeated, Result
    from comparison.results.run import Run

    Of = TypeVar("Of", Run, Repeated, Growth)


def as_side(result: Result, name: str) -> Result:
    """Each scenario in a design as a scenario with one column of this name; the runs stay in their order."""
    numbers: dict[Place, list[int]] = {}
    for number, run in enumerate(result.runs):
        numbers.setdefault(place_of_run(run), []).append(number)
    return replace(
        result,
        runs=[_named(run, name) for run in result.runs],
        scenarios=[
            Scenario(scenario=str(place), runs=each, verdict=worst(result.runs[number].verdict for number in each))
            for place, each in numbers.items()
        ],
        repeated=[_named(each, name) for each in result.repeated],
        growths=[_named(each, name) for each in result.growths],
        not_applicable=[],
    )


def place_of_run(run: Run | Repeated | Growth) -> Place:
    return Place(run.scenario, run.design)


def _named(each: Of, name: str) -> Of:
    return replace(each, scenario=str(place_of_run(each)), design=name)
