"""From trace files to one table of events, with nothing dropped: what cannot be used is flagged with its reason.

The files' headers are read first, in plain Python (one line a file): they say whose run it is and how its clock
relates to the others'. The lines themselves are read, checked and aligned by Spark, written as Parquet, and
analysed from there.

Clocks. `t_ns` counts from the moment at which the run's reference process (the runner) wrote its header. Two
files of one boot share CLOCK_MONOTONIC and compare exactly; files of different boots are aligned by their wall
clocks, and the run then carries a tolerance below which no order is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from kernel.trace.events import COMMON_FIELDS, KINDS, Role, Type
from kernel.trace.reader import Reason, read_header

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Below this no two moments of one machine are called apart: the transaction log has milliseconds.
TOLERANCE_NS = 1_000_000
#: The same between machines, or boots, that only wall clocks tie together.
TOLERANCE_ACROSS_BOOTS_NS = 50_000_000

_PARTITIONS = T.ArrayType(
    T.StructType([T.StructField("topic", T.StringType()), T.StructField("partition", T.LongType())])
)
_SPARK_TYPES: Mapping[Type, T.DataType] = {
    Type.TEXT: T.StringType(),
    Type.INT: T.LongType(),
    Type.FLAG: T.BooleanType(),
    Type.PARTITIONS: _PARTITIONS,
    Type.DETAIL: T.StringType(),  # as the JSON text it was
}
#: Every field of every kind; a name means the same type wherever it occurs.
EVENT_FIELDS: Mapping[str, Type] = {
    name: type_ for kind in KINDS.values() for name, type_ in kind.fields.items() if name not in COMMON_FIELDS
}
_REQUIRED_COMMON = tuple(name for name in COMMON_FIELDS if name not in ("member", "stream"))
_FILE_COLUMNS = {
    "run": T.IntegerType(),
    "role": T.StringType(),
    "file": T.IntegerType(),
    "t_ns": T.LongType(),
    "problem": T.StringType(),
    "line": T.StringType(),
}
EVENTS_SCHEMA = T.StructType(
    [T.StructField(name, type_) for name, type_ in _FILE_COLUMNS.items()]
    + [T.StructField(name, _SPARK_TYPES[type_]) for name, type_ in {**COMMON_FIELDS, **EVENT_FIELDS}.items()]
)
_SHOWN_CHARACTERS = 200
#: Spark puts the whole line here when it cannot be read as the schema has it.
_UNREAD = "_unread"
_LINE_SCHEMA = T.StructType(
    [T.StructField(name, _SPARK_TYPES[type_]) for name, type_ in {**COMMON_FIELDS, **EVENT_FIELDS}.items()]
    + [T.StructField("header", T.StringType()), T.StructField(_UNREAD, T.StringType())]
)


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
    """Every folder at or below the given ones that has a `trace` folder with files in it, in order."""
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
    usable = [header for header, _ in headers if header is not None]
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
        for position, (path, (header, reason)) in enumerate(zip(paths, headers, strict=True))
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


def ingest(spark: SparkSession, runs: Sequence[TraceRun]) -> DataFrame:
    """The events of all runs: EVENTS_SCHEMA, flagged ones with `problem` and the line as it stood."""
    paths = [str(file.path) for run in runs for file in run.files]
    if not paths:
        return spark.createDataFrame([], EVENTS_SCHEMA)
    files = spark.createDataFrame(
        [
            (str(file.path), file.run, file.number, file.role, file.offset_ns, file.problem)
            for run in runs
            for file in run.files
        ],
        "trace_path string, run int, file int, role string, offset_ns bigint, file_problem string",
    )
    lines = (
        spark.read.schema(_LINE_SCHEMA)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", _UNREAD)
        .json(_escaped(paths))
        .select("*", _plain_path(F.col("_metadata.file_path")).alias("trace_path"))
    )
    return parse(lines.join(F.broadcast(files), on="trace_path", how="inner"))


def _escaped(paths: list[str]) -> list[str]:
    """Hadoop reads these characters of a path as a pattern."""
    special = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})
    return [path.translate(special) for path in paths]


def _plain_path(uri: Column) -> Column:
    """file:/a%20b as /a b; a plus sign is a plus sign in a path."""
    return F.url_decode(F.replace(F.regexp_replace(uri, "^file:/+", "/"), F.lit("+"), F.lit("%2B")))


def parse(lines: DataFrame) -> DataFrame:
    """Lines as JSON was read from them (_LINE_SCHEMA), with what is known of their file, as EVENTS_SCHEMA."""
    fields = (*COMMON_FIELDS, *EVENT_FIELDS)
    return (
        lines.where(F.col("header").isNull() | F.col("file_problem").isNotNull())
        .withColumn("problem", problem_of(F.col("file_problem"), F.col(_UNREAD)))
        .select(
            "run",
            "role",
            "file",
            (F.col("ns") + F.col("offset_ns")).alias("t_ns"),
            "problem",
            F.when(F.col("problem").isNotNull(), _shown(F.col(_UNREAD))).alias("line"),
            *fields,
        )
    )


def problem_of(file_problem: Column, unread: Column) -> Column:
    """Why a line cannot be used (kernel.trace.reader.Reason), or null. `unread` is the line, if it is not JSON as
    the schema has it.
    """
    nothing_read = F.col("kind").isNull() & F.col("seq").isNull() & F.col("ns").isNull()
    not_json = nothing_read & unread.isNotNull()
    cut_off = unread.startswith("{") & ~F.rtrim(unread).endswith("}")
    common_missing = F.greatest(*(F.col(name).isNull() for name in _REQUIRED_COMMON))
    return (
        F.when(file_problem.isNotNull(), file_problem)
        .when(not_json & cut_off, F.lit(str(Reason.TORN)))
        .when(not_json, F.lit(str(Reason.NOT_JSON)))
        .when(unread.isNotNull() | common_missing | _lacks_a_field(), F.lit(str(Reason.FLAWED)))
    )


def _lacks_a_field() -> Column:
    """Is a field that the event's kind must have absent? Kinds that nobody knows need nothing.

    Sets of fields are bits of one number: 60 columns and 40 kinds as arrays would cost more than reading the JSON.
    """
    bit = {name: 1 << place for place, name in enumerate(EVENT_FIELDS)}
    assert len(bit) < 63, "one number has no more bits"
    required = F.create_map(
        *(
            part
            for name, kind in KINDS.items()
            for part in (F.lit(name), F.lit(sum(bit[f] for f in kind.fields if f not in kind.optional)))
        )
    )
    absent = reduce(
        Column.bitwiseOR, (F.when(F.col(name).isNull(), F.lit(bit[name])).otherwise(F.lit(0)) for name in bit)
    )
    return F.coalesce(F.element_at(required, F.col("kind")).bitwiseAND(absent) != 0, F.lit(False))


def _shown(unread: Column) -> Column:
    """The line's beginning; of a line that was JSON, its common fields."""
    return F.substring(F.coalesce(unread, F.to_json(F.struct(*COMMON_FIELDS))), 1, _SHOWN_CHARACTERS)


def write_events(events: DataFrame, folder: Path) -> None:
    """As Parquet, one folder a run; whatever an earlier analysis left there is replaced."""
    events.write.mode("overwrite").partitionBy("run").parquet(str(folder))


def read_events(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(EVENTS_SCHEMA).parquet(str(folder))
