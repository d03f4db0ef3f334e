"""What is asked for: one run of a scenario under one design, with everything that decides how it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.trace.writer import TraceIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.scenarios.catalogue import Scenario
    from comparison.scenarios.configuration import Configuration
    from comparison.scenarios.parameters import Parameters
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

    @property
    def split_brain(self) -> bool:
        return self.scenario.zookeeper_servers > 1

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
