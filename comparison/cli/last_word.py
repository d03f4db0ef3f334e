"""The last word on a run that the pipeline has measured and judged: what is known of scenarios, beside their traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.fuzzing.verdicts import promises_alone
from comparison.pipeline.figures.judging import judge
from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by

if TYPE_CHECKING:
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.results.run import Run


def last_word(traced: TraceRun, run: Run) -> Run:
    """The run with the verdicts that its scenario asks for."""
    return promises_alone(traced, _by_its_name(run))


def _by_its_name(run: Run) -> Run:
    """Traces of earlier versions name no checks: they meant those of the scenario of that name."""
    scenario = CATALOGUE.get(run.scenario)
    if scenario is None or not run.parameters or "checks" in run.parameters:
        return run
    judged = judge(replace(run, parameters={**run.parameters, "checks": judged_by(scenario)}))
    return replace(judged, parameters=run.parameters)
