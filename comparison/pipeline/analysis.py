"""From run folders to a result: all runs of a command in one pass over one Spark session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.pipeline import result as shape
from comparison.pipeline.assemble import assemble
from comparison.pipeline.collect import measure
from comparison.pipeline.ingest import find_runs, ingest
from comparison.pipeline.repeats import repeated
from comparison.pipeline.verdicts import judge
from kernel.designs import DESIGN_NAMES, ZOOKEEPER
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

#: Beside the runs of a comparison: what was asked for.
COMMAND = "command.json"
#: What a comparison shows first: the product's reason.
SHOWN_FIRST = ("herd", "split-brain", "split-brain-ensemble")
#: A run of one scenario that is also the run of another, by (scenario, design): where both forms of a fault are
#: the same for a design.
SAME_RUN: Mapping[tuple[str, str], str] = {("split-brain-ensemble", ZOOKEEPER): "split-brain"}


class NothingToAnalyse(UserError):
    """No trace was found where one was looked for."""


def analyze(
    spark: SparkSession,
    run_dirs: Sequence[Path],
    *,
    output: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Analyse every run at or below the folders given, and return the result as result.json has it.

    The events are left as Parquet in `output` (default: the folder that the run folders have in common). Raises
    NothingToAnalyse when there is no trace.
    """
    runs = find_runs(run_dirs)
    if not runs:
        looked = ", ".join(str(folder) for folder in run_dirs) or "no folder"
        raise NothingToAnalyse(f"no trace/*.jsonl in {looked}; give the folder of a run, or one with runs in it")
    folder = (output or Path(os.path.commonpath([run.folder for run in runs]))).resolve() / "events.parquet"
    progress("reading the traces")
    events = ingest(spark, runs, folder)
    measured = measure(spark, events, {run.number: str(run.header.get("design", "")) for run in runs}, progress)
    progress("verdicts")
    judged = [judge(assemble(run, measured[run.number])) for run in runs]
    return shape.as_mapping(compose(sorted(judged, key=_place), _not_applicable(folder.parent)))


def _not_applicable(bundle: Path) -> list[shape.NotApplicable]:
    """What a comparison left out because it makes no sense; nothing of it when there is no word of it."""
    try:
        left_out = msgspec.json.decode((bundle / COMMAND).read_bytes(), type=_Command).left_out
    except (OSError, msgspec.DecodeError):
        return []
    return [
        shape.NotApplicable(scenario=each.scenario, design=each.design, reason=each.reason)
        for each in left_out
        if each.same_run_as is None
    ]


class _LeftOut(msgspec.Struct):
    """A scenario under a design that was not run."""

    scenario: str
    design: str
    reason: str = ""
    same_run_as: str | None = None


class _Command(msgspec.Struct):
    """What is read of command.json, which the runs of a comparison have in common."""

    left_out: list[_LeftOut] = []


def compose(runs: list[shape.Run], not_applicable: Sequence[shape.NotApplicable] = ()) -> shape.Result:
    """The runs, by scenario, and what they come to."""
    names = list(dict.fromkeys(run.scenario for run in runs))
    scenarios = [_scenario(name, runs) for name in names]
    return shape.Result(
        schema_version=shape.SCHEMA_VERSION,
        runs=runs,
        scenarios=scenarios,
        repeated=repeated(runs),
        not_applicable=list(not_applicable),
        verdict=shape.worst(run.verdict for run in runs),
    )


def _scenario(name: str, runs: list[shape.Run]) -> shape.Scenario:
    numbers = [
        number
        for number, run in enumerate(runs)
        if run.scenario == name or SAME_RUN.get((name, run.design)) == run.scenario
    ]
    numbers.sort(key=lambda number: _place_of_design(runs[number].design))
    return shape.Scenario(scenario=name, runs=numbers, verdict=shape.worst(runs[n].verdict for n in numbers))


def _place(run: shape.Run) -> tuple[int, str, int, int, str]:
    first = SHOWN_FIRST.index(run.scenario) if run.scenario in SHOWN_FIRST else len(SHOWN_FIRST)
    return first, run.scenario, _place_of_design(run.design), run.seed, run.path


def _place_of_design(design: str) -> int:
    return DESIGN_NAMES.index(design) if design in DESIGN_NAMES else len(DESIGN_NAMES)
