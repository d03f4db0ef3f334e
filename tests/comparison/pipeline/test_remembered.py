"""A repeated analysis: unchanged runs are kept, and the result is as if everything had been read again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow.parquet as pq
import pytest

from comparison.pipeline import analysis, carried, job, remembered
from comparison.pipeline.analysis import Again, analyze, measured_runs, read_parts
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.kinds import RUN_COLUMNS
from comparison.pipeline.bronze.runs import TraceRun, find_runs
from comparison.pipeline.carried import READ, Carried, carry
from comparison.pipeline.generated.runs import write_synthetic
from comparison.pipeline.published import PARTS
from comparison.pipeline.remembered import NOTHING_KNOWN, ReadParts, fingerprint, recall, remember
from comparison.results.result import Result, formatted
from tests.comparison.pipeline.stored_runs import rows, two_runs
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from comparison.pipeline.reading import PartOfTraces
    from comparison.pipeline.stages import PartOfEvents

SPARK = cast("SparkSession", InlineSpark(1))
ALL = 1 << 40


@pytest.fixture
def runs(tmp_path: Path) -> list[TraceRun]:
    return find_runs([two_runs(tmp_path / "runs")])


def fingerprints(runs: list[TraceRun]) -> list[str]:
    return [fingerprint(run) for run in runs]


@pytest.mark.parametrize("whole_bytes", [ALL, 0], ids=["whole", "cut"])
def test_runs_are_measured_from_their_tables_as_from_their_lines(
    runs: list[TraceRun], tmp_path: Path, whole_bytes: int
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    parts = parts_of(runs, 1, chunk_bytes=50_000, whole_bytes=whole_bytes)
    assert len(parts) >= len(runs)
    read = ReadParts(parts, read_parts(SPARK, runs, parts, first))
    found = measured_runs(SPARK, runs, [0, 1], read, first, count(len(parts)))
    remember(first, runs, fingerprints(runs), read, found)
    known = recall(first, runs, fingerprints(runs), measured=False)
    assert (known.read.parts, known.found) == (parts, {})
    for file in (file for run in runs for file in run.files):
        file.path.unlink()
    again.mkdir()
    carry(first, again, READ, known.carried, known.held)
    measured = measured_runs(SPARK, runs, [0, 1], known.read, again, count(known.free_number))
    assert msgspec.to_builtins(measured) == msgspec.to_builtins(found)
    assert rows(again) == rows(first)


class Counts:
    """How many runs an analysis read, and how many it measured from tables."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read: set[int] = set()
        self._measured: set[int] = set()

        read, measure = job.read, job.measure

        def reading(spark: Any, parts: Sequence[PartOfTraces], folder: Path) -> Any:
            self._read |= {place for part in parts for place in part.runs}
            return read(spark, parts, folder)

        def measuring(spark: Any, parts: Sequence[PartOfEvents], folder: Path) -> Any:
            self._measured |= {of.place for part in parts for of in part.runs}
            return measure(spark, parts, folder)

        monkeypatch.setattr(job, "read", reading)
        monkeypatch.setattr(job, "measure", measuring)

    def since(self) -> tuple[int, int]:
        found = len(self._read), len(self._measured)
        self._read.clear()
        self._measured.clear()
        return found


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


def change(run: Path) -> None:
    """Change a run so that its size and times remain, as far as a user can."""
    path = run / "trace" / "m1.jsonl"
    about = path.stat()
    content = path.read_bytes()
    at = content.rindex(b'"partition":0')
    path.write_bytes(content[:at] + b'"partition":1' + content[at + 13 :])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def touch(run: Path) -> None:
    path = run / "trace" / "m1.jsonl"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def add_a_file(run: Path) -> None:
    shutil.copy(run / "trace" / "m1.jsonl", run / "trace" / "m9.jsonl")


def list_a_file(run: Path) -> None:
    (run / "run.json").write_text('{"traces": [{"file": "m7.jsonl", "process": "m7", "role": "member"}]}')


def remove(run: Path) -> None:
    shutil.rmtree(run)


