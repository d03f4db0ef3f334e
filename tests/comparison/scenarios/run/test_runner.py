"""A run that cannot start or continue ends with the reason, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.pipeline.analysis import analyze
from comparison.run_folder import run_dir_of
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.processes.gathering import gather_or_cancel
from comparison.scenarios.run.runner import Run, perform
from comparison.scenarios.testbed import testbed
from kernel.errors import EnvironmentFault, Unavailable
from kernel.trace.listed_file import run_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


async def test_first_failure_ends_all_concurrent_parts() -> None:
    ended = []

    async def fails() -> None:
        raise Unavailable("no")

    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # an orderly end takes time, and is awaited
            ended.append(True)

    with pytest.raises(Unavailable, match="no"):
        await gather_or_cancel(goes_on(), fails(), goes_on())
    assert ended == [True, True]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_run_whose_processes_cannot_start_stops_a_zookeeper_that_is_still_starting(tmp_path: Path) -> None:
    before = children()
    fork_server = await ForkServer.open()
    os.kill(fork_server.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="has ended"):
        await perform(request_in(tmp_path, "crash", "eager"), {}, fork_server, asyncio.Event())
    await fork_server.stop()
    assert (tmp_path / "crash/eager/zookeeper-1").is_dir(), "it had begun to start"
    assert children() <= before  # Spark workers of earlier tests may end meanwhile
    assert '"outcome":"failed"' in (tmp_path / "crash/eager/trace/runner.jsonl").read_text()


def broken(folder: Path) -> None:
    """A run that ends with an internal error."""

    async def scenario() -> None:
        fork_server = await ForkServer.open()
        try:
            await perform(request_in(folder, "crash", "eager"), {}, fork_server, asyncio.Event())
        finally:
            await fork_server.stop()

    with pytest.raises(AssertionError, match="not so"):
        asyncio.run(scenario())


def assert_failed(run_dir: Path, reason: str) -> None:
    written = json.loads((run_dir / "run.json").read_text())
    assert (written["outcome"], written["error"]) == ("failed", reason)
    found = run_file(run_dir)
    assert found is not None
    listed = found.traces
    assert listed is not None
    assert {("runner.jsonl", "runner", "runner"), ("proxy.jsonl", "proxy", "proxy")} <= set(listed)
    assert {each.file for each in listed} == {path.name for path in (run_dir / "trace").iterdir()}
    ends = [json.loads(line) for line in (run_dir / "trace/runner.jsonl").read_text().splitlines()]
    assert [(each["outcome"], each["error"]) for each in ends if each.get("kind") == "run_ended"] == [
        ("failed", reason)
    ]


def test_a_run_with_an_internal_error_is_traced_as_failed_and_never_judged_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    async def start(_: testbed.Testbed) -> None:
        raise AssertionError("not so")

    monkeypatch.setattr(testbed.Testbed, "start", start)
    broken(tmp_path)
    assert_failed(tmp_path / "crash/eager", "AssertionError: not so")
    result = analyze(spark, [tmp_path])
    assert result.verdict != "as expected"
    (run,) = result.runs
    assert (run.outcome, run.error) == ("failed", "AssertionError: not so")
    not_measured = ("moved", "moved_minimum", "stopped", "stopped_kept", "rounds", "out_of_order", "delivered", "lost")
    assert {name: run.metrics[name] for name in not_measured} == dict.fromkeys(not_measured)


def test_a_run_that_cannot_stop_its_parts_is_traced_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(_: Run) -> None:
        """Nothing has failed so far."""

    stop = testbed.Testbed.stop_brokers

    async def stop_badly(bed: testbed.Testbed, *, at_once: bool) -> None:
        await stop(bed, at_once=at_once)
        raise AssertionError("not so")

    monkeypatch.setattr(Run, "_perform_steps", steps)
    monkeypatch.setattr(testbed.Testbed, "stop_brokers", stop_badly)
    broken(tmp_path)
    assert_failed(tmp_path / "crash/eager", "AssertionError: not so")
