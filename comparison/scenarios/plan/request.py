"""What is asked for: one run of a scenario under one design, with everything that decides how it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.scenarios.plan.vocabulary import CutEnsemble, KillCoordinator
from kernel.designs import DESIGNS
from kernel.trace.writer import TraceIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.scenarios.plan.configuration import Configuration
    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario
    from kernel.trace.events import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run: a scenario under a design, with its folder."""

    scenario: Scenario
    design: str
    parameters: Parameters
    configuration: Configuration
    zookeeper: str  #: embedded, docker or HOST:PORT...
    run: str  #: the id that all traces of the run carry
    run_dir: Path
    warnings: tuple[str, ...] = ()  #: what a reader of the result has to know of its settings

    @property
    def split_brain(self) -> bool:
        return self.scenario.zookeeper_servers > 1

    @property
    def cuts_ensemble(self) -> bool:
        return any(isinstance(step, CutEnsemble) for step in self.scenario.steps)

    @property
    def victim_on_cut_server(self) -> bool:
        """Whether the victim of the cut has its session with the server that is cut off."""
        design = DESIGNS[self.design]
        return design.zookeeper_sessions and not (self.cuts_ensemble and design.coordinator)

    @property
    def group_is_placed(self) -> bool:
        """Whether the group must be one that the second broker coordinates."""
        return self.split_brain or any(isinstance(step, KillCoordinator) for step in self.scenario.steps)

    def trace_identity(self, role: Role, process: str) -> TraceIdentity:
        """Whose trace it is, for what is written in our own process."""
        return TraceIdentity(
            run=self.run,
            scenario=self.scenario.name,
            design=self.design,
            role=role,
            process=process,
            seed=self.parameters.seed,
        )

    def identity(self, process: str) -> dict[str, object]:
        """The part of a child's configuration that goes to its trace's header."""
        return {
            "process": process,
            "run": self.run,
            "scenario": self.scenario.name,
            "design": self.design,
            "seed": self.parameters.seed,
            "trace": str(self.run_dir / "trace" / f"{process}.jsonl"),
        }
