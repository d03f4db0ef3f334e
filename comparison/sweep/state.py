"""What a sweep's folder says: which plan it belongs to, which runs are done, how long the others will take.

A run is done when its `run.json` says how it ended. One that was killed or interrupted is missing, and is made again
from the start. `sweep-plan.json` is written before the first run; a folder never mixes runs of two plans. It is enough
to list the runs and to analyse them, so that no scenario or plugin that the folder has kept is loaded for that.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from comparison.results.sweep import CountedRun, is_of_runs
from comparison.scenarios.plan.admitted import file_of
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.parameters import LargeParameters, Parameters
from comparison.scenarios.plan.plugins import kept_plugins
from comparison.scenarios.run.experiments import Planned
from comparison.sweep.grid import COUNTS, SCENARIO, Grid, Value, complete
from comparison.sweep.large import FULL_STACK_MEMBERS_MAX
from comparison.sweep.plan import Cell, FirstRun, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.scenarios.plan.admitted import ScenarioFile
    from comparison.sweep.plan import SweepPlan, SweepRun

PLAN_FILE = "sweep-plan.json"
PLAN_SCHEMA_VERSION = 2
#: A name within a path, which leads nowhere else.
_Name = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}$)[^/\0]+$")]
_PluginName = Annotated[str, msgspec.Meta(pattern=r"^[^/\0]+\.py$")]
_Count = Annotated[int, msgspec.Meta(ge=1, le=COUNTS["repeats"][1])]


class RunStatus(StrEnum):
    """Whether a run of the plan is done."""

    MISSING = "missing"
    COMPLETE = "complete"
    FAILED = "failed"


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's `run.json` that is read."""

    scenario: str
    design: str
    parameters: dict[str, Any]
    outcome: str = ""  #: '' until the run has ended
    error: str = ""
    seconds: float = 0.0
    figures: dict[str, float] = {}  #: of a run without a trace, which is not analysed


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a stored plan."""

    folder: str
    scenario: _Name
    design: _Name
    parameters: LargeParameters
    by: str = ""
    at: dict[str, Value | None] = {}  #: the values of its cell (`Cell.at`)
    estimated_s: float = 0.0

    @property
    def as_made(self) -> Parameters:
        """The parameters, in the class in which the run was planned."""
        return Parameters.of(self.parameters) if is_of_runs(self.by) else self.parameters


class RecordedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A stored plan: enough to make the same one again, and to notice that it is another one."""

    schema: int
    command: list[str]
    zookeeper: str
    simulated: bool = False
    full_stack_max: int = FULL_STACK_MEMBERS_MAX
    axes: dict[str, list[Value]]
    seed: int
    seeds: _Count
    repeats: _Count
    metrics: list[str] = []  #: to show first; another choice is no other plan
    runs: list[PlannedRun]
    left_out: list[tuple[str, str]] = []  #: (title of the combination, reason)
    scenario_files: dict[_Name, str] = {}  #: the digest of each scenario that was read from a file, by its name
    plugin_files: dict[_PluginName, str] = {}  #: the digest of each plugin, by its file's name

    @property
    def grid(self) -> Grid:
        axes = {name: tuple(values) for name, values in self.axes.items()}
        metrics = tuple(self.metrics)
        return Grid(axes=axes, seed=self.seed, seeds=self.seeds, repeats=self.repeats, metrics=metrics)


def recorded(
    plan: SweepPlan,
    command: Sequence[str],
    zookeeper: str,
    *,
    simulated: bool = False,
    full_stack_max: int = FULL_STACK_MEMBERS_MAX,
) -> RecordedPlan:
    """The plan as it is stored."""
    grid = complete(plan.grid)
    return RecordedPlan(
        schema=PLAN_SCHEMA_VERSION,
        command=list(command),
        zookeeper=zookeeper,
        simulated=simulated,
        full_stack_max=full_stack_max,
        axes={name: list(values) for name, values in grid.axes.items()},
        seed=grid.seed,
        seeds=grid.seeds,
        repeats=grid.repeats,
        metrics=list(grid.metrics),
        runs=[
            PlannedRun(
                folder=run.folder,
                scenario=run.cell.scenario,
                design=run.cell.design,
                parameters=LargeParameters.of(run.planned.parameters),
                by=run.cell.by,
                at=dict(run.cell.at),
                estimated_s=run.estimated_s,
            )
            for run in plan.runs
        ],
        left_out=list(plan.left_out),
        scenario_files={name: file.digest for name, file in files_of(plan.grid).items()},
        plugin_files={name: plugin.digest for name, plugin in kept_plugins().items()},
    )


