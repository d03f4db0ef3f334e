"""Runs in simulated worlds, each in a child of a process that has imported everything, judged without Spark."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from comparison.fuzzing.judging import Judgement, judge_folder
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.judged import finished
from comparison.pipeline.reading import read_tables
from comparison.results.run import Run
from comparison.run_folder import provenance
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest, simulated_run
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.run.runner import RunOutcome
from comparison.simulation.runs import performed
from comparison.simulation.warm_parent import WarmParent
from kernel.trace.words import TimeSource


@dataclass(frozen=True, slots=True)
class Simulated:
    """How a run ended, the figures and verdicts of the pipeline, and what its design promises everywhere."""

    outcome: RunOutcome
    run: Run
    judgement: Judgement

    @property
    def unexpected(self) -> dict[str, str]:
        """{check: outcome and reason} of every verdict that is not as expected."""
        reasons = {verdict.check: f"{verdict.outcome}: {verdict.reason}" for verdict in self.run.verdicts}
        return {check: text for check, text in reasons.items() if not text.startswith("as expected")}


class Simulations:
    """Where tests run scenarios in simulated worlds. Close it."""

    def __init__(self, scenarios: Mapping[str, Scenario]) -> None:
        """`scenarios`: what is run, by its name."""
        self._scenarios = scenarios
        self._loop = asyncio.Runner()
        self._parent = WarmParent(load_processes, self._performed)

    def close(self) -> None:
        self._loop.run(self._parent.stop())
        self._loop.close()

    def run(self, folder: Path, scenario: str, design: str, **parameters: object) -> Simulated:
        """`parameters` are those of the command's options, by the names of `comparison.scenarios.plan.parameters`."""
        (folder / "trace").mkdir(parents=True)
        return self._loop.run(self._parent.do("", folder, scenario, design, parameters))

    def _performed(self, folder: Path, name: str, design: str, given: Mapping[str, object]) -> Simulated:
        scenario = self._scenarios[name]
        parameters = scenario.parameters(given)
        request = RunRequest(
            scenario=scenario,
            design=design,
            parameters=parameters,
            configuration=configuration(design, parameters),
            zookeeper="embedded",
            run=simulated_run(name, design, parameters),
            run_dir=folder,
            clock=TimeSource.SIMULATED,
        )
        outcome = performed(request, provenance(["pytest"]), lambda _: None)
        (run,) = find_runs([folder])
        (part,) = parts_of([run], 1)
        found, read = read_tables([run], part.chunks)
        measured, _ = measure(run, found.get(0, {}))
        return Simulated(outcome, finished(run, measured, read), judge_folder(folder))


def load_processes(_: str = "") -> None:
    """Load what each run needs, so that no child has to."""
    for kind in ("broker", "member", "bystander", "copier"):
        importlib.import_module(f"comparison.scenarios.processes.{kind}_process")
