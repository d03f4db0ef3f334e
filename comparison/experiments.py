"""Several runs one after the other, then one analysis of them all: what `run` and `compare` do.

The first Ctrl-C stops the run that is under way and analyses what was measured; the second one ends everything
at once. Either way no process stays behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.scenarios.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.configuration import check, configuration
from comparison.scenarios.run_folder import new_bundle, provenance, run_dir_of, write_json
from comparison.scenarios.runner import RunOutcome, perform
from comparison.scenarios.testbed import RunRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from comparison.progress import RunProgress
    from comparison.scenarios.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One run of a plan."""

    scenario: str
    design: str
    parameters: Parameters

    @property
    def title(self) -> str:
        return f"{self.scenario} · {self.design}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What came of a plan: the folders of the runs that were begun, and whether it was cut short."""

    bundle: Path
    run_dirs: tuple[Path, ...]
    outcomes: tuple[RunOutcome, ...]
    interrupted: bool


def plan(scenarios: Sequence[str], designs: Sequence[str], given: Mapping[str, object]) -> list[Planned]:
    """Every scenario under every design, in that order, without runs that would be the same as another one.

    Raises `ConfigurationError` for an unknown name, or a parameter or setting that makes no sense.
    """
    planned = []
    for name in dict.fromkeys(scenarios):
        scenario = scenario_named(name)
        parameters = scenario.defaults.overridden(**given)
        check(parameters.settings)
        for design in designs:
            same = scenario.same_run_as.get(design)
            if same is not None and same in scenarios:
                continue
            configuration(design, parameters)
            planned.append(Planned(scenario=name, design=design, parameters=parameters))
    return planned


def expanded(names: Sequence[str]) -> list[str]:
    """`split-brain` means both its forms, in the catalogue's order."""
    asked = {scenario_named(name).name for name in names}
    if "split-brain" in asked:
        asked.add("split-brain-ensemble")
    return [name for name in CATALOGUE if name in asked]


def perform_all(
    planned: Sequence[Planned], *, root: Path, name: str, command: list[str], zookeeper: str, progress: RunProgress
) -> Finished:
    """Perform a plan in a new folder under `root`."""
    bundle = new_bundle(root, name)
    about = provenance(command)
    runs = [{"scenario": each.scenario, "design": each.design} for each in planned]
    write_json(bundle / "command.json", {**about, "runs": runs})
    return asyncio.run(_perform_all(planned, bundle, about, zookeeper, progress))


async def _perform_all(
    planned: Sequence[Planned], bundle: Path, about: Mapping[str, object], zookeeper: str, progress: RunProgress
) -> Finished:
    interrupted = asyncio.Event()
    _listen(interrupted, progress)
    run_dirs: list[Path] = []
    outcomes: list[RunOutcome] = []
    for each in planned:
        if interrupted.is_set():
            break
        request = RunRequest(
            scenario=scenario_named(each.scenario),
            design=each.design,
            parameters=each.parameters,
            configuration=configuration(each.design, each.parameters),
            zookeeper=zookeeper,
            run=f"{bundle.name}/{each.scenario}/{each.design}",
            run_dir=run_dir_of(bundle, each.scenario, each.design),
        )
        run_dirs.append(request.run_dir)
        progress.started(each.title)
        outcome = await perform(request, about, interrupted, progress.stage)
        progress.finished(outcome.outcome + (f" ({outcome.error})" if outcome.error else ""))
        outcomes.append(outcome)
    return Finished(bundle=bundle, run_dirs=tuple(run_dirs), outcomes=tuple(outcomes), interrupted=interrupted.is_set())


def _listen(interrupted: asyncio.Event, progress: RunProgress) -> None:
    """The first signal ends the run in order; the second one ends us, and with us, by their own nets, all children."""

    def told() -> None:
        if interrupted.is_set():
            os._exit(130)
        interrupted.set()
        progress.say("interrupted: stopping, then reporting what was measured (again to abort)")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
