"""The request for one run: a scenario in one design, with all parameters and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.targets import COORDINATOR, TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import Inject
from kernel.designs import DESIGNS
from kernel.java_regex import compiled
from kernel.trace.words import TimeSource
from kernel.trace.writer import TraceIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.scenarios.plan.configuration import Configuration
    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario
    from kernel.trace.events import Role


def simulated_run(scenario: str, design: str, parameters: Parameters) -> str:
    """The id of a simulated run, which is the same whenever it is made."""
    links = () if parameters.links == DEFAULT else (parameters.links,)
    return "/".join(("simulated", scenario, design, f"seed-{parameters.seed}", *links))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run: a scenario in a design, with its folder."""

    scenario: Scenario
    design: str
    parameters: Parameters
    configuration: Configuration
    zookeeper: str  #: embedded, docker, docker:3 or HOST:PORT...
    zookeeper_logs: tuple[Path, ...] = ()  #: folders of the transaction log of a ZooKeeper that is not ours
    run: str  #: the run id in all of its traces
    run_dir: Path
    warnings: tuple[str, ...] = ()  #: about its settings, for the report
    clock: TimeSource = TimeSource.MONOTONIC

    @property
    def split_brain(self) -> bool:
        return self.scenario.zookeeper_servers > 1

    def wants(self, topic: str) -> bool:
        """Whether members subscribe to one of the run's topics at the start."""
        pattern = self.scenario.pattern
        return not pattern or compiled(pattern).fullmatch(topic) is not None

    @property
    def played(self) -> bool:
        """Whether somebody plays by hand, so that any member may be cut off at any time."""
        return any(step.by_hand for step in self.scenario.steps)

    @property
    def coordinator_is_proxied(self) -> bool:
        """Whether members can be cut off from the second broker, which coordinates; the first leads all topics."""
        apart = (TargetKind.MEMBER_AUTHORITY, TargetKind.MEMBER_DATA)
        return self.split_brain or self.played or not self.links.isdisjoint(apart)

    @property
    def data_is_proxied(self) -> bool:
        """Whether members can be cut off from the first broker."""
        return TargetKind.MEMBER_DATA in self.links

    @property
    def links(self) -> frozenset[TargetKind]:
        """The kinds of what the scenario's steps inject faults into; those that are links need a proxy."""
        return frozenset(kind_of(step.target) for step in self.scenario.steps if isinstance(step, Inject))

    @property
    def cuts_ensemble(self) -> bool:
        """Whether a coordinating broker uses the follower that is cut off, or lags."""
        return any(step.follower_coordinates for step in self.scenario.steps)

    @property
    def joins_behind(self) -> bool:
        """Whether it is the first member to join after the start that uses the follower."""
        return any(step.first_joins_behind for step in self.scenario.steps)

    @property
    def victim_on_cut_server(self) -> bool:
        """Whether the victim's ZooKeeper session is with the server that is cut off."""
        design = DESIGNS[self.design]
        return design.zookeeper_sessions and not (self.cuts_ensemble and design.coordinator)

    @property
    def has_bystander(self) -> bool:
        """Whether an uninvolved client of the same ZooKeeper times its operations."""
        return any(step.needs_bystander for step in self.scenario.steps)

    @property
    def group_is_placed(self) -> bool:
        """Whether the second broker must coordinate the group: it is what a fault of `coordinator` is injected into."""
        return self.coordinator_is_proxied or any(
            step.places_coordinator or (isinstance(step, Inject) and step.target.startswith(COORDINATOR))
            for step in self.scenario.steps
        )

    def trace_identity(self, role: Role, process: str) -> TraceIdentity:
        """The identity of a trace that the runner writes itself."""
        return TraceIdentity(
            run=self.run,
            scenario=self.scenario.name,
            design=self.design,
            role=role,
            process=process,
            seed=self.parameters.seed,
            clock=self.clock,
        )

    def identity(self, process: str) -> dict[str, object]:
        """The part of a child's configuration that identifies its trace."""
        return {
            "process": process,
            "run": self.run,
            "scenario": self.scenario.name,
            "design": self.design,
            "seed": self.parameters.seed,
            "clock": self.clock,
            "trace": str(self.run_dir / "trace" / f"{process}.jsonl"),
        }
