"""Performs the missing runs of a simulated sweep: each is a task of Spark's, in a process of its own.

Simulated runs do not disturb each other, so that as many are made at a time as there are cores. Tasks get the sweep's
folder and the places of runs in its plan; they read the plan and the kept files there, as a later command would, and
write the runs into it. What has ended stays, whatever ends the command.
"""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from comparison.results.keys import COMPLETE
from comparison.run_folder import provenance, run_dir_of, write_json
from comparison.scenarios.plan.catalogue import scenario_named

# What computes a large group is loaded once, and not by every child that is forked for one.
from comparison.simulation.deciding import group as _loaded_before_forking  # noqa: F401
from comparison.simulation.runs import done_in_a_child, perform
from comparison.sweep.large import Method, figures_of
from comparison.sweep.run import discarded, load_kept_files, planned_before, read_plan, record_in, request_of
from comparison.sweep.state import RecordedRun, RunStatus, status_of
from kernel.errors import EnvironmentFault, UserError
from kernel.trace.listed_file import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from comparison.screen.progress import RunProgress
    from comparison.sweep.plan import SweepPlan, SweepRun
    from comparison.sweep.state import SweepState

#: The modelled one is in the place of the embedded one.
ZOOKEEPER = "embedded"
#: What a task returns: the runs that could not start, by their places in the plan.
_UNSTARTED = pa.schema([("place", pa.int64()), ("error", pa.string())])
#: Between looks at which runs have ended.
_LOOK_S = 0.5


class SimulatedSweepRunner:
    """Performs runs of a sweep in its folder, which the caller holds, on a Spark session."""

    def __init__(self, folder: Path, plan: SweepPlan, state: SweepState, command: list[str]) -> None:
        self._folder = folder
        self._places = {run.folder: place for place, run in enumerate(plan.runs)}
        self._state = state
        self._about = provenance(command)

    def perform(
        self, runs: Sequence[SweepRun], spark: SparkSession, progress: RunProgress
    ) -> list[tuple[SweepRun, str]]:
        """Perform the runs; those that could not start, and why. Raises `EnvironmentFault` when none can."""
        for run in runs:
            discarded(self._folder, run)
        places = [self._places[run.folder] for run in runs]
        spark.conf.set("spark.sql.leafNodeDefaultParallelism", str(len(places)))  # a task each
        rows = spark.createDataFrame(pa.table({"place": pa.array(places, pa.int64())}))
        tasks = rows.mapInArrow(_Perform(self._folder, self._about), from_arrow_schema(_UNSTARTED))
        open_runs = list(runs)
        with ThreadPoolExecutor(1, thread_name_prefix="performing") as pool:
            performing = pool.submit(tasks.toArrow)
            while not wait_for([performing], _LOOK_S).done:
                open_runs = self._looked_at(open_runs, progress)
            found = performing.result()
            errors = dict(zip(found["place"].to_pylist(), found["error"].to_pylist(), strict=True))
        self._looked_at(open_runs, progress)
        unstarted = [(run, error) for run in runs if (error := errors.get(self._places[run.folder]))]
        if len(unstarted) == len(runs):
            raise EnvironmentFault(f"no run could start; the first: {unstarted[0][1]}")
        return unstarted

    def _looked_at(self, runs: Sequence[SweepRun], progress: RunProgress) -> list[SweepRun]:
        """Record the runs that have ended, and return the others."""
        left = []
        for run in runs:
            record = record_in(self._folder / run.folder)
            if status_of(run, record) is RunStatus.MISSING or record is None:
                left.append(run)
                continue
            self._state.record(run, record)
            progress.ended(run.title, record.outcome + (f" ({record.error})" if record.error else ""))
        return left


class _Perform:
    """A task: performs the runs at these places of the plan. Yields what kept any of them from starting."""

    def __init__(self, folder: Path, about: Mapping[str, object]) -> None:
        self._folder, self._about = folder, about

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in (place for batch in batches for place in batch["place"].to_pylist()):
            run = _planned(self._folder).runs[place]
            try:
                made = self._perform if run.cell.by == Method.FULL_STACK else self._compute
                asyncio.run(made(run))
            except UserError as error:
                yield pa.record_batch({"place": [place], "error": [str(error)]}, schema=_UNSTARTED)

    async def _perform(self, run: SweepRun) -> None:
        request = request_of(self._folder, run, ZOOKEEPER, simulated=True)
        await perform(request, self._about, asyncio.Event(), lambda _: None)

    async def _compute(self, run: SweepRun) -> None:
        """A large group, in a process that is spent with it; what came of it is in `run.json` alone."""
        parameters = run.planned.parameters

        def computed(_: Callable[[str], None]) -> dict[str, float]:
            gc.disable()  # the members of a group stay: searching them for garbage finds none
            return figures_of(scenario_named(run.cell.scenario), run.cell.design, parameters)

        figures = await done_in_a_child(computed, asyncio.Event(), lambda _: None)
        record = RecordedRun(
            scenario=run.cell.scenario,
            design=run.cell.design,
            parameters=parameters.as_json(),
            outcome=COMPLETE,
            figures=figures,
        )
        run_dir = run_dir_of(self._folder, run.folder)
        write_json(run_dir / RUN_FILE, {**self._about, "by": run.cell.by, **msgspec.to_builtins(record)})


_read: dict[Path, SweepPlan] = {}


def _planned(folder: Path) -> SweepPlan:
    """The plan of a sweep's folder; a worker process reads it once for all its tasks."""
    if folder not in _read:
        stored = read_plan(folder)
        load_kept_files(folder, stored)
        _read.clear()
        _read[folder] = planned_before(folder, stored)
    return _read[folder]