def plan_again(stored: RecordedPlan) -> SweepPlan | None:
    """The plan as it was made, without its notes. None if the record does not say what it was."""
    grid = stored.grid
    first = [
        FirstRun(
            Cell(scenario=run.scenario, design=run.design, at=run.at, by=run.by),
            Planned(scenario=run.scenario, design=run.design, parameters=run.as_made),
            run.estimated_s,
        )
        for run in stored.runs[: len(stored.runs) // grid.factor]
    ]
    plan = plan_of(grid, first, left_out=tuple(stored.left_out))
    return plan if [run.folder for run in plan.runs] == [run.folder for run in stored.runs] else None


def files_of(grid: Grid) -> dict[str, ScenarioFile]:
    """The files of a grid's scenarios, by the scenarios' names."""
    files = ((str(name), file_of(scenario_named(str(name)))) for name in grid.axes[SCENARIO])
    return {name: file for name, file in files if file is not None}


def differences(stored: RecordedPlan, wanted: RecordedPlan) -> list[str]:
    """What another plan changes, axis by axis; empty if it is the same."""
    found = []
    for name in dict.fromkeys([*stored.axes, *wanted.axes]):
        before, after = (_listed(plan.axes.get(name)) for plan in (stored, wanted))
        if before != after:
            found.append(f"{name} was {before}, is {after}")
    for name in ("seed", "seeds", "repeats", "zookeeper", "simulated", "full_stack_max"):
        before, after = (str(getattr(plan, name)) for plan in (stored, wanted))
        if before != after:
            found.append(f"{name} was {before}, is {after}")
    others = (name for name, digest in stored.scenario_files.items() if wanted.scenario_files.get(name, "") != digest)
    found += [f"the file of scenario {name} has been changed" for name in others if not found]
    if not found:
        found += _changed_plugins(stored.plugin_files, wanted.plugin_files)
    if not found and [*map(_made, stored.runs)] != [*map(_made, wanted.runs)]:
        found.append("another version of rebalance-lab planned other parameters")
    return found


def _changed_plugins(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The plugins that are not what they were, by their digests, and how."""
    how = {
        name: "is new" if name not in before else "is missing" if name not in now else "has been changed"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    }
    return [f"the plugin {name} {each}" for name, each in how.items()]


def _made(run: PlannedRun) -> tuple[object, ...]:
    """What a run is made from; how long it takes may be estimated otherwise."""
    return run.folder, run.scenario, run.design, run.parameters


def _listed(values: Iterable[Value] | None) -> str:
    return "not given" if values is None else ", ".join(map(str, values))


def status_of(run: SweepRun, record: RecordedRun | None) -> RunStatus:
    """Whether the run is done, by its `run.json` (None: there is none that can be read)."""
    wanted = (run.cell.scenario, run.cell.design, run.planned.parameters.as_json())
    if record is None or (record.scenario, record.design, record.parameters) != wanted:
        return RunStatus.MISSING
    return {"complete": RunStatus.COMPLETE, "failed": RunStatus.FAILED}.get(record.outcome, RunStatus.MISSING)


class SweepState:
    """Which runs of a plan are done; `record` adds one."""

    def __init__(self, plan: SweepPlan, records: Mapping[str, RecordedRun | None]) -> None:
        """`records` are the `run.json` by the runs' folders."""
        self._runs = plan.runs
        self._records = dict(records)
        self._statuses = {run.folder: status_of(run, records.get(run.folder)) for run in plan.runs}

    def record(self, run: SweepRun, record: RecordedRun) -> None:
        self._records[run.folder] = record
        self._statuses[run.folder] = status_of(run, record)

    def having(self, *statuses: RunStatus) -> list[SweepRun]:
        return [run for run in self._runs if self._statuses[run.folder] in statuses]

    @property
    def counted(self) -> dict[str, CountedRun]:
        """The complete runs of which only figures are known, by their folders."""
        records = {run.folder: self._records[run.folder] for run in self.having(RunStatus.COMPLETE)}
        return {
            folder: CountedRun(outcome=record.outcome, figures=record.figures)
            for folder, record in records.items()
            if record is not None and record.figures
        }

    @property
    def failures(self) -> list[tuple[SweepRun, str]]:
        """The failed runs with their reasons."""
        return [(run, self._error(run)) for run in self.having(RunStatus.FAILED)]

    def _error(self, run: SweepRun) -> str:
        record = self._records[run.folder]
        assert record is not None
        return record.error or "no reason was recorded"

    def remaining_s(self, left: Iterable[SweepRun]) -> float:
        """How long these runs will take, by how long the done ones took beside their estimates."""
        done = [(run, self._records[run.folder]) for run in self.having(RunStatus.COMPLETE)]
        measured_s = sum(record.seconds for _, record in done if record is not None)
        estimated_s = sum(run.estimated_s for run, _ in done)
        pace = measured_s / estimated_s if estimated_s else 1.0
        return pace * sum(run.estimated_s for run in left)
