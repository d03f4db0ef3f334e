"""The pipeline's bench can be trusted: all sides give the true answers, and wrong ones are refused."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from bench import pipeline, pipeline_numpy
from bench.pipeline import core_of, exponent_of
from bench.pipeline_child import DUCKDB, JSON, NUMPY, OURS, TABLES
from comparison.pipeline.analysis import analyze
from comparison.pipeline.generated.runs import write_synthetic
from comparison.pipeline.generated.truth import Truth
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("bench")
    truth = write_synthetic(folder / "run", events_min=4_000, seed=3, faults=pipeline.FAULTS)
    return (
        folder,
        truth,
        msgspec.to_builtins(analyze(cast("SparkSession", InlineSpark(2)), [folder / "run"], output=folder)),
    )


def kinds_of(folder: Path) -> dict[str, int]:
    return pipeline_numpy.answers(False, folder / "run", folder / "tables" / "events")["kinds"]


def test_ours_gives_the_true_answers(measured: tuple[Path, Truth, dict[str, Any]]):
    folder, truth, result = measured
    assert truth.two_delivering_ms > 0
    pipeline.check(OURS, JSON, {"kinds": kinds_of(folder), "runs": result["runs"]}, truth)


@pytest.mark.parametrize("source", [JSON, TABLES])
def test_peers_give_the_true_answers(measured: tuple[Path, Truth, dict[str, Any]], source: str):
    folder, truth, _ = measured
    where = (source == JSON, folder / "run", folder / "tables" / "events")
    pipeline.check(NUMPY, source, pipeline_numpy.answers(*where), truth)
    pytest.importorskip("duckdb")
    in_sql = importlib.import_module("bench.pipeline_duckdb").answers(*where, folder / "scratch")
    pipeline.check(DUCKDB, source, in_sql, truth)


def test_wrong_answers_are_refused(measured: tuple[Path, Truth, dict[str, Any]]):
    folder, truth, result = measured
    (run,) = result["runs"]
    wrong = {**run, "metrics": {**run["metrics"], "lost": run["metrics"]["lost"] + 1}}
    with pytest.raises(RuntimeError, match="the generator wrote"):
        pipeline.check(OURS, JSON, {"kinds": kinds_of(folder), "runs": [wrong]}, truth)
    found = core_of({}, run["metrics"])
    with pytest.raises(RuntimeError, match="the generator wrote"):
        pipeline.check(NUMPY, JSON, {**found, "kinds": {"rebalance_started": truth.rebalances}}, truth)


def test_exponent_is_the_slope_from_a_million_events_up():
    assert exponent_of({100_000: 900.0, 1_000_000: 2.0, 10_000_000: 20.0, 100_000_000: 200.0}) == pytest.approx(1.0)
    assert exponent_of({1_000_000: 2.0, 10_000_000: 200.0}) == pytest.approx(2.0)
    assert exponent_of({100_000: 1.0, 1_000_000: 2.0}) is None
