"""A schedule: the steps that were drawn, as a scenario that can be run, and in words."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.applicability import why_not
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.fields import default_of
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.membership_vocabulary import CopyWithZombie
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step_names import name_of
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import Heal, Hold, Inject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from comparison.scenarios.plan.step import Step
    from kernel.trace.words import TimeSource

SESSION_MS = 2000
#: Timers short enough for a schedule to last seconds, and a 0.8 consumer that does not give up on the way.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "max.poll.interval.ms": "4000",
        "group.server.rebalance.timeout.ms": "4000",
        "metadata.max.age.ms": "1000",
        "rebalance.max.retries": "12",
        "rebalance.listener.in.attempt": "true",
    }
)
#: What all schedules share.
GROUP = Parameters(
    members=3, partitions=3, topics=2, rate=60, brokers=2, session_timeout_ms=SESSION_MS, time_limit_s=120.0
)
#: What differs in simulated runs, in which every message costs processor time: fewer records, fewer partitions of the
#: group's offsets to create, and fetches of the 0.8 consumer that wait as long as those of later ones.
SIMULATED_GROUP = replace(GROUP, rate=9)
SIMULATED_SETTINGS: Mapping[str, str] = MappingProxyType(
    {**SETTINGS, "offsets.topic.num.partitions": "4", "fetch.wait.max.ms": "500"}
)
#: With them, the zookeeper design promises what its original did not.
FIXES: Mapping[str, str] = MappingProxyType(
    {
        "fix.claim.before.offsets": "true",
        "fix.checked.release": "true",
        "fix.checked.claim": "true",
        "fix.commit.fence": "epoch",
        "fix.sync.before.reads": "true",
    }
)
_PROMISED_BY_FIXES = ("no stale write", "no offset moved back")
_PROMISED_TO_COPIERS = ("fenced by epoch",)
#: Targets that leave an ensemble other than they found it.
_OF_SERVERS = frozenset({TargetKind.SERVER, TargetKind.SERVERS, TargetKind.ENSEMBLE, TargetKind.NETWORK})

Steps = tuple["Step", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What was drawn as number `number` from a seed, or what is left of it."""

    seed: int
    number: int
    design: str
    steps: Steps
    run_seed: int = 0  #: of the run's own choices: who is the owner, how long a phase is; and of a simulated world
    simulated: bool = False
    links: str = DEFAULT  #: of a simulated world; see `comparison.scenarios.plan.links`
    fixed: bool = False  #: with FIXES

    @property
    def title(self) -> str:
        return f"{self.number} {self.design}" + (f" ({self.world})" if self.world else "")

    @property
    def breaks_servers(self) -> bool:
        """Whether it needs an ensemble of its own."""
        return any(
            step.needs_ensemble or (isinstance(step, Inject) and kind_of(step.target) in _OF_SERVERS)
            for step in self.steps
        )

    def with_steps(self, steps: Steps) -> Schedule:
        return replace(self, steps=steps)

    @property
    def name(self) -> str:
        """The scenario's name, in its runs as in its file: phases are drawn by it. No check asks for it."""
        return f"fuzz-{self.number}-{self.design}"

    def scenario(self) -> Scenario:
        settings = {**(SIMULATED_SETTINGS if self.simulated else SETTINGS), **(FIXES if self.fixed else {})}
        copies = any(isinstance(step, CopyWithZombie) for step in self.steps)
        return Scenario(
            name=self.name,
            symptom=f"Schedule {self.number} of seed {self.seed}, drawn by the fuzzer for {self.design}.",
            look_for=("only safety is judged: what the design promises under all circumstances",),
            steps=self.steps,
            only_promises=True,
            checks=(*(_PROMISED_BY_FIXES if self.fixed else ()), *(_PROMISED_TO_COPIERS if copies else ())),
            defaults=self.parameters(),
            settings={name: value for name, value in settings.items() if not why_not(self.design, name, value)},
            budget_s=20,
            zookeeper_servers=3,
            members_min=GROUP.members,
            topics_min=GROUP.topics,
            brokers_min=GROUP.brokers,
        )

    def parameters(self) -> Parameters:
        return replace(SIMULATED_GROUP if self.simulated else GROUP, seed=self.run_seed)

    @property
    def world(self) -> str:
        """What else was drawn for a simulated run, in words: '' if nothing was."""
        links = self.links if self.links != DEFAULT else ""
        return ", ".join(filter(None, (links, "with fixes" if self.fixed else "")))

    def in_words(self) -> str:
        return " · ".join(map(in_words, self.steps))


def request_of(schedule: Schedule, run_dir: Path, *, run: str, clock: TimeSource) -> RunRequest:
    """The run of a schedule in a folder, under an id."""
    scenario = schedule.scenario()
    parameters = scenario.parameters({"links": schedule.links})
    return RunRequest(
        scenario=scenario,
        design=schedule.design,
        parameters=parameters,
        configuration=configuration(schedule.design, parameters),
        zookeeper="embedded",
        run=run,
        run_dir=run_dir,
        clock=clock,
    )


def in_words(step: Step) -> str:
    """A step in a few words: `freeze m1`, `hold 300 ms`, `heal freeze m1`, `add partitions (more 6)`."""
    if isinstance(step, Inject):
        return f"{step.fault} {step.target}{_in_brackets(step.parameters)}"
    if isinstance(step, Hold):
        return f"hold {step.ms} ms"
    if isinstance(step, Heal):
        return " ".join(part for part in ("heal", step.fault or "all", step.target) if part)
    others = (each for each in fields(step) if each.name != "change")
    own = {each.name: given for each in others if (given := getattr(step, each.name)) != default_of(each)}
    return f"{kind_of_step(step)}{_in_brackets(own)}"


def kind_of_step(step: Step) -> str:
    """`form`, `freeze owner`; of a fault, its name."""
    return step.fault if isinstance(step, Inject) else name_of(type(step)).replace("-", " ")


def _in_brackets(values: Mapping[str, object]) -> str:
    return f" ({', '.join(f'{name} {value}' for name, value in values.items())})" if values else ""
