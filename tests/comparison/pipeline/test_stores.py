"""Runs and results in a store, which here is fsspec's in memory: the answers are those of folders."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from msgspec.structs import replace

from comparison.cli.damage import damage_of
from comparison.cli.report_file import REPORT, write_report
from comparison.pipeline import analysis, job, published
from comparison.pipeline.analysis import NothingToAnalyse, analyze
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.published import PARTS
from comparison.results.result import Result
from kernel.platform.places import below, copy_file, exists, is_in_store, name_below, place_of
from kernel.platform.store_faults import StoreFault
from tests.comparison.pipeline.stored_runs import rows, two_runs
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kernel.platform.places import Place

SPARK = cast("SparkSession", InlineSpark(2))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, of which one is damaged, and what a run leaves beside its traces."""
    folder = two_runs(tmp_path / "runs")
    (folder / "run-00000" / "data").mkdir()
    (folder / "run-00000" / "data" / "00000.log").write_text("records")
    return folder


def copied(folder: Path, target: Place) -> Place:
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder).as_posix()).write_bytes(path.read_bytes())
    return target


def contents(folder: Place) -> dict[str, bytes]:
    return {name_below(path, folder): path.read_bytes() for path in below(folder, "*")}


def without_places(result: Result) -> Result:
    return replace(result, runs=[replace(run, path=Path(run.path).name) for run in result.runs])


@pytest.mark.parametrize(("where", "whole_bytes"), [("runs", 1 << 40), ("results", 1 << 40), ("both", 0)])
def test_answers_are_those_of_folders(
    runs: Path, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, whole_bytes: int
) -> None:
    monkeypatch.setattr(analysis, "parts_of", functools.partial(parts_of, chunk_bytes=50_000, whole_bytes=whole_bytes))
    in_store = place_of(store)
    folder = runs if where == "results" else copied(runs, in_store / "runs")
    output = tmp_path / "out" if where == "runs" else in_store / "out"
    local = analyze(SPARK, [runs], output=tmp_path / "local")
    result = analyze(SPARK, [folder], output=output)
    assert without_places(result) == without_places(local)
    assert [run.path for run in result.runs] == [str(folder / f"run-0000{number}") for number in range(2)]
    tables, local_tables = rows(output / "tables"), rows(tmp_path / "local" / "tables")
    paths = [(tables.pop(""), local_tables.pop(""))]
    assert tables == local_tables
    assert all(found.total() == expected.total() for found, expected in paths)
    assert (write_report(result, output), write_report(local, tmp_path / "local")) == ([], [])
    pages = [(output / REPORT).read_bytes().decode(), (tmp_path / "local" / REPORT).read_text(encoding="utf-8")]
    # A run in a store is not replayed, so its page has no command for that.
    of_store, of_folder = (re.sub(r"<p [^>]*>To play it event by event.*?</p>\n", "", page) for page in pages)
    assert of_store.replace(str(folder), str(runs)) == of_folder
    damage = damage_of(result, output / "tables")
    assert [line.replace(str(folder), str(runs)) for line in damage] == damage_of(local, tmp_path / "local" / "tables")


