"""The pipeline's bench can be trusted: all sides give the true answers, and wrong ones are refused."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from bench import pipeline, pipeline_numpy
from bench.pipeline import FIXED_CPU_S_MAX, OF_DUCKDB_MAX, RATIO_FROM, Figure, core_of, exponent_of, goals_of
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


def taking(cpu_s: float, peak_mb: float = 100.0) -> Figure:
    return Figure(wall_s=1.0, cpu_s=cpu_s, peak_mb=peak_mb, start_s=1.0, start_cpu_s=1.0)


def verdicts(size: int, ours: Figure, duckdb: Figure) -> list[bool | None]:
    return [goal.met for goal in goals_of({(size, JSON, OURS): ours, (size, JSON, DUCKDB): duckdb})]


def test_goal_of_a_large_run_is_a_ratio_and_of_a_small_one_a_fixed_part_as_well():
    least = OF_DUCKDB_MAX[JSON] * 10.0
    assert verdicts(RATIO_FROM, taking(least), taking(10.0))[0]
    assert not verdicts(RATIO_FROM, taking(least + 0.1), taking(10.0))[0]
    assert verdicts(RATIO_FROM - 1, taking(least + FIXED_CPU_S_MAX), taking(10.0))[0]
    assert not verdicts(RATIO_FROM - 1, taking(least + FIXED_CPU_S_MAX + 0.1), taking(10.0))[0]


def test_goals_without_a_peer_or_a_second_size_are_not_measured():
    beside, *growth, memory = goals_of({(RATIO_FROM, TABLES, OURS): taking(1.0, peak_mb=4_001.0)})
    assert [each.met for each in (beside, *growth)] == [None, None, None]
    assert not memory.met
    assert memory.found == "4,001 MB"
