"""Combined repeats: medians, ranges and the worst verdict."""

from __future__ import annotations

import msgspec

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.repeats import repeated
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import Spread
from comparison.results.run import Run
from tests.support.runs.results import change, run


def repeat(
    seed: int, converge_ms: float | None, verdict: VerdictOutcome, *, design: str = "eager", moved: int = 3
) -> Run:
    changes = [change(converge_ms=converge_ms, moved=moved)]
    path = f"/runs/join/{design}/seed-{seed}"
    return run("join", design, seed=seed, path=path, converge_ms=converge_ms, changes=changes, verdict=verdict)


def test_repeats_have_the_median_the_range_and_the_worst_verdict() -> None:
    runs = [
        repeat(3, 900.0, VerdictOutcome.UNKNOWN),
        repeat(1, 200.0, VerdictOutcome.EXPECTED),
        repeat(2, 400.0, VerdictOutcome.NOT_EXPECTED, moved=4),
        repeat(1, 100.0, VerdictOutcome.EXPECTED, design="zookeeper"),
    ]
    (together,) = repeated(runs)
    assert (together.scenario, together.design, together.runs) == ("join", "eager", [1, 2, 0])
    assert (together.verdict, together.worst) == (VerdictOutcome.NOT_EXPECTED, 2)
    assert together.metrics["converge_ms"] == Spread(n=3, median=400.0, low=200.0, high=900.0)
    assert together.metrics["final_read"] is None
    (of_change,) = together.changes
    assert of_change.figures["moved"] == Spread(n=3, median=3, low=3, high=4)


def test_spread_says_how_many_repeats_have_the_figure() -> None:
    assert Spread.of([None, 4.0, 2.0]) == Spread(n=2, median=3.0, low=2.0, high=4.0)
    assert Spread.of([None, None]) is None


def test_single_runs_have_no_spread() -> None:
    designs = ("zookeeper", "eager")
    assert compose([repeat(1, 200.0, VerdictOutcome.EXPECTED, design=design) for design in designs]).repeated == []


def test_runs_with_other_parameters_are_no_repeats() -> None:
    two, four = (
        msgspec.structs.replace(
            repeat(1, 200.0, VerdictOutcome.EXPECTED), parameters={"members": members, "seed": seed}
        )
        for members, seed in ((2, 1), (4, 2))
    )
    assert repeated([two, four]) == []
    again = msgspec.structs.replace(two, seed=2, parameters={"members": 2, "seed": 2})
    assert [each.runs for each in repeated([two, again])] == [[0, 1]]


def test_verdict_of_a_result_is_that_of_its_worst_repeat() -> None:
    result = compose([repeat(1, 1.0, VerdictOutcome.EXPECTED), repeat(2, 1.0, VerdictOutcome.UNKNOWN)])
    assert (result.verdict, result.scenarios[0].verdict) == (VerdictOutcome.UNKNOWN, VerdictOutcome.UNKNOWN)
