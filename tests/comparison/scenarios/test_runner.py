"""A run that cannot start, or not go on: it ends with the reason, and nothing of it stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.scenarios.catalogue import scenario_named
from comparison.scenarios.configuration import configuration
from comparison.scenarios.nursery import Nursery
from comparison.scenarios.request import RunRequest
from comparison.scenarios.run_folder import run_dir_of
from comparison.scenarios.runner import perform
from comparison.scenarios.together import together
from kernel.errors import EnvironmentFault, Unavailable

if TYPE_CHECKING:
    from pathlib import Path


def request_in(folder: Path, scenario: str, design: str, zookeeper: str = "embedded") -> RunRequest:
    parameters = scenario_named(scenario).defaults
    return RunRequest(
        scenario=scenario_named(scenario),
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper=zookeeper,
        run="test",
        run_dir=run_dir_of(folder, scenario, design),
    )


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_of_several_things_at_once_none_outlives_the_first_failure() -> None:
    ended = []

    async def fails() -> None:
        raise Unavailable("no")

    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # an orderly end takes its time, and is waited for
            ended.append(True)

    async def scenario() -> None:
        with pytest.raises(Unavailable, match="no"):
            await together(goes_on(), fails(), goes_on())
        assert ended == [True, True]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_run_whose_processes_cannot_start_leaves_no_zookeeper_that_was_still_starting(tmp_path: Path) -> None:
    before = children()

    async def scenario() -> None:
        nursery = await Nursery.open()
        os.kill(nursery.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFault, match="has ended"):
            await perform(request_in(tmp_path, "crash", "eager"), {}, nursery, asyncio.Event())
        await nursery.stop()

    asyncio.run(scenario())
    assert (tmp_path / "crash/eager/zookeeper-1").is_dir(), "it had begun to start"
    assert children() <= before  # Spark's workers, of the tests before, may end meanwhile
    assert '"outcome":"failed"' in (tmp_path / "crash/eager/trace/runner.jsonl").read_text()
