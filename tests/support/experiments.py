"""One run of a scenario under one design, from start to verdicts; all its processes must be gone afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from comparison.pipeline.analysis import analyze
from comparison.progress import RunProgress
from comparison.scenarios.run.experiments import Experiments, plan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

#: A run that hangs comes to it, and not one on a busy machine.
_LIMIT_S = 180.0


def unexpected(
    spark: SparkSession,
    folder: Path,
    scenario: str,
    design: str,
    *,
    seed: int,
    zookeeper: str = "embedded",
    **parameters: object,
) -> dict[str, str]:
    """{check: outcome and reason} of every verdict that is not as expected, for a run that completed.

    `parameters` are those of the command's options, by the names of `comparison.scenarios.plan.parameters`.
    """
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    planned = plan([scenario], [design], {"seed": seed, "time_limit_s": _LIMIT_S, **parameters})
    with RunProgress(1, quiet=True) as progress:
        experiments = Experiments(root=folder, name="test", command=["pytest"], zookeeper=zookeeper, progress=progress)
        finished = experiments.perform(planned)
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left, "processes of the run are still running"
    (outcome,) = finished.outcomes
    assert (outcome.outcome, outcome.error) == ("complete", ""), f"seed {seed}: {outcome.error}"
    (run,) = analyze(spark, finished.run_dirs, output=finished.bundle)["runs"]
    reasons = {verdict["check"]: f"{verdict['outcome']}: {verdict['reason']}" for verdict in run["verdicts"]}
    assert reasons
    return {check: text for check, text in reasons.items() if not text.startswith("as expected")}
