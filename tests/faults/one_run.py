"""One run of a scenario that is not in the catalogue, performed in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from comparison.run_folder import new_bundle, provenance, run_dir_of
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.runner import RunOutcome, perform


def request_of(folder: Path, scenario: Scenario, design: str, given: Mapping[str, object]) -> RunRequest:
    """`given`: the command's options, by the names of `comparison.scenarios.plan.parameters`."""
    bundle = new_bundle(folder, "test")
    parameters = scenario.parameters(given)
    return RunRequest(
        scenario=scenario,
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper="embedded",
        run=f"{bundle.name}/{scenario.name}/{design}",
        run_dir=run_dir_of(bundle, scenario.name, design),
    )


async def performed(request: RunRequest) -> RunOutcome:
    fork_server = await ForkServer.open()
    try:
        return await perform(request, provenance(["pytest"]), fork_server, asyncio.Event())
    finally:
        await fork_server.stop()
