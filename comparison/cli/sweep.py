"""`sweep`: many runs over a grid, resumable, then one analysis of them all."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec
from rich.console import Console

import comparison
import coordinator
import zkconsumer
from comparison.cli.analysis import analysed, session_of_command
from comparison.cli.documents import print_document
from comparison.cli.experiments import EMBEDDED, MODELLED, planned_run, require_modelled
from comparison.cli.foreign_zookeeper import possible_on, require_zookeeper
from comparison.cli.options import dry_run_option, form_option, plugin_option, quiet_option, refuse_beside
from comparison.cli.plans import LeftOut, RunsPlan, show_plan
from comparison.cli.spark_options import chosen_spark, cluster_options
from comparison.exits import Exit
from comparison.interrupts import last_words
from comparison.near_paths import RUNS, is_toml, path_complaint
from comparison.pipeline.published import TABLES
from comparison.pipeline.spark.master import parse_master
from comparison.report.sweep.page import sweep_page
from comparison.report.sweep.terminal import render_sweep
from comparison.results.result import RESULT
from comparison.results.sweep import SWEEP_DATA, is_of_runs
from comparison.run_folder import write_json
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.descriptors import descriptors_needed
from comparison.scenarios.plan.doubts import doubts
from comparison.scenarios.run.experiments import estimated_analysis_s
from comparison.screen.counted import counted
from comparison.screen.printable import printable_all
from comparison.screen.progress import RunProgress, about
from comparison.sweep.data import sweep_data
from comparison.sweep.grid import COUNTS, SCENARIO, Grid, axes_from, axis, complete, count
from comparison.sweep.grid_file import metrics_named, scenario_or_grid
from comparison.sweep.large import FULL_STACK_MEMBERS_MAX
from comparison.sweep.plan import planned_sweep
from comparison.sweep.run import (
    SweepRunner,
    current_result,
    load_kept_files,
    planned_before,
    read_plan,
    read_state,
    sweep_folder,
)
from comparison.sweep.state import PLAN_FILE, RunStatus, recorded
from comparison.sweep.tables import write_sweep_tables
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.requirements import require_machine
from kernel.platform.whole_file import whole_file
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.cli.spark_options import SparkChoice
    from comparison.pipeline.spark.connect import ConnectSession
    from comparison.pipeline.spark.session import StartingSession
    from comparison.results.result import Result
    from comparison.results.run import Run
    from comparison.results.sweep import CountedRun, SweepData
    from comparison.sweep.plan import SweepPlan, SweepRun
    from comparison.sweep.state import RecordedPlan, SweepState

PAGE = "sweep.html"
#: Left-out combinations and failures that are listed; all are in the plan and in sweep.json.
_LISTED_MAX = 10


@click.command(
    epilog="""\b
Examples:
  rebalance-lab sweep --grid scenario=join --grid members=2..16*2 --seeds 3
  rebalance-lab sweep docs/sweeps/retries-and-backoff.toml --dry-run
  rebalance-lab sweep grid.toml --grid design=all --metric converge_ms \\
      -o runs/my-sweep
  rebalance-lab sweep my-scenario.toml --grid members=2..8
      your own scenario (docs/own-scenarios.md)
  rebalance-lab sweep --grid scenario=join --grid members=2..64*2 \\
      --grid design=all --seeds 5 --simulated
  rebalance-lab sweep runs/my-sweep  go on with it after an interrupt
  rebalance-lab sweep runs/my-sweep --rerun-failed

