"""One run of a scenario or a scenario's file in a simulated world: FOLDER SCENARIO DESIGN SEED [LINKS].

Prints its outcome as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from kernel.platform.lean_imports import collect_seldom, import_lean

collect_seldom()
import_lean()  # before what loads kio

from comparison.own_scenarios import names_of  # noqa: E402
from comparison.run_folder import provenance  # noqa: E402
from comparison.scenarios.plan.catalogue import scenario_named  # noqa: E402
from comparison.scenarios.plan.configuration import configuration  # noqa: E402
from comparison.scenarios.plan.links import DEFAULT  # noqa: E402
from comparison.scenarios.plan.request import RunRequest, simulated_run  # noqa: E402
from comparison.scenarios.run.experiments import plan  # noqa: E402
from comparison.simulation.runs import performed  # noqa: E402
from kernel.trace.words import TimeSource  # noqa: E402


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
        run=simulated_run(planned.scenario, planned.design, planned.parameters),
        run_dir=Path(folder),
        clock=TimeSource.SIMULATED,
    )
    outcome = performed(request, provenance([]), lambda _: None)
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what the world has left undone stays so


if __name__ == "__main__":
    main(*sys.argv[1:])