def remove_trace(run: Path) -> None:
    shutil.rmtree(run / "trace")
    list_a_file(run)


def precede(run: Path) -> None:
    """Add a run of the same id, with a seed before all others: every other one has another repeat, and another id."""
    write_synthetic(run.parent / "run-0", events_min=300, members=3, partitions=4, seed=0)
    name_alike(run.parent)


def follow(run: Path) -> None:
    write_synthetic(run.parent / "run-9", events_min=300, members=3, partitions=4, seed=9_999)
    name_alike(run.parent)


def name_alike(folder: Path) -> None:
    """Give all runs the same id."""
    for path in folder.glob("*/trace/*.jsonl"):
        content = path.read_bytes()
        named = content.replace(f'"run":"{path.parent.parent.name}"'.encode(), b'"run":"bundle/synthetic/zookeeper"', 1)
        if named != content:
            path.write_bytes(named)


@pytest.mark.parametrize(
    ("happens", "read"),
    [(change, 1), (add_a_file, 1), (list_a_file, 1), (remove, 0), (remove_trace, 0), (precede, 1), (follow, 1)],
)
def test_only_what_has_changed_is_read_and_everything_is_as_from_scratch(
    runs: list[TraceRun], tmp_path: Path, counts: Counts, happens: Callable[[Path], None], read: int
) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    name_alike(folder)
    analyze(SPARK, [folder], output=out)
    counts.since()
    happens(folder / "run-00001")
    messages: list[str] = []
    result = analyze(SPARK, [folder], output=out, progress=messages.append)
    assert counts.since() == (read, read)
    assert any("unchanged since the last analysis" in text for text in messages)
    assert_as_from_scratch(folder, out, result)


def assert_as_from_scratch(folder: Path, out: Path, result: Result) -> None:
    fresh = out.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    assert formatted(analyze(SPARK, [folder], output=fresh)) == formatted(result)
    assert rows(fresh / "tables") == rows(out / "tables")
    assert_tables_name_the_runs_of(result, out / "tables")


def assert_tables_name_the_runs_of(result: Result, tables: Path) -> None:
    names = [column.name for column in RUN_COLUMNS]
    known = {tuple(getattr(run, name) for name in names) for run in result.runs}
    assert len(known) == len({run.run_id for run in result.runs}) == len(result.runs)
    for path in tables.rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        assert table.column_names[: len(names)] == names, path
        found = set(zip(*(table[name].to_pylist() for name in names), strict=True))
        assert found == known if path.name == "runs.parquet" else found <= known, path


@pytest.mark.parametrize(
    ("whole_bytes", "changes"),
    [(ALL, (change, precede, touch, follow, remove)), (0, (change, precede, remove))],
    ids=["whole", "cut"],
)
def test_changes_add_up(
    runs: list[TraceRun],
    tmp_path: Path,
    counts: Counts,
    monkeypatch: pytest.MonkeyPatch,
    whole_bytes: int,
    changes: tuple[Callable[[Path], None], ...],
) -> None:
    def in_parts(*given: Any, **more: Any) -> Any:
        return parts_of(*given, chunk_bytes=60_000, whole_bytes=whole_bytes, **more)

    monkeypatch.setattr(analysis, "parts_of", in_parts)
    folder, out = tmp_path / "runs", tmp_path / "out"
    analyze(SPARK, [folder], output=out)
    for happens in changes:
        happens(folder / "run-00001")
        result = analyze(SPARK, [folder], output=out)
    assert_as_from_scratch(folder, out, result)
    expected = rows(out / "tables")
    counts.since()
    for again, is_read in ((Again.NOTHING, False), (Again.MEASURING, False), (Again.READING, True)):
        assert analyze(SPARK, [folder], output=out, again=again) == result
        assert again is Again.NOTHING or rows(out / "tables") == expected
        assert (counts.since()[0] > 0) == is_read


def remove_a_table(tables: Path) -> None:
    next((tables / "events").rglob("*.parquet")).unlink()


def cut_a_table(tables: Path) -> None:
    path = next((tables / "ownership").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])