\b
Axes are options of `run` (scenario, design, preset, members, partitions,
topics, streams, rate, brokers, session-timeout, time-limit) and Kafka
settings. docs/sweeps.md has the file's format."""
)
@click.argument("source", metavar="[FILE|FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--grid",
    "axes",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Values of one axis, or a range: 2..8, 2..8+3, 2..16*2. May be repeated; replaces the file's axis.",
)
@click.option("--seed", type=int, help="First seed.  [default: 1]")
@click.option("--seeds", type=int, help="Run each combination with this many seeds: SEED, SEED+1, ...  [default: 1]")
@click.option("--repeats", type=int, help="Run each combination this many times with each seed.  [default: 1]")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Metric to show first. May be repeated.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder of the sweep.  [default: runs/sweep-NAME]"
)
@click.option(
    "--zookeeper",
    help="embedded, docker, docker:3, or HOST:PORT,... of a running one.  [default: embedded]",
    metavar="TARGET",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="In virtual time, on a modelled network and a modelled ZooKeeper, one Spark task for each run.",
)
@click.option(
    "--full-stack-members",
    "full_stack_max",
    type=click.IntRange(1, FULL_STACK_MEMBERS_MAX),
    metavar="N",
    help="With --simulated: compute groups of more than N members by the deciding modules alone, with counted "
    f"messages.  [default: {FULL_STACK_MEMBERS_MAX}]",
)
@click.option("--rerun-failed", is_flag=True, help="Repeat the runs that failed.")
@click.option(
    "--analyse-only", "--analyze-only", "only_analyse", is_flag=True, help="Start no runs; analyse the finished ones."
)
@dry_run_option
@quiet_option
@plugin_option
@form_option
@cluster_options
def sweep(source: Path | None, **options: Any) -> int:
    """Run every combination of a grid, and fit how figures grow.

    FILE is a grid in TOML, or a scenario. The same command again, or its FOLDER, goes on where a sweep was interrupted.
    """
    if options["only_analyse"]:
        refuse_beside("--analyse-only", "rerun_failed")
    spark = chosen_spark(options)
    plan, warnings, record, folder = _requested(source, options)
    for text in (*warnings, *plan.notes):
        click.echo(f"note: {text}", err=True)
    if options["dry_run"]:
        show_plan(_shown(plan, record, folder, spark), options["form"])
        return Exit.AS_EXPECTED
    if not options["quiet"]:
        _announce(plan, record, folder, spark)
    require_zookeeper(record.zookeeper, [run.planned for run in plan.runs])
    if options["only_analyse"]:
        read_plan(folder)  # or there is nothing to analyse, and no reason for a folder
    with sweep_folder(folder, record):
        return _made(folder, plan, record, spark, options)


class _How(NamedTuple):
    """Live or simulated, and up to how many members everything is."""

    simulated: bool
    full_stack_max: int


class _Request(NamedTuple):
    """What the user asked for."""

    plan: SweepPlan
    warnings: list[str]
    record: RecordedPlan
    folder: Path


def _requested(source: Path | None, options: dict[str, Any]) -> _Request:
    metrics = metrics_named([part for given in options["metrics"] for part in given.split(",") if part])
    counts = {name: None if options[name] is None else count(name, options[name]) for name in COUNTS}
    command = ["rebalance-lab", *sys.argv[1:]]
    if source is not None and not source.exists():
        remedy = "Give a file with a grid or a scenario, or a sweep's folder"
        raise EnvironmentFault(path_complaint(source, remedy, _is_a_source))
    if source is not None and source.is_dir():
        fixed = {"--grid": options["axes"] or None, "--output": options["output"], "--zookeeper": options["zookeeper"]}
        fixed |= {"--simulated": options["simulated"] or None, "--full-stack-members": options["full_stack_max"]}
        fixed |= {f"--{name}": number for name, number in counts.items()}
        given = [name for name, value in fixed.items() if value is not None]
        if given:
            raise click.UsageError(f"{' and '.join(given)} cannot be combined with a sweep's folder: its plan is fixed")
        stored = read_plan(source)
        stored = msgspec.structs.replace(stored, metrics=list(metrics) or stored.metrics)
        if options["dry_run"] or options["only_analyse"]:
            return _Request(planned_before(source, stored), [], stored, source)
        load_kept_files(source, stored)
        how = _How(stored.simulated, stored.full_stack_max)
        plan, warnings = _planned(stored.grid, how)
        record = _recorded(plan, stored.command, stored.zookeeper, how)
        return _Request(plan, warnings, record, source)
    zookeeper, simulated = options["zookeeper"] or EMBEDDED, options["simulated"]
    if options["full_stack_max"] is not None and not simulated:
        raise click.UsageError("--full-stack-members has no effect on real processes. Add --simulated, or leave it out")
    how = _How(simulated, options["full_stack_max"] or FULL_STACK_MEMBERS_MAX)
    grid = Grid(axes={}) if source is None else scenario_or_grid(source, simulated=simulated)
    grid = grid.overridden(axes_from(options["axes"], simulated=simulated), **counts)
    require_modelled(zookeeper, simulated=simulated)
    complete(grid)
    names = possible_on(zookeeper, [str(name) for name in grid.axes[SCENARIO]])
    grid = replace(grid, axes={**grid.axes, SCENARIO: axis(SCENARIO, names)}, metrics=metrics or grid.metrics)
    plan, warnings = _planned(grid, how)
    record = _recorded(plan, command, zookeeper, how)
    return _Request(plan, warnings, record, options["output"] or RUNS / f"sweep-{_name(source, record)}")


def _is_a_source(path: Path) -> bool:
    return is_toml(path) or (path / PLAN_FILE).exists()


