"""Every scenario as a failure-injection test: run for real, analysed for real, and held to its verdicts.

Verify, for each scenario under each design, what the design promises, that a historical fault that is expected
comes about, and the exact counts of the model.

Setup: an embedded ZooKeeper (an ensemble of three where links are cut), two brokers, members as processes, a
producer that numbers its records; a folder of its own for each run.

Steps: those of `comparison.scenarios.catalogue`; then drain, final reads, stop.

Expectation per failure type: `comparison.pipeline.verdicts`, each of which must be `as expected`. A run that
does not come to its end is a failure of the test, not an `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.experiments import Experiments, expanded, plan
from comparison.pipeline.analysis import analyze
from comparison.pipeline.session import spark_session
from comparison.progress import RunProgress
from comparison.scenarios.catalogue import CATALOGUE, DESIGNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

SEED = 20120517
RUNS = [(each.scenario, each.design) for each in plan(expanded(list(CATALOGUE)), DESIGNS, {})]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with spark_session() as session:
        yield session


@pytest.mark.parametrize(("scenario", "design"), RUNS, ids=[" ".join(run) for run in RUNS])
def test_scenario_ends_with_every_verdict_as_expected(
    scenario: str, design: str, spark: SparkSession, tmp_path: Path
) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    planned = plan([scenario], [design], {"seed": SEED})
    with RunProgress(1, quiet=True) as progress:
        experiments = Experiments(
            root=tmp_path, name="test", command=["pytest"], zookeeper="embedded", progress=progress
        )
        finished = experiments.perform(planned)
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left, "processes of the run stayed behind"
    (outcome,) = finished.outcomes
    assert (outcome.outcome, outcome.error) == ("complete", "")

    result = analyze(spark, finished.run_dirs, output=finished.bundle)
    (run,) = result["runs"]
    told = {verdict["check"]: f"{verdict['outcome']}: {verdict['reason']}" for verdict in run["verdicts"]}
    wrong = {check: text for check, text in told.items() if not text.startswith("as expected")}
    assert told
    assert not wrong, f"seed {SEED}"