def damage_the_list(tables: Path) -> None:
    path = tables / PARTS
    path.write_bytes(path.read_bytes().replace(b'"events":', b'"events":1', 1))


def cut_the_list(tables: Path) -> None:
    path = tables / PARTS
    path.write_bytes(path.read_bytes()[:-10])


def remove_the_list(tables: Path) -> None:
    (tables / PARTS).unlink()


def remove_all(tables: Path) -> None:
    shutil.rmtree(tables)


DAMAGES = (remove_a_table, cut_a_table, damage_the_list, cut_the_list, remove_the_list, remove_all)


def test_nothing_is_recalled_when_what_was_kept_is_damaged(runs: list[TraceRun], tmp_path: Path) -> None:
    kept = tmp_path / "out" / "tables"
    analyze(SPARK, [tmp_path / "runs"], output=kept.parent)
    assert recall(kept, runs, fingerprints(runs)).places == {0, 1}
    for damage in DAMAGES:
        damaged = tmp_path / damage.__name__
        shutil.copytree(kept, damaged)
        damage(damaged)
        assert recall(damaged, runs, fingerprints(runs)) == NOTHING_KNOWN, damage


def test_everything_is_read_again_when_nothing_is_recalled(
    runs: list[TraceRun], tmp_path: Path, counts: Counts
) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    result = analyze(SPARK, [folder], output=out)
    assert counts.since() == (len(runs), len(runs))
    cut_a_table(out / "tables")
    assert analyze(SPARK, [folder], output=out) == result
    assert counts.since() == (len(runs), len(runs))


@pytest.mark.parametrize(("code", "done"), [("reading_code", (2, 2)), ("pipeline_code", (0, 2))])
def test_what_another_pipeline_found_is_not_kept(
    runs: list[TraceRun],
    tmp_path: Path,
    counts: Counts,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    done: tuple[int, int],
) -> None:
    result = analyze(SPARK, [tmp_path / "runs"], output=tmp_path / "out")
    counts.since()
    monkeypatch.setattr(remembered, code, lambda: "another")
    assert analyze(SPARK, [tmp_path / "runs"], output=tmp_path / "out") == result
    assert counts.since() == done


def test_analysis_that_is_broken_off_leaves_the_old_tables(
    runs: list[TraceRun], tmp_path: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    analyze(SPARK, [folder], output=out)
    before = {path: path.read_bytes() for path in (out / "tables").rglob("*.*") if path.is_file()}
    touch(folder / "run-00001")
    for moment in ("read_parts", "measured_runs", "remember", "write_results", "publish"):
        with monkeypatch.context() as broken:
            broken.setattr(analysis, moment, interrupt)
            with pytest.raises(KeyboardInterrupt):
                analyze(SPARK, [folder], output=out)
        assert {path: path.read_bytes() for path in out.rglob("*.*") if path.is_file()} == before, moment
    counts.since()
    analyze(SPARK, [folder], output=out)
    assert counts.since() == (1, 1)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_tables_of_an_analysis_that_was_killed_while_it_replaced_them_are_found_again(
    runs: list[TraceRun], tmp_path: Path, counts: Counts
) -> None:
    folder, out = tmp_path / "runs", tmp_path / "out"
    analyze(SPARK, [folder], output=out)
    (out / "tables").rename(out / ".tables-replaced")
    counts.since()
    analyze(SPARK, [folder], output=out)
    assert counts.since() == (0, 0)
    assert {path.name for path in out.iterdir()} == {"tables"}


def test_tables_are_copied_where_they_cannot_be_linked(
    runs: list[TraceRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    out = tmp_path / "out"
    analyze(SPARK, [tmp_path / "runs"], output=out)
    monkeypatch.setattr(os, "link", refuse)
    everyone = {run.run_id: Carried(run, is_renamed=False) for run in runs}
    held = recall(out / "tables", runs, fingerprints(runs)).held
    carry(out / "tables", tmp_path / "other", (*READ, *carried.MEASURED), everyone, held)
    one = {name: found for name, found in rows(out / "tables").items() if name}
    assert rows(tmp_path / "other") == one