def _recorded(plan: SweepPlan, command: list[str], zookeeper: str, how: _How) -> RecordedPlan:
    return recorded(plan, command, zookeeper, simulated=how.simulated, full_stack_max=how.full_stack_max)


def _planned(grid: Grid, how: _How) -> tuple[SweepPlan, list[str]]:
    """The plan, and what its settings are doubted for: once, not for every cell."""
    plan = planned_sweep(grid, simulated=how.simulated, full_stack_max=how.full_stack_max)
    planned = [run.planned for run in plan.runs]
    found = dict.fromkeys(
        line
        for each in planned
        for line in doubts([(each.scenario, each.design, each.parameters)], each.parameters.settings)
    )
    several = f" (and {len(found) - 1} similar)" if len(found) > 1 else ""
    return plan, [f"{line}{several}" for line in list(found)[:1]]


def _name(source: Path | None, record: RecordedPlan) -> str:
    """The sweep's name: the file's, or the scenarios with a digest of the grid. The same command gives the same."""
    if source is not None:
        return source.stem
    where = f"{MODELLED} {record.full_stack_max}" if record.simulated else record.zookeeper
    exact = msgspec.json.encode([record.axes, record.seed, record.seeds, record.repeats, where])
    scenarios = "-".join(map(str, record.axes[SCENARIO]))
    return f"{scenarios[:40]}-{hashlib.sha256(exact).hexdigest()[:8]}"


def _shown(plan: SweepPlan, record: RecordedPlan, folder: Path, spark: SparkChoice) -> RunsPlan:
    return RunsPlan(
        summary=_summary(plan),
        seconds=_estimated_s(plan, record, spark),
        seed=plan.grid.seed,
        folder=str(folder),
        zookeeper=MODELLED if record.simulated else record.zookeeper,
        clock=TimeSource.SIMULATED if record.simulated else TimeSource.MONOTONIC,
        runs=[planned_run(run.planned, run.estimated_s, run.folder) for run in plan.runs],
        left_out=[LeftOut(title=title, reason=reason) for title, reason in plan.left_out],
    )


def _announce(plan: SweepPlan, record: RecordedPlan, folder: Path, spark: SparkChoice) -> None:
    for title, reason in plan.left_out[:_LISTED_MAX]:
        click.echo(f"left out: {title}: {reason}", err=True)
    if len(plan.left_out) > _LISTED_MAX:
        click.echo(f"left out: {len(plan.left_out) - _LISTED_MAX} more (--dry-run lists them all)", err=True)
    click.echo(f"{_summary(plan)}, {about(_estimated_s(plan, record, spark))}, in {folder}", err=True)


def _summary(plan: SweepPlan) -> str:
    grid, cells = plan.grid, len(plan.cells)
    seeds = f"seed {grid.seed}" if grid.seeds == 1 else f"seeds {grid.seed} to {grid.seed + grid.seeds - 1}"
    often = f", {grid.repeats} times each" if grid.repeats > 1 else ""
    return f"{counted(len(plan.runs), 'run')} of {counted(cells, 'combination')} with {seeds}{often}"


def _estimated_s(plan: SweepPlan, record: RecordedPlan, spark: SparkChoice) -> int:
    return round(_runs_s(plan.runs, record, spark) + estimated_analysis_s(len(plan.runs)))


def _runs_s(runs: Sequence[SweepRun], record: RecordedPlan, spark: SparkChoice) -> float:
    """Estimated duration of these runs; simulated ones share the cores."""
    at_a_time = (parse_master(spark.master).cores or os.cpu_count() or 1) if record.simulated else 1
    return sum(run.estimated_s for run in runs) / at_a_time


