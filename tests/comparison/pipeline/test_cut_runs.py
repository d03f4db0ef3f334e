"""A run that is cut up into many parts has the results and the tables of the whole: any cut, any number of buckets."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.analysis import measured_runs, read_parts
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import TraceRun, find_runs
from comparison.pipeline.generated.runs import Faults, write_synthetic
from comparison.pipeline.remembered import ReadParts
from tests.comparison.pipeline.test_bad_runs import add_changes
from tests.support.properties import examples
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULTS = Faults(zombies=0.5, brief=0.3, deaths=0.2, torn=1, foreign=1)
#: Lines are lost, duplicated or replaced in the files of a member.
DAMAGE = {3: b"", 20: b"garbage\n", 40: None}
ALL = 1 << 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TraceRun:
    folder = tmp_path_factory.mktemp("synthetic")
    write_synthetic(folder / "run", events_min=400, members=3, partitions=4, seed=5, faults=FAULTS)
    path = folder / "run" / "trace" / "m1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in DAMAGE.items():
        lines[number] = line if line is not None else lines[number] * 2
    path.write_bytes(b"".join(lines))
    (found,) = find_runs([folder])
    return found


def analysed(run: TraceRun, folder: Path, *, chunk_bytes: int, whole_bytes: int, parallelism: int) -> dict[str, Any]:
    parts = parts_of([run], parallelism, chunk_bytes, whole_bytes)
    spark = cast("SparkSession", InlineSpark(parallelism))
    results = read_parts(spark, [run], parts, folder)
    assert [result.number for result in results] == list(range(len(parts)))
    found = measured_runs(spark, [run], [0], ReadParts(parts, results), folder, count(len(parts)))
    return {
        "run": msgspec.to_builtins(found[0]),
        **{
            name: Counter(str(row) for row in pq.read_table(folder / name, partitioning=None).to_pylist())
            for name in sorted(path.name for path in folder.iterdir() if path.name != "events")
        },
        **{
            path.name: Counter(str(row) for row in pq.read_table(path, partitioning=None).to_pylist())
            for path in (folder / "events").iterdir()
        },
    }


@pytest.fixture(scope="module")
def whole(run: TraceRun, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return analysed(run, tmp_path_factory.mktemp("whole"), chunk_bytes=ALL, whole_bytes=ALL, parallelism=1)


def test_whole_run_has_every_table(whole: dict[str, Any]) -> None:
    assert {"run", "ownership", "segments", "commits", "rounds", "kind=records_delivered"} < set(whole)
    assert {name for name, rows in whole.items() if not rows} <= {
        "changes",
        "faults",
        "phases",
        "waits",
    }  # an invented run has none
    assert whole["run"]["quarantined"] == {"not JSON": 1, "torn": 1}


def test_cut_run_that_cannot_be_measured_touches_no_other(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        write_synthetic(tmp_path / name, events_min=400, members=3, partitions=4, seed=5)
    add_changes(tmp_path / "bad" / "trace")
    runs = find_runs([tmp_path])
    parts = parts_of(runs, 2, 20_000, 0)
    assert min(Counter(part.chunks[0].run for part in parts).values()) > 1
    spark, tables = cast("SparkSession", InlineSpark(2)), tmp_path / "tables"
    read = ReadParts(parts, read_parts(spark, runs, parts, tables))
    found = measured_runs(spark, runs, [0, 1], read, tables, count(len(parts)))
    bad, good = (found[place] for place in (0, 1))
    assert [run.folder.name for run in runs] == ["bad", "good"]
    assert bad.problems[0].startswith("the run cannot be analysed")
    alone = measured_runs(spark, runs, [1], read, tmp_path / "tables", count(1_000))
    assert (good.metrics, good.verdicts) == (alone[1].metrics, alone[1].verdicts)
    assert good.metrics["delivered"]


def test_run_in_parts_has_the_results_and_the_tables_of_the_whole(
    run: TraceRun, whole: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    @given(st.integers(4_000, 60_000), st.integers(1, 3))
    @settings(max_examples=examples(10))
    def check(chunk_bytes: int, parallelism: int) -> None:
        folder = tmp_path_factory.mktemp("cut")
        found = analysed(run, folder, chunk_bytes=chunk_bytes, whole_bytes=0, parallelism=parallelism)
        assert [name for name in sorted({**whole, **found}) if found.get(name) != whole.get(name)] == []

    check()
