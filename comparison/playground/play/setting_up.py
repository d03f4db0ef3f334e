"""Prepares a game: its folder, and a run's request for each design."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from comparison.playground import messages
from comparison.run_folder import new_bundle, provenance, run_dir_of, write_json
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.descriptors import descriptors_needed
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.played import MEMBERS_MAX, PARTITIONS_MAX, PLAYGROUND, RATE_MAX
from comparison.scenarios.plan.request import RunRequest, simulated_run
from kernel.errors import ConfigurationError
from kernel.platform.requirements import require_machine
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from comparison.playground.play.lifecycle import PlayedGame
    from comparison.scenarios.plan.parameters import Parameters

#: In a live game each has a ZooKeeper, two brokers and its members.
DESIGNS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is to be played, and where it is written."""

    designs: Sequence[str]
    parameters: Parameters
    bundle: Path
    provenance: Mapping[str, object]  #: what all of its runs share


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A game that can be run, and where it writes."""

    game: PlayedGame
    bundle: Path
    provenance: Mapping[str, object]  #: what all of its runs share


def prepared(
    root: Path, designs: Sequence[str], given: Mapping[str, object], *, command: list[str], idle_s: float
) -> Prepared:
    """A live game of these designs in a new folder under `root`; as `planned`."""
    from comparison.playground.play.game import LabGame  # no simulated game needs what runs one

    plan = planned(root, designs, given, command=command)
    requests = [request_of(design, plan.parameters, plan.bundle) for design in designs]
    return Prepared(
        game=LabGame(requests, plan.bundle, begun=begun_of(plan), idle_s=idle_s),
        bundle=plan.bundle,
        provenance=plan.provenance,
    )


def begun_of(plan: Planned) -> messages.Begun:
    """How a game by this plan is begun."""
    command = cast("Sequence[str]", plan.provenance["command"])
    return messages.Begun(members=plan.parameters.members, command=shlex.join(command))


def planned(
    root: Path,
    designs: Sequence[str],
    given: Mapping[str, object],
    *,
    command: list[str],
    members_max: int = MEMBERS_MAX,
    designs_max: int = DESIGNS_MAX,
) -> Planned:
    """A plan for these designs, and a new folder under `root`; `given` are parameters by name, or None.

    Raises `ConfigurationError` for what cannot be played, before anything is written.
    """
    if len(designs) > designs_max:
        raise ConfigurationError(
            f"{len(designs)} designs are given: at most {designs_max} can be played at once, or all --simulated"
        )
    parameters = PLAYGROUND.parameters(given)
    for name, most in {"members": members_max, "partitions": PARTITIONS_MAX, "rate": RATE_MAX}.items():
        if getattr(parameters, name) > most:
            raise ConfigurationError(f"--{name} is {getattr(parameters, name)}: must be {most} at most")
    for design in designs:
        require_feasible(Case(PLAYGROUND, design, parameters, configuration(design, parameters)))
    require_machine(descriptors_needed(PLAYGROUND, parameters))
    bundle = new_bundle(root, PLAYGROUND.name)
    plan = Planned(designs=designs, parameters=parameters, bundle=bundle, provenance=provenance(command))
    write_command(plan, designs)
    return plan


def write_command(plan: Planned, designs: Sequence[str]) -> None:
    """Say in the folder which designs are played."""
    runs = [{"scenario": PLAYGROUND.name, "design": design, "seed": plan.parameters.seed} for design in designs]
    write_json(plan.bundle / "command.json", {**plan.provenance, "runs": runs, "left_out": []})


def request_of(
    design: str, parameters: Parameters, bundle: Path, clock: TimeSource = TimeSource.MONOTONIC
) -> RunRequest:
    """The run of one design. One by a simulated clock has the same id whenever it is made."""
    folder = (PLAYGROUND.name, design)
    is_simulated = clock is TimeSource.SIMULATED
    return RunRequest(
        scenario=PLAYGROUND,
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper="embedded",
        run=simulated_run(PLAYGROUND.name, design, parameters) if is_simulated else "/".join((bundle.name, *folder)),
        run_dir=run_dir_of(bundle, *folder),
        clock=clock,
    )
