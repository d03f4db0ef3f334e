"""Prepares a game: its folder, and a run's request for each design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.playground.play.game import LabGame
from comparison.run_folder import new_bundle, provenance, run_dir_of, write_json
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.played import MEMBERS_MAX, PARTITIONS_MAX, PLAYGROUND, RATE_MAX
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.run.runner import descriptors_needed
from kernel.errors import ConfigurationError
from kernel.platform.requirements import require_machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from comparison.scenarios.plan.parameters import Parameters

#: Each has a ZooKeeper, two brokers and its members.
DESIGNS_MAX = 3
_MOST = {"members": MEMBERS_MAX, "partitions": PARTITIONS_MAX, "rate": RATE_MAX}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A game that can be run, and where it writes."""

    game: LabGame
    bundle: Path
    provenance: Mapping[str, object]  #: what all of its runs share


def prepared(
    root: Path, designs: Sequence[str], given: Mapping[str, object], *, command: list[str], idle_s: float
) -> Prepared:
    """A game of these designs in a new folder under `root`; `given` are parameters by name, or None.

    Raises `ConfigurationError` for what cannot be played, before anything is written.
    """
    if len(designs) > DESIGNS_MAX:
        raise ConfigurationError(f"{len(designs)} designs are given: at most {DESIGNS_MAX} can be played side by side")
    parameters = PLAYGROUND.parameters(given)
    for name, most in _MOST.items():
        if getattr(parameters, name) > most:
            raise ConfigurationError(f"--{name} is {getattr(parameters, name)}: must be {most} at most")
    for design in designs:
        require_feasible(Case(PLAYGROUND, design, parameters, configuration(design, parameters)))
    require_machine(descriptors_needed(PLAYGROUND, parameters))
    bundle = new_bundle(root, PLAYGROUND.name)
    requests = [_request(design, parameters, bundle) for design in designs]
    about = provenance(command)
    runs = [{"scenario": PLAYGROUND.name, "design": design, "seed": parameters.seed} for design in designs]
    write_json(bundle / "command.json", {**about, "runs": runs, "left_out": []})
    return Prepared(game=LabGame(requests, bundle, idle_s=idle_s), bundle=bundle, provenance=about)


def _request(design: str, parameters: Parameters, bundle: Path) -> RunRequest:
    folder = (PLAYGROUND.name, design)
    return RunRequest(
        scenario=PLAYGROUND,
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper="embedded",
        run="/".join((bundle.name, *folder)),
        run_dir=run_dir_of(bundle, *folder),
    )
