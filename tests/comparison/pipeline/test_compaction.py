"""Runs that are added one by one: few files, and everything as if they had been analysed together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow.parquet as pq

from comparison.pipeline.analysis import Again, analyze
from comparison.pipeline.compaction import SMALL_MAX
from comparison.pipeline.generated.runs import write_synthetic_runs
from tests.comparison.pipeline.stored_runs import rows
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = cast("SparkSession", InlineSpark(1))
_RUNS = 2 * SMALL_MAX


def test_runs_added_one_by_one_leave_few_files_and_the_same_tables(tmp_path: Path) -> None:
    runs, growing, output = (tmp_path / name for name in ("runs", "growing", "out"))
    write_synthetic_runs(runs, runs=_RUNS, events_min=300, members=2, partitions=2)
    (runs / "run-00003" / "trace" / "m9.jsonl").write_text("garbage\n")
    for run in sorted(runs.iterdir()):
        shutil.copytree(run, growing / run.name)
        result = analyze(SPARK, [growing], output=output)
    together = analyze(SPARK, [growing], output=tmp_path / "together")
    assert result == together
    tables = output / "tables"
    assert rows(tables) == rows(tmp_path / "together" / "tables")
    files = {place: len([*place.glob("part-*.parquet")]) for place in {path.parent for path in tables.rglob("part-*")}}
    assert max(files.values()) == SMALL_MAX
    kept = (tables / "parts.json").read_bytes()
    assert analyze(SPARK, [growing], output=output) == together
    assert (tables / "parts.json").read_bytes() == kept
    assert analyze(SPARK, [growing], output=output, again=Again.MEASURING) == together
    shutil.rmtree(growing / "run-00004")
    without = analyze(SPARK, [growing], output=output)
    assert without.runs == [run for run in together.runs if run.run_id != "run-00004"]


def test_files_say_the_version_of_their_columns(tmp_path: Path) -> None:
    write_synthetic_runs(tmp_path / "runs", runs=1, events_min=300, members=2, partitions=2)
    analyze(SPARK, [tmp_path / "runs"], output=tmp_path)
    said = {
        pq.read_metadata(path).metadata.get(b"rebalance_lab.schema_version") for path in tmp_path.rglob("*.parquet")
    }
    assert said == {b"1"}
