"""One run of a scenario or a scenario's file in a simulated world: FOLDER SCENARIO DESIGN SEED [LINKS].

Prints its outcome as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from comparison.own_scenarios import names_of
from comparison.run_folder import provenance
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.run.experiments import plan
from comparison.simulation.runs import performed
from kernel.trace.words import TimeSource


def main(folder: str, scenario: str, design: str, seed: str, links: str = DEFAULT) -> None:
    (name,) = names_of([scenario])
    (planned,) = plan([name], [design], {"seed": int(seed), "links": links})
    (Path(folder) / "trace").mkdir(parents=True)
    request = RunRequest(
        scenario=scenario_named(name),
        design=design,
        parameters=planned.parameters,
        configuration=configuration(design, planned.parameters),
        zookeeper="embedded",
        run=planned.simulated_run,
        run_dir=Path(folder),
        clock=TimeSource.SIMULATED,
    )
    outcome = performed(request, provenance([]), lambda _: None)
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what the world has left undone stays so


if __name__ == "__main__":
    main(*sys.argv[1:])
