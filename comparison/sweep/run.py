"""Performs the missing runs of a sweep, one after the other, and keeps its folder.

One run at a time: two on one machine would measure each other. Whatever ends the command, each run that had ended by
then is kept, and the next command goes on with the others.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from comparison.interruptible import interrupted_by_signals, run_reacting
from comparison.own_scenarios import own_scenario
from comparison.results.result import read_result
from comparison.run_folder import keep_scenario, provenance, require_room, run_dir_of, unwritable, write_json
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.plugins import load_kept
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.runner import keep_plugins, perform
from comparison.screen.progress import about
from comparison.sweep.state import (
    PLAN_FILE,
    RecordedPlan,
    RecordedRun,
    SweepState,
    differences,
    files_of,
    plan_again,
)
from kernel.errors import ConfigurationError, EnvironmentFault, UserError
from kernel.platform.json_file import DamagedFile, json_if_readable, read_json
from kernel.platform.whole_file import opened_to_append, own_folder, require_text
from kernel.trace.listed_file import RUN_FILE
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from comparison.results.result import Result
    from comparison.screen.progress import RunProgress
    from comparison.sweep.plan import SweepPlan, SweepRun

#: Where the runs of a live sweep have its name, so that equal runs write equal traces.
SIMULATED = "simulated"
_LOCK = ".lock"
#: Runs in a row that could not start, after which the others would not start either.
_UNSTARTED_MAX = 2


@contextlib.contextmanager
def sweep_folder(folder: Path, plan: RecordedPlan) -> Iterator[None]:
    """Hold the folder for one command, and write the plan into it unless it has the same one.

    Raises `EnvironmentFault` for a folder that is in use or cannot be written, `ConfigurationError` for one that
    belongs to another plan, or to no sweep.
    """
    require_text(folder)
    try:
        if (
            folder.exists()
            and not (folder / PLAN_FILE).exists()
            and any(each.name != _LOCK for each in folder.iterdir())
        ):
            raise ConfigurationError(f"{folder} is not empty and has no {PLAN_FILE}. Choose another with --output")
        folder.mkdir(parents=True, exist_ok=True)
        lock = opened_to_append(folder / _LOCK)
    except OSError as error:
        raise unwritable(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EnvironmentFault(
                f"another sweep is using {folder}. Wait until it has ended, or use --output"
            ) from None
        _keep(folder, plan)
        yield


def _keep(folder: Path, plan: RecordedPlan) -> None:
    if not (folder / PLAN_FILE).exists():
        try:
            require_room(folder)
        except OSError as error:
            raise unwritable(folder, error) from error
        for name, file in files_of(plan.grid).items():
            keep_scenario(file.text, folder / kept_as(name))
        keep_plugins(folder)
        write_json(folder / PLAN_FILE, msgspec.to_builtins(plan))
        return
    if changed := differences(read_plan(folder), plan):
        raise ConfigurationError(
            f"{folder} has another plan: {'; '.join(changed)}. Choose another folder with --output, or finish the one "
            f"that was begun: rebalance-lab sweep {folder}"
        )


def read_plan(folder: Path) -> RecordedPlan:
    """The plan of a sweep's folder. Raises `EnvironmentFault` when there is none that can be read."""
    path = folder / PLAN_FILE
    try:
        return read_json(path, RecordedPlan)
    except OSError as error:
        raise EnvironmentFault(
            f"{folder} is no sweep's folder ({PLAN_FILE}: {error.strerror}). Give one that `sweep` made"
        ) from error
    except DamagedFile as error:
        raise _damaged(path, error.why) from error


def _damaged(path: Path, why: str) -> EnvironmentFault:
    return EnvironmentFault(f"{path} is damaged ({why}). Choose another folder with --output")


def planned_before(folder: Path, stored: RecordedPlan) -> SweepPlan:
    """The plan of a folder, for those who make no run: nothing that the folder has kept is loaded.

    Raises `EnvironmentFault` if it is damaged.
    """
    if (plan := plan_again(stored)) is None:
        raise _damaged(folder / PLAN_FILE, "its runs are not those of its grid")
    return plan


def load_kept_files(folder: Path, plan: RecordedPlan) -> None:
    """Make the scenarios, steps and faults known whose files a sweep has kept.

    Raises `EnvironmentFault` if one of the files is not as it was, before any is run.
    """
    plugins = plan.plugin_files
    for name, digest in ({kept_as(each): found for each, found in plan.scenario_files.items()} | plugins).items():
        _require_unchanged(folder / name, digest)
    for name in plugins:
        load_kept(name, folder, plugins)
    for name in plan.scenario_files:
        own_scenario(folder / kept_as(name), plugins)