def test_only_what_has_changed_is_read_again(runs: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = copied(runs, place_of(store) / "runs"), place_of(store) / "out"
    read: list[list[str]] = []
    read_by_job = job.read

    def counted(spark, parts, tables):
        read.append(sorted({run.folder.name for part in parts for run in part.runs.values()}))
        return read_by_job(spark, parts, tables)

    monkeypatch.setattr(job, "read", counted)
    first = analyze(SPARK, [folder], output=output)
    assert analyze(SPARK, [folder], output=output) == first
    assert read == [["run-00000", "run-00001"]]
    changed = folder / "run-00001" / "trace" / "m1.jsonl"
    changed.write_bytes(changed.read_bytes() + b"more garbage\n")
    second = analyze(SPARK, [folder], output=output)
    assert read[1:] == [["run-00001"]]
    assert second == analyze(SPARK, [folder], output=place_of(store) / "anew")
    assert rows(output / "tables") == rows(place_of(store) / "anew" / "tables")


def break_off(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["read_parts", "measured_runs", "remember", "write_results", "publish"])
def test_analysis_that_is_broken_off_leaves_what_was_there(
    runs: Path, store: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder, output = copied(runs, place_of(store) / "runs"), place_of(store) / "out"
    analyze(SPARK, [folder], output=output)
    before = contents(output)
    (folder / "run-00001" / "trace" / "m1.jsonl").write_bytes(b"")
    with monkeypatch.context() as broken:
        broken.setattr(analysis, moment, break_off)
        with pytest.raises(KeyboardInterrupt):
            analyze(SPARK, [folder], output=output)
    assert contents(output) == before


@pytest.mark.parametrize("files", [0, 1, 30])
def test_tables_that_were_half_put_in_place_are_ignored_and_replaced(
    runs: Path, store: str, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """An analysis was killed when that many of its files had arrived."""
    folder, output = copied(runs, place_of(store) / "runs"), place_of(store) / "out"
    analyze(SPARK, [folder], output=output)
    (folder / "run-00001" / "trace" / "m1.jsonl").write_bytes(b"")
    with monkeypatch.context() as killed:
        killed.setattr(published, "copy_file", times(files, copy_file))
        killed.setattr(analysis, "discard", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            analyze(SPARK, [folder], output=output)
    assert not exists(output / "tables" / PARTS)
    assert below(output / ".tables-in-progress", "*.parquet")
    again = analyze(SPARK, [folder], output=output)
    assert again == analyze(SPARK, [folder], output=place_of(store) / "anew")
    assert rows(output / "tables") == rows(place_of(store) / "anew" / "tables")
    assert exists(output / "tables" / PARTS)
    assert {name.partition("/")[0] for name in contents(output)} == {"tables"}


def times(count: int, work: Callable[[Place, Place], None]) -> Callable[[Place, Place], None]:
    left = iter(range(count))

    def limited(source: Place, target: Place) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        work(source, target)

    return limited


def test_late_task_of_a_broken_off_analysis_writes_beside_the_next_one(store: str) -> None:
    output = place_of(store)
    late = published.staging(output)
    published.discard(output)
    staged = published.staging(output)
    (late / "rounds" / "part-00000.parquet").write_bytes(b"late")
    (staged / PARTS).write_bytes(b"{}")
    published.publish(output, staged)
    assert contents(output) == {f"tables/{PARTS}": b"{}"}


def failing(error: OSError) -> Callable[..., bytes]:
    def cat_file(self, path, start=None, end=None):
        raise error

    return cat_file


def test_store_that_fails_is_not_taken_for_files_that_cannot_be_read(
    runs: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(runs, place_of(store) / "runs")
    monkeypatch.setattr(MemoryFileSystem, "cat_file", failing(OSError(5, "Slow Down")))
    with pytest.raises(StoreFault, match=rf"{store}/runs/.* cannot be read or written: .*Slow Down"):
        analyze(SPARK, [folder], output=place_of(store))
    monkeypatch.setattr(MemoryFileSystem, "cat_file", failing(PermissionError(13, "Forbidden")))
    result = analyze(SPARK, [folder], output=place_of(store))
    assert "m0.jsonl cannot be read: Forbidden" in " ".join(result.runs[0].problems)


def test_store_without_a_run_is_named(store: str) -> None:
    (place_of(store) / "readme").write_bytes(b"")
    with pytest.raises(NothingToAnalyse, match=f"no trace/.* in {store}"):
        analyze(SPARK, [place_of(store)], output=place_of(store))


def test_place_in_a_store_is_told_from_a_path() -> None:
    assert [is_in_store(place_of(text)) for text in ("memory://a/b", "a/b", "/a:/b")] == [True, False, False]
