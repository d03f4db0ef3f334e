"""An analysis that measures from the tables of an earlier one, and when it reads the traces again instead."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow.parquet as pq
import pytest

from comparison.pipeline import remembered
from comparison.pipeline.analysis import analyze
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.jobs import analyse, measure_again
from comparison.pipeline.remembered import ReadParts, fingerprint, recall, remember, share
from comparison.pipeline.synthetic import Faults, write_synthetic, write_synthetic_runs
from tests.support.inline_spark import InlineSpark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from comparison.pipeline.bronze.runs import TraceRun

FAULTS = Faults(zombies=0.5, brief=0.3, deaths=0.2, torn=1, foreign=1)
SPARK = cast("SparkSession", InlineSpark(2))
ALL = 1 << 40


@pytest.fixture
def runs(tmp_path: Path) -> list[TraceRun]:
    folder = tmp_path / "runs"
    write_synthetic_runs(folder, runs=3, events_min=900, members=3, partitions=4, faults=FAULTS)
    damaged = folder / "run-00001" / "trace" / "m1.jsonl"
    lines = damaged.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(b"".join([*lines[:5], b"garbage\n", *lines[7:]]))
    (folder / "run-00002" / "trace" / "empty.jsonl").touch()
    return find_runs([folder])


def rows(folder: Path) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for path in folder.rglob("*.parquet"):
        name = path.parent.relative_to(folder).as_posix()
        table = pq.read_table(path, partitioning=None)
        found.setdefault(name, Counter()).update(map(str, table.to_pylist()))
    return found


@pytest.mark.parametrize("whole_bytes", [ALL, 0], ids=["whole", "cut"])
def test_runs_are_measured_from_their_tables_as_from_their_lines(
    runs: list[TraceRun], tmp_path: Path, whole_bytes: int
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    parts = parts_of(runs, 2, chunk_bytes=30_000, whole_bytes=whole_bytes)
    assert len(parts) > 2
    found, results = analyse(SPARK, runs, parts, first)
    remember(first, fingerprint(runs), ReadParts(parts, results))
    known = recall(first, fingerprint(runs))
    assert known is not None
    assert known.parts == parts
    for file in (file for run in runs for file in run.files):
        file.path.unlink()
    again.mkdir()
    share(first, again)
    assert msgspec.to_builtins(measure_again(SPARK, runs, known, again)) == msgspec.to_builtins(found)
    assert rows(again) == rows(first)


def remove_a_table(folder: Path) -> None:
    next((folder / "out" / "tables" / "events").rglob("*.parquet")).unlink()


def change_a_file(folder: Path) -> None:
    trace = folder / "runs" / "trace" / "m1.jsonl"
    os.utime(trace, ns=(0, trace.stat().st_mtime_ns + 1))


def add_a_file(folder: Path) -> None:
    trace = folder / "runs" / "trace" / "m1.jsonl"
    shutil.copy(trace, trace.with_name("m9.jsonl"))


def damage_the_list(folder: Path) -> None:
    path = folder / "out" / "tables" / remembered.PARTS
    path.write_bytes(path.read_bytes().replace(b'"events":', b'"events":1', 1))


def remove_the_list(folder: Path) -> None:
    (folder / "out" / "tables" / remembered.PARTS).unlink()


@pytest.mark.parametrize("change", [remove_a_table, change_a_file, add_a_file, damage_the_list, remove_the_list])
def test_traces_are_read_again_when_anything_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    read = count_readings(monkeypatch)
    write_synthetic(tmp_path / "runs", events_min=300)
    result = analyze(SPARK, [tmp_path / "runs"], output=tmp_path / "out")
    assert (len(read), analyze(SPARK, [tmp_path / "runs"], output=tmp_path / "out")) == (1, result)
    assert len(read) == 1
    change(tmp_path)
    analyze(SPARK, [tmp_path / "runs"], output=tmp_path / "out")
    assert len(read) == 2
    assert (tmp_path / "out" / "tables" / remembered.PARTS).is_file()


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from comparison.pipeline import jobs

    read: list[Any] = []
    analyse_part = jobs.analyse_part

    def counted(*given: Any) -> Any:
        read.append(given)
        return analyse_part(*given)

    monkeypatch.setattr(jobs, "analyse_part", counted)
    return read


def test_code_that_reads_traces_is_part_of_the_fingerprint(
    runs: list[TraceRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint(runs)
    assert fingerprint(runs) == before
    monkeypatch.setattr(remembered, "_code", lambda: "another")
    assert fingerprint(runs) != before


def test_tables_are_copied_where_they_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one" / "events").mkdir(parents=True)
    (tmp_path / "one" / "events" / "part.parquet").write_text("rows")

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refuse)
    share(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "other" / "events" / "part.parquet").read_text() == "rows"
