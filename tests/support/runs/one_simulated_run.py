"""Runs of scenarios or scenarios' files in simulated worlds: FOLDER SCENARIO DESIGN SEED [LINKS [RATE]], once or more,
with -- between them.

Each is in a child of its own; what they all import is imported once. Prints their outcomes, each a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import NoReturn

from kernel.platform.lean_imports import collect_seldom, import_lean

collect_seldom()
import_lean()  # before what loads kio

from comparison.consumers import CONSUMERS  # noqa: E402
from comparison.own_scenarios import names_of  # noqa: E402
from comparison.run_folder import provenance  # noqa: E402
from comparison.scenarios.plan.catalogue import scenario_named  # noqa: E402
from comparison.scenarios.plan.configuration import configuration  # noqa: E402
from comparison.scenarios.plan.links import DEFAULT  # noqa: E402
from comparison.scenarios.plan.request import RunRequest, simulated_run  # noqa: E402
from comparison.scenarios.run.experiments import plan  # noqa: E402
from comparison.simulation.runs import performed  # noqa: E402
from kernel.trace.words import TimeSource  # noqa: E402


def main(runs: list[list[str]]) -> None:
    for kind in ("broker", "member"):
        importlib.import_module(f"comparison.scenarios.processes.{kind}_process")
    for _, _, design, *_ in runs:
        CONSUMERS[design].load()
    for run in runs:
        if (child := os.fork()) == 0:
            run_once(*run)
        if status := os.waitpid(child, 0)[1]:
            sys.exit(os.waitstatus_to_exitcode(status))


def run_once(folder: str, scenario: str, design: str, seed: str, links: str = DEFAULT, rate: str = "") -> NoReturn:
    """End the process with it."""
    (name,) = names_of([scenario])
    given = {"seed": int(seed), "links": links} | ({"rate": int(rate)} if rate else {})
    (planned,) = plan([name], [design], given)
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
    main([list(run) for is_run, run in groupby(sys.argv[1:], key="--".__ne__) if is_run])
