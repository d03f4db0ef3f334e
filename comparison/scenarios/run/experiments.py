"""`run` and `compare`: several runs one after the other, then one analysis of them all.

Ctrl-C or SIGTERM kills the processes of the current run, keeps its traces and skips the analysis, so that the command
ends within seconds. A second signal aborts at once. Either way no process is left behind.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from comparison.interruptible import interrupted_by_signals, run_reacting
from comparison.run_folder import new_bundle, provenance, run_dir_of, write_json
from comparison.scenarios.plan.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.parameters import SEED_MAX, Parameters
from comparison.scenarios.plan.request import RunRequest, simulated_run
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.runner import RunOutcome, live
from kernel.designs import EAGER
from kernel.errors import UserError
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.run.runner import Perform
    from comparison.screen.progress import RunProgress


#: The most session timeouts that one run waits for: a takeover, a return, and some backoff.
_SESSIONS_A_RUN = 4
#: Seconds for each restarted member beyond the usual number.
_A_LOSS_S = 6
#: Seconds for starting Spark, once, and for analysing each run.
_SPARK_S, _ANALYSIS_S = 20, 2
#: Seconds of a simulated run, for the usual number of members.
_SIMULATED_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One run of a plan."""

    scenario: str
    design: str
    parameters: Parameters
    of_several: bool = False  #: one of several repeats, which differ by their seeds

    @property
    def title(self) -> str:
        seed = f" · seed {self.parameters.seed}" if self.of_several else ""
        return f"{self.scenario} · {self.design}{seed}"

    @property
    def folder(self) -> tuple[str, ...]:
        """Its folder in the command's folder."""
        seed = (f"seed-{self.parameters.seed}",) if self.of_several else ()
        return (self.scenario, self.design, *seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The result of a plan: the folders of the runs that were started, and whether it was interrupted."""

    bundle: Path
    run_dirs: tuple[Path, ...]
    outcomes: tuple[RunOutcome, ...]
    interrupted: bool


def plan(
    scenarios: Sequence[str], designs: Sequence[str], given: Mapping[str, object], repeats: int = 1
) -> list[Planned]:
    """Every scenario in every design, in that order, except those in `left_out`.

    Each repeat has the next seed, and covers all designs before the next repeat: changes of the machine's load then
    affect all designs alike.

    Raises `ConfigurationError` for an unknown name, an invalid parameter or setting, and runs that cannot work.
    """
    planned, cases = [], []
    without = {(each.scenario, each.design) for each in left_out(scenarios, designs)}
    for name in dict.fromkeys(scenarios):
        scenario = scenario_named(name)
        parameters = scenario.parameters(given)
        for repeat, design in itertools.product(range(repeats), designs):
            if (name, design) in without:
                continue
            limited = parameters.overridden(seed=(parameters.seed + repeat) % (SEED_MAX + 1))
            if given.get("time_limit_s") is None:
                longer_s = _Longer.of(scenario, parameters, design).most
                limited = limited.overridden(time_limit_s=parameters.time_limit_s + longer_s)
            cases.append(Case(scenario, design, limited, configuration(design, limited)))
            planned.append(Planned(scenario=name, design=design, parameters=limited, of_several=repeats > 1))
    require_feasible(*cases)
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A skipped run."""

    scenario: str
    design: str
    same_run_as: str | None  #: another scenario of the plan; None: not applicable to the design
    reason: str


def left_out(scenarios: Sequence[str], designs: Sequence[str]) -> list[LeftOut]:
    """The combinations of scenario and design that are skipped, and why."""
    found = []
    for name in dict.fromkeys(scenarios):
        scenario = scenario_named(name)
        for design in designs:
            same = scenario.same_run_as.get(design)
            if same in scenarios:
                reason = f"same run as {same}"
                found.append(LeftOut(scenario=name, design=design, same_run_as=same, reason=reason))
            elif design in scenario.not_applicable:
                reason = scenario.not_applicable[design]
                found.append(LeftOut(scenario=name, design=design, same_run_as=None, reason=reason))
    return found


@dataclass(frozen=True, slots=True)
class _Longer:
    """Additional seconds of a run whose timers are longer, or sizes larger, than the scenario's defaults."""

    a_session: float
    delays: float
    others: float
    unnoticed: float  #: negative in designs that notice new partitions sooner than the scenario expects

    @classmethod
    def of(cls, scenario: Scenario, parameters: Parameters, design: str) -> _Longer:
        usual, made = configuration(design, Parameters()), configuration(design, parameters)
        losses = losses_in(scenario, parameters)
        slow = any(step.outlasts_polls for step in scenario.steps)
        slow_ms = max(0, made.max_poll_ms - usual.max_poll_ms) if slow else 0
        growths = sum(step.waits_for_metadata for step in scenario.steps)
        expected_ms = configuration(EAGER, scenario.parameters({})).metadata_age_ms
        return cls(
            a_session=max(0, made.session_ms - usual.session_ms) / 1000,
            delays=losses * max(0, made.delay_ms - usual.delay_ms) / 1000,
            others=slow_ms / 1000 + _A_LOSS_S * max(0, losses - losses_in(scenario, scenario.defaults)),
            unnoticed=growths * (made.metadata_age_ms - expected_ms) / 1000,
        )

    @property
    def most(self) -> float:
        return _SESSIONS_A_RUN * self.a_session + self.delays + self.others + max(0.0, self.unnoticed)


def losses_in(scenario: Scenario, parameters: Parameters) -> int:
    """How many times a run loses a member, for a while or for good."""
    return sum(step.losses(parameters.members) for step in scenario.steps)


def estimated_s(planned: Sequence[Planned], *, simulated: bool = False) -> int:
    """Estimated duration of a plan on two cores: the runs with their timers, and the analysis."""
    runs_s = sum(estimated_run_s(each, simulated=simulated) for each in planned)
    return round(runs_s + estimated_analysis_s(len(planned)))


def estimated_run_s(planned: Planned, *, simulated: bool = False) -> float:
    """Estimated duration of one run, without its analysis."""
    if simulated:
        return _SIMULATED_S
    scenario = scenario_named(planned.scenario)
    longer = _Longer.of(scenario, planned.parameters, planned.design)
    delay_s = configuration(planned.design, Parameters()).delay_ms / 1000
    waits_s = delay_s * losses_in(scenario, planned.parameters) + longer.delays
    others_s = longer.others + longer.unnoticed + (longer.a_session if waits_s == 0 else 0)
    return scenario.budget_s + waits_s + others_s


def estimated_analysis_s(runs: int) -> float:
    """Estimated duration of the analysis of so many runs."""
    return _SPARK_S + _ANALYSIS_S * runs if runs else 0


def expanded(names: Sequence[str]) -> list[str]:
    """The named scenarios, the catalogue's first and in its order, with their variants.

    `split-brain` includes split-brain-ensemble.
    """
    asked = dict.fromkeys(scenario_named(name).name for name in names)
    if "split-brain" in asked:
        asked["split-brain-ensemble"] = None
    asked |= {each.name: None for each in CATALOGUE.values() if each.variant_of in asked}
    return [*(name for name in CATALOGUE if name in asked), *(name for name in asked if name not in CATALOGUE)]


class Experiments:
    """Performs a plan in a new folder under `root`."""

    def __init__(  # noqa: PLR0913  # what the command line gives, each by its name
        self,
        *,
        root: Path,
        name: str,
        command: list[str],
        zookeeper: str,
        zookeeper_logs: Sequence[Path] = (),
        progress: RunProgress,
        without: Sequence[LeftOut] = (),
        warnings: Sequence[str] = (),
        simulate: Perform | None = None,
    ) -> None:
        """`simulate` performs the runs, instead of processes and a real ZooKeeper."""
        self._simulate = simulate
        self._without = without
        self._warnings = tuple(warnings)
        self.bundle = new_bundle(root, name)
        self._about = provenance(command)
        self._zookeeper = zookeeper
        self._zookeeper_logs = tuple(zookeeper_logs)
        self._progress = progress
        self._run_dirs: list[Path] = []
        self._outcomes: list[RunOutcome] = []

    def perform(self, planned: Sequence[Planned]) -> Finished:
        """Perform one run after the other, until all are done or an interrupt."""
        return run_reacting(self._with_a_fork_server(planned))

    async def _with_a_fork_server(self, planned: Sequence[Planned]) -> Finished:
        with interrupted_by_signals(self._progress) as interrupted:
            if self._simulate is not None:
                return await self.perform_with(planned, self._simulate, interrupted)
            fork_server = await ForkServer.open()
            try:
                return await self.perform_with(planned, live(fork_server), interrupted)
            finally:
                await fork_server.stop()

    async def perform_with(self, planned: Sequence[Planned], perform: Perform, interrupted: asyncio.Event) -> Finished:
        """As `perform`, by what other plans use as well, until `interrupted` is set."""
        runs = [{"scenario": each.scenario, "design": each.design, "seed": each.parameters.seed} for each in planned]
        left = [asdict(each) for each in self._without]
        write_json(self.bundle / "command.json", {**self._about, "runs": runs, "left_out": left})
        for each in planned:
            if interrupted.is_set():
                break
            await self._run(each, perform, interrupted)
        return Finished(
            bundle=self.bundle,
            run_dirs=tuple(self._run_dirs),
            outcomes=tuple(self._outcomes),
            interrupted=interrupted.is_set(),
        )

    async def _run(self, each: Planned, perform: Perform, interrupted: asyncio.Event) -> None:
        request = RunRequest(
            scenario=scenario_named(each.scenario),
            design=each.design,
            parameters=each.parameters,
            configuration=configuration(each.design, each.parameters),
            zookeeper=self._zookeeper,
            zookeeper_logs=self._zookeeper_logs,
            run="/".join((self.bundle.name, *each.folder))
            if self._simulate is None
            else simulated_run(each.scenario, each.design, each.parameters),
            run_dir=run_dir_of(self.bundle, *each.folder),
            warnings=self._warnings,
            clock=TimeSource.MONOTONIC if self._simulate is None else TimeSource.SIMULATED,
        )
        self._run_dirs.append(request.run_dir)
        self._progress.started(each.title)
        try:
            outcome = await perform(request, self._about, interrupted, self._progress.stage)
        except UserError as error:
            if not self._outcomes:
                raise
            # The first run worked, so report this one as failed and go on.
            outcome = RunOutcome(outcome="failed", error=str(error), seconds=0.0, baseline={})
        self._progress.finished(outcome.outcome + (f" ({outcome.error})" if outcome.error else ""))
        self._outcomes.append(outcome)
