"""Read trace files into one table of events. Nothing is dropped: an unusable line is flagged with the reason.

The headers of the files are read first. They name the run and relate the clocks to each other. The lines are then
checked in Python, by the same table that the writer uses, and written as Parquet, from which everything is analysed.
Large traces are split among Spark tasks, which get the paths of their files (`mapInArrow`). Small ones are written in
this process, because starting the tasks costs more than the work. For 190,000 events in 108 files, in CPU seconds:
Spark's own JSON reader and Parquet writer 18, tasks 10, this process 2.5. A cold JVM is slow at rows of sixty mostly
empty columns.

Clocks: `t_ns` counts from the moment at which the run's reference process (the runner) wrote its header. Files of one
boot share CLOCK_MONOTONIC, so their times compare exactly. Files of different boots are aligned by their wall clocks,
and moments closer than the run's tolerance have no order.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T

from comparison.pipeline.event_table import COLUMNS, write_table
from kernel.trace.events import Role, Type
from kernel.trace.reader import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

#: Moments of one machine closer than this have no order: the transaction log has milliseconds.
TOLERANCE_NS = 1_000_000
#: The same between machines or boots, which only wall clocks relate.
TOLERANCE_ACROSS_BOOTS_NS = 50_000_000
#: Up to this size, traces are read without Spark tasks: about a million events, ten seconds.
_WITHOUT_TASKS_BYTES_MAX = 200 * 1024 * 1024

_SPARK_TYPES: Mapping[Type, T.DataType] = {
    Type.TEXT: T.StringType(),
    Type.INT: T.LongType(),
    Type.FLAG: T.BooleanType(),
    Type.PARTITIONS: T.ArrayType(
        T.StructType([T.StructField("topic", T.StringType()), T.StructField("partition", T.LongType())])
    ),
    Type.DETAIL: T.StringType(),  # the original JSON text
}
#: The table of events; `line` is the text of a flagged line, null for all others.
EVENTS_SCHEMA = T.StructType([T.StructField(name, _SPARK_TYPES[type_]) for name, type_ in COLUMNS.items()])


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file and what its header says; `offset_ns` turns its clock into the run's."""

    number: int
    run: int
    path: Path
    role: str
    offset_ns: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class TraceRun:
    """The files of one design's run, and what their headers agree on."""

    number: int
    folder: Path
    header: Mapping[str, Any]
    files: tuple[TraceFile, ...]
    tolerance_ns: int
    implementations: frozenset[str] = field(default=frozenset())


def find_runs(folders: Sequence[Path]) -> list[TraceRun]:
    """Every folder at or below the given ones whose `trace` folder has files, in order."""
    found = [
        run
        for folder in folders
        for run in sorted({path.parent.parent for path in folder.resolve().glob("**/trace/*.jsonl")})
    ]
    runs: list[TraceRun] = []
    files = 0
    for number, folder in enumerate(dict.fromkeys(found)):
        runs.append(_run_of(number, folder, files))
        files += len(runs[-1].files)
    return runs


def _run_of(number: int, folder: Path, first_file: int) -> TraceRun:
    paths = sorted(path for path in (folder / "trace").glob("*.jsonl") if path.stat().st_size)
    headers = [read_header(path) for path in paths]
    usable = [line.header for line in headers if line.header is not None]
    reference = min(usable, key=lambda h: (h["role"] != Role.RUNNER, h["monotonic_ns"]), default={})
    files = tuple(
        TraceFile(
            number=first_file + position,
            run=number,
            path=path,
            role=str(header["role"]) if header else "",
            offset_ns=_offset_ns(header, reference) if header else 0,
            problem=None if header else str(reason),
        )
        for position, (path, (header, reason, _)) in enumerate(zip(paths, headers, strict=True))
    )
    one_boot = len({header["boot_id"] for header in usable}) <= 1
    return TraceRun(
        number=number,
        folder=folder,
        header=reference,
        files=files,
        tolerance_ns=TOLERANCE_NS if one_boot else TOLERANCE_ACROSS_BOOTS_NS,
        implementations=frozenset(str(h["implementation"]) for h in usable if h["role"] == Role.MEMBER),
    )


def _offset_ns(header: Mapping[str, Any], reference: Mapping[str, Any]) -> int:
    """What to add to a file's nanoseconds to get nanoseconds since the reference's header."""
    if header["boot_id"] == reference["boot_id"]:
        return -int(reference["monotonic_ns"])
    return int(header["wall_ns"]) - int(header["monotonic_ns"]) - int(reference["wall_ns"])


def ingest(spark: SparkSession, runs: Sequence[TraceRun], folder: Path) -> DataFrame:
    """Write the events of all runs to `folder` as Parquet and return them, with EVENTS_SCHEMA.

    Replaces what an earlier analysis left in the folder.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = [
        {
            "file": file.number,
            "run": run.number,
            "role": file.role,
            "offset_ns": file.offset_ns,
            "problem": file.problem,
            "path": str(file.path),
        }
        for run in runs
        for file in run.files
    ]
    if sum(file.path.stat().st_size for run in runs for file in run.files) > _WITHOUT_TASKS_BYTES_MAX:
        files = spark.createDataFrame(
            [tuple(row.values()) for row in rows],
            "file int, run int, role string, offset_ns bigint, problem string, path string",
        )
        files.mapInArrow(_Task(str(folder)), "events bigint").write.format("noop").mode("overwrite").save()
    elif rows:
        write_table(rows, str(folder))
    return read_events(spark, folder)


class _Task:
    """The work of one Spark task on its files; it holds only text because it is pickled."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = [file for batch in batches for file in batch.to_pylist()]
        if files:
            yield pa.record_batch({"events": pa.array([write_table(files, self._folder)], pa.int64())})


def read_events(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(EVENTS_SCHEMA).parquet(str(folder))
