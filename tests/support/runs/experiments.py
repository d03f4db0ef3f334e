"""Runs of scenarios, one after the other, from start to verdicts; all processes of each must be gone afterwards.

They share what every command has once: the Spark session, and the process that forks members and brokers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from comparison.pipeline.analysis import analyze
from comparison.results.result import Result
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.experiments import Experiments, plan
from comparison.scenarios.run.runner import live
from comparison.screen.progress import RunProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A run that hangs comes to it, and not one on a busy machine.
_LIMIT_S = 180.0


class Laboratory:
    """Where tests run scenarios. Close it."""

    def __init__(self, spark: SparkSession) -> None:
        self.analysed: tuple[Path, Result]  #: the folder of the last run, and its result
        self._spark = spark
        self._loop = asyncio.Runner()
        self._fork_server = self._loop.run(ForkServer.open())

    def close(self) -> None:
        self._loop.run(self._fork_server.stop())
        self._loop.close()

    def unexpected(
        self, folder: Path, scenario: str, design: str, *, seed: int, zookeeper: str = "embedded", **parameters: object
    ) -> dict[str, str]:
        """{check: outcome and reason} of every verdict that is not as expected, for a run that completed.

        `parameters` are those of the command's options, by the names of `comparison.scenarios.plan.parameters`.
        """
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        planned = plan([scenario], [design], {"seed": seed, "time_limit_s": _LIMIT_S, **parameters})
        with RunProgress(1, quiet=True) as progress:
            experiments = Experiments(
                root=folder, name="test", command=["pytest"], zookeeper=zookeeper, progress=progress
            )
            finished = self._loop.run(experiments.perform_with(planned, live(self._fork_server), asyncio.Event()))
        left = {child.pid for child in psutil.Process().children(recursive=True)} - before
        assert not left, "processes of the run are still running"
        (outcome,) = finished.outcomes
        assert (outcome.outcome, outcome.error) == ("complete", ""), f"seed {seed}: {outcome.error}"
        result = analyze(self._spark, finished.run_dirs, output=finished.bundle)
        (run,) = result.runs
        self.analysed = finished.bundle, result
        reasons = {verdict.check: f"{verdict.outcome}: {verdict.reason}" for verdict in run.verdicts}
        assert reasons
        return {check: text for check, text in reasons.items() if not text.startswith("as expected")}