def _require_unchanged(path: Path, digest: str) -> None:
    remedy = "Restore it, or begin another sweep with --output; --dry-run and --analyse-only do not need it"
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}. {remedy}") from error
    if found != digest:
        raise EnvironmentFault(
            f"{path} has been changed since the sweep began: its SHA-256 begins with {found[:8]}, and in "
            f"{PLAN_FILE} with {digest[:8]}. {remedy}"
        )


def kept_as(scenario: str) -> str:
    """The name of the copy of a scenario's file in a sweep's folder."""
    return f"{scenario}.scenario.toml"


def read_state(folder: Path, plan: SweepPlan) -> SweepState:
    """Which runs of the plan are done."""
    return SweepState(plan, {run.folder: record_in(folder / run.folder) for run in plan.runs})


def record_in(run_dir: Path) -> RecordedRun | None:
    """What a run's `run.json` says; None if there is none that can be read."""
    return json_if_readable(run_dir / RUN_FILE, RecordedRun)


def current_result(path: Path, run_dirs: Sequence[Path]) -> Result | None:
    """The result of an earlier analysis of exactly these runs; None if one was made again since, or there is none."""
    try:
        made_ns = path.stat().st_mtime_ns
        result = read_result(path)
        changed_ns = max((run_dir / RUN_FILE).stat().st_mtime_ns for run_dir in run_dirs)
    except (OSError, DamagedFile):
        return None
    is_current = made_ns >= changed_ns and {run.path for run in result.runs} == set(map(str, run_dirs))
    return result if is_current else None


def discarded(folder: Path, run: SweepRun) -> Path:
    """The run's folder, without what a killed command left of it: a run's files are never mixed with another's."""
    run_dir = own_folder(folder, *Path(run.folder).parts)
    shutil.rmtree(run_dir, ignore_errors=True)
    return run_dir


def request_of(folder: Path, run: SweepRun, zookeeper: str, *, simulated: bool = False) -> RunRequest:
    """What to perform for a run of a sweep in this folder, where the run's folder is made."""
    return RunRequest(
        scenario=scenario_named(run.cell.scenario),
        design=run.cell.design,
        parameters=run.planned.parameters,
        configuration=configuration(run.cell.design, run.planned.parameters),
        zookeeper=zookeeper,
        run=f"{SIMULATED if simulated else folder.name}/{run.folder}",
        run_dir=run_dir_of(folder, run.folder),
        clock=TimeSource.SIMULATED if simulated else TimeSource.MONOTONIC,
    )


class SweepRunner:
    """Performs runs of a sweep in its folder, which the caller holds."""

    def __init__(
        self, folder: Path, state: SweepState, *, command: list[str], zookeeper: str, progress: RunProgress
    ) -> None:
        self._folder = folder
        self._state = state
        self._about = provenance(command)
        self._zookeeper = zookeeper
        self._progress = progress
        self._in_a_row = 0
        #: Runs that could not start, and why.
        self.unstarted: list[tuple[SweepRun, str]] = []

    def perform(self, runs: Sequence[SweepRun]) -> bool:
        """Perform the runs; False after an interrupt. Raises `UserError` when runs cannot start."""
        return run_reacting(self._perform(runs))

    async def _perform(self, runs: Sequence[SweepRun]) -> bool:
        with interrupted_by_signals(self._progress) as interrupted:
            fork_server = await ForkServer.open()
            try:
                for place, run in enumerate(runs):
                    if interrupted.is_set():
                        break
                    await self._run(run, fork_server, interrupted, runs[place + 1 :])
            finally:
                await fork_server.stop()
            return not interrupted.is_set()

    async def _run(
        self, run: SweepRun, fork_server: ForkServer, interrupted: asyncio.Event, left: Sequence[SweepRun]
    ) -> None:
        run_dir = discarded(self._folder, run)
        request = request_of(self._folder, run, self._zookeeper)
        self._progress.started(run.title)
        try:
            outcome = await perform(request, self._about, fork_server, interrupted, self._progress.stage)
        except UserError as error:
            self._could_not_start(run, run_dir, error)
            return
        self._in_a_row = 0
        if interrupted.is_set() and outcome.outcome != "complete":
            # It may have failed because its processes got the signal too.
            shutil.rmtree(run_dir, ignore_errors=True)
        elif (record := record_in(run_dir)) is not None:
            self._state.record(run, record)
        how = outcome.outcome + (f" ({outcome.error})" if outcome.error else "")
        self._progress.finished(how, f"{about(self._state.remaining_s(left))} left" if left else "")

    def _could_not_start(self, run: SweepRun, run_dir: Path, error: UserError) -> None:
        """Go on unless it was not the first in a row. The next command tries it again."""
        shutil.rmtree(run_dir, ignore_errors=True)
        self._in_a_row += 1
        if self._in_a_row >= _UNSTARTED_MAX:
            raise error
        self.unstarted.append((run, str(error)))
        self._progress.finished(f"could not start ({error})")