def _made(given: Path, plan: SweepPlan, record: RecordedPlan, spark: SparkChoice, options: dict[str, Any]) -> int:
    """Make what is missing in the folder, analyse what is there and show it; the exit code."""
    folder = given.resolve()
    state = read_state(folder, plan)
    wanted = [RunStatus.MISSING, *([RunStatus.FAILED] if options["rerun_failed"] else [])]
    to_do = [] if options["only_analyse"] else state.having(*wanted)
    run_whole = [run for run in to_do if is_of_runs(run.cell.by)]  # others open nothing
    require_machine(
        *(descriptors_needed(scenario_named(run.cell.scenario), run.planned.parameters) for run in run_whole)
    )
    going_on = f"interrupted; to go on: rebalance-lab sweep {shlex.quote(str(given))}"
    analysing = f"interrupted; to analyse: rebalance-lab sweep {shlex.quote(str(folder))} --analyse-only"
    words = [going_on]
    # Executors on other hosts get what a run is made of.
    shipped = (comparison, coordinator, zkconsumer)
    session = session_of_command(folder, spark, shipped) if record.simulated and to_do else nullcontext()
    with RunProgress(len(plan.runs), quiet=options["quiet"], done=len(plan.runs) - len(to_do)) as progress:
        if to_do and len(to_do) < len(plan.runs):
            left_s = _runs_s(to_do, record, spark) if record.simulated else state.remaining_s(to_do)
            done = f"{len(plan.runs) - len(to_do)} of {len(plan.runs)} runs done before"
            progress.say(f"{done}; {about(left_s)} left, then the analysis")
        if not to_do and not options["only_analyse"]:
            progress.say("all runs are done")
        try:
            with last_words(lambda: progress.say(words[-1])), session as started:
                unstarted = _performed(folder, plan, record, state, to_do, started, progress)
                ended = state.having(RunStatus.COMPLETE, RunStatus.FAILED)
                if not ended:
                    raise ConfigurationError(f"no run is done in {folder}. Leave out --analyse-only")
                words.append(analysing)
                failures = [*state.failures, *unstarted]
                run_dirs = [folder / run.folder for run in ended if is_of_runs(run.cell.by)]
                result = None if options["only_analyse"] else current_result(folder / RESULT, run_dirs)
                if result is None and run_dirs:
                    progress.say(f"analysing {counted(len(run_dirs), 'run')} on Spark")
                    result = analysed(
                        run_dirs, folder, spark=spark, session=started, progress=progress.stage, report=False
                    ).result
                data = _put_together(folder, plan, record, state, result, failures)
        except KeyboardInterrupt:
            progress.say(words[-1])
            return Exit.INTERRUPTED
    _show(data, options["form"])
    _list_failures(failures, folder)
    if unmeasured := [name for name in plan.grid.metrics if name not in data.metrics]:
        click.echo(f"note: {', '.join(unmeasured)}: not measured in any run", err=True)
    if not options["quiet"]:
        click.echo(
            f"results in {folder}: {PAGE}, {SWEEP_DATA}, {TABLES}/cells.parquet, {TABLES}/exponents.parquet", err=True
        )
    return Exit.UNKNOWN if len(state.having(RunStatus.COMPLETE)) < len(plan.runs) else Exit.AS_EXPECTED


def _put_together(
    folder: Path,
    plan: SweepPlan,
    record: RecordedPlan,
    state: SweepState,
    result: Result | None,
    failures: Sequence[tuple[SweepRun, str]],
) -> SweepData:
    """Store the data set in the folder."""
    runs = [] if result is None else result.runs
    results: dict[str, Run | CountedRun] = {Path(run.path).relative_to(folder).as_posix(): run for run in runs}
    results |= state.counted
    data = sweep_data(plan, results, failures, name=folder.name, command=record.command, simulated=record.simulated)
    write_sweep_tables(folder, data)
    write_json(folder / SWEEP_DATA, data)
    with whole_file(folder / PAGE) as page:
        page.write_text(sweep_page(printable_all(data)), encoding="utf-8")
    return data


def _show(data: SweepData, form: str) -> None:
    if form == "json":
        print_document(data)
    else:
        render_sweep(printable_all(data), Console())


def _performed(  # what a command has of a sweep
    folder: Path,
    plan: SweepPlan,
    record: RecordedPlan,
    state: SweepState,
    runs: Sequence[SweepRun],
    session: StartingSession | ConnectSession | None,
    progress: RunProgress,
) -> list[tuple[SweepRun, str]]:
    """Perform the runs; those that could not start, and why. Raises KeyboardInterrupt."""
    if not runs:
        return []
    if session is None:
        runner = SweepRunner(folder, state, command=record.command, zookeeper=record.zookeeper, progress=progress)
        if not runner.perform(runs):
            raise KeyboardInterrupt
        return runner.unstarted
    # Imported late, with brokers and members: few sweeps need it.
    from comparison.sweep.simulated import SimulatedSweepRunner

    simulated = SimulatedSweepRunner(folder, plan, state, record.command)
    return simulated.perform(runs, session.session(), progress)


def _list_failures(failures: Sequence[tuple[SweepRun, str]], folder: Path) -> None:
    for run, reason in failures[:_LISTED_MAX]:
        click.echo(f"failed: {run.title}: {reason}", err=True)
    if len(failures) > _LISTED_MAX:
        click.echo(f"failed: {len(failures) - _LISTED_MAX} more", err=True)
    if failures:
        click.echo(f"to make them again: rebalance-lab sweep {shlex.quote(str(folder))} --rerun-failed", err=True)
