"""Analyse all runs of a command in one pass over one Spark session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.pipeline import remembered
from comparison.pipeline import result as shape
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.figures.repeats import repeated
from comparison.pipeline.jobs import analyse, measure_again
from comparison.pipeline.written import TABLES, discard, publish, staging, write_results
from kernel.designs import DESIGN_NAMES, ZOOKEEPER
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

#: The command of a comparison, beside its runs.
COMMAND = "command.json"
#: Scenarios that a comparison shows first: they are the reason for this product.
SHOWN_FIRST = ("herd", "split-brain", "split-brain-ensemble")
#: Scenarios that share another scenario's run, by (scenario, design): the design sees no difference between them.
SAME_RUN: Mapping[tuple[str, str], str] = {("split-brain-ensemble", ZOOKEEPER): "split-brain"}


class NothingToAnalyse(UserError):
    """No trace was found in the given folders."""


def analyze(
    spark: SparkSession,
    run_dirs: Sequence[Path],
    *,
    output: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Analyse every run at or below the folders given, and return the result as result.json has it.

    The tables stay as Parquet in the folder `tables` of `output` (default: the common parent of the run folders), in
    the place of an earlier analysis's. If that one read the same files, its tables of events are measured again and no
    file is read (`comparison.pipeline.remembered`). Raises NothingToAnalyse if there is no trace.
    """
    runs = find_runs(run_dirs)
    if not runs:
        looked = ", ".join(str(folder) for folder in run_dirs) or "no folder"
        raise NothingToAnalyse(f"no trace/*.jsonl in {looked}; give the folder of a run, or one with runs in it")
    folder = (output or Path(os.path.commonpath([run.folder for run in runs]))).resolve()
    progress(f"analysing {len(runs)} runs" if len(runs) > 1 else "analysing the run")
    marked = remembered.fingerprint(runs)
    before = remembered.recall(folder / TABLES, marked)
    tables = staging(folder)
    try:
        if before is None:
            parts = parts_of(runs, spark.sparkContext.defaultParallelism)
            analysed, results = analyse(spark, runs, parts, tables)
            before = remembered.ReadParts(parts, results)
        else:
            remembered.share(folder / TABLES, tables)
            analysed = measure_again(spark, runs, before, tables)
        remembered.remember(tables, marked, before)
        write_results(tables, [(run, analysed[number]) for number, run in enumerate(runs)])
        publish(folder)
    except BaseException:
        discard(folder)
        raise
    return shape.as_mapping(compose(sorted(analysed.values(), key=_place), _not_applicable(folder)))


def _not_applicable(bundle: Path) -> list[shape.NotApplicable]:
    """The combinations that a comparison skipped as not applicable; empty without a readable command.json."""
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
    """A scenario that was not run under a design."""

    scenario: str
    design: str
    reason: str = ""
    same_run_as: str | None = None


class _Command(msgspec.Struct):
    """The part of command.json that is read; it is common to all runs of a comparison."""

    left_out: list[_LeftOut] = []


def compose(runs: list[shape.Run], not_applicable: Sequence[shape.NotApplicable] = ()) -> shape.Result:
    """The runs by scenario, with the verdict on all of them."""
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
