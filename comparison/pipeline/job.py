"""The plan of an analysis in Spark's DataFrames: from parts of traces to what the verdicts rest on.

- *bronze*: `mapInArrow(decode)` over parts of the traces. Typed events go into a table a kind, unusable lines into
  quarantine, and what was read of each file comes back.
- *silver*: `mapInArrow(reduce)` over parts of the events: by bucket, stretches of deliveries, claims, names and
  commits; and counts that add up.
- *gold*: `groupBy("bucket").applyInArrow(measure)`: who had which partition when, the stretches that were counted, and
  each commit, as tables; and the few figures that are no query over these.
- *figures*: sums, counts and joins over these tables, in SQL (`comparison/pipeline/sums`). Their rows are collected;
  the verdicts on them are plain Python.

A *part* is what a task reads: many small runs, or a piece of a large one. A *bucket* is what is measured and written
together: the small runs of a part, or a share of the partitions of a large run, from all of its parts. So neither a
thousand small runs nor one that is larger than any task are a case of their own. Only what every Spark session can do
is used, so that the master may be any.

Tables are written by the tasks, through Arrow: Spark's own writer takes a row at a time, and needed five times the CPU
seconds of the whole analysis (docs/performance.md).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from comparison.pipeline.bronze.kinds import RUN_COLUMNS
from comparison.pipeline.bronze.tables import as_in_files
from comparison.pipeline.gold.partitions import TABLES
from comparison.pipeline.reading import PartOfTraces, PartRead, read_part_of_traces
from comparison.pipeline.stages import Gold, PartOfEvents, Silver, gold_file, gold_of, silver_of
from comparison.pipeline.sums.queries import statement, sums_of
from comparison.pipeline.typed_rows import batch_of, schema_of, values_of
from kernel.errors import UNWRITABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from comparison.pipeline.sums.queries import Sums
    from kernel.platform.places import Place

_Value = TypeVar("_Value")
_Written = TypeVar("_Written", PartRead, Gold)
#: A task has a cost of its own, however little it has to do.
_TASKS_A_CORE = 4
_ROWS_A_BATCH = 64


def read(spark: SparkSession, parts: Sequence[PartOfTraces], folder: Place) -> list[PartRead]:
    """Bronze: write the tables of events of these parts; what was read of each, in their order."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in values_of(PartOfTraces, batch):
                try:
                    found = read_part_of_traces(part, folder)
                except OSError as error:
                    found = PartRead(part.number, unwritable=_unwritable(error))
                yield batch_of(PartRead, [found])

    with _tagged(spark, "bronze", "decode the traces into events"):
        bronze = _rows(spark, PartOfTraces, parts).mapInArrow(decode, _columns(PartRead))
        return sorted(_written(PartRead, bronze), key=lambda each: each.number)


def measure(spark: SparkSession, parts: Sequence[PartOfEvents], folder: Place) -> list[Gold]:
    """Silver and gold: measure the runs of these parts of the events, and write the tables of their partitions."""

    def reduce(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in values_of(PartOfEvents, batch):
                for row in silver_of(part, folder):
                    yield batch_of(Silver, [row])

    def measure(rows: pa.Table) -> pa.Table:
        silver = values_of(Silver, rows)
        try:
            gold = gold_of(silver, folder)
        except OSError as error:
            gold = [Gold(silver[0].place, 0, unwritable=_unwritable(error))]
        return pa.Table.from_batches([batch_of(Gold, gold)])

    with _tagged(spark, "gold", "measure who had which partition when"):
        silver = _rows(spark, PartOfEvents, parts).mapInArrow(reduce, _columns(Silver))
        gold = silver.groupBy("bucket").applyInArrow(measure, _columns(Gold))
        return sorted(_written(Gold, gold), key=lambda each: (each.place, each.share))


def sums(spark: SparkSession, buckets: Sequence[int], windows: pa.Table, folder: Place) -> dict[str, Sums]:
    """Figures: what the queries say of the runs in these buckets, by their ids; `windows` has WINDOW_SCHEMA."""
    for name, columns in TABLES.items():
        schema = as_in_files(pa.schema([*RUN_COLUMNS, *columns]).empty_table()).schema
        files = [str(gold_file(folder, name, bucket)) for bucket in buckets]
        spark.read.schema(from_arrow_schema(schema)).parquet(*files).createOrReplaceTempView(name)
    spark.createDataFrame(windows).createOrReplaceTempView("windows")
    with _tagged(spark, "figures", "sum them up"):
        return sums_of(tuple(row) for row in spark.sql(statement()).collect())


def require_connector(spark: SparkSession, place: Place) -> None:
    """Let Spark look at a folder in a store, which raises what Spark says without a connector for it."""
    assert spark.read.text(str(place)).columns, "text has a column"


def cores_of(spark: SparkSession) -> int:
    """How many tasks the session does at a time; queries of its user's own have as many partitions."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


@contextmanager
def _tagged(spark: SparkSession, name: str, what: str) -> Iterator[None]:
    """Give the jobs of the block a tag, and in a classic session a description, for Spark's pages and its event log."""
    spark.addTag(name)
    _describe(spark, f"{name}: {what}")
    try:
        yield
    finally:
        spark.removeTag(name)
        _describe(spark, None)


def _describe(spark: SparkSession, what: str | None) -> None:
    with suppress(AttributeError):  # over Connect there is no context
        spark.sparkContext.setJobDescription(what)  # type: ignore[arg-type]  # None takes it away


def _rows(spark: SparkSession, kind: type[_Value], values: Sequence[_Value]) -> DataFrame:
    """One row a value, each a task while there are few."""
    tasks = min(len(values), _TASKS_A_CORE * cores_of(spark))
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", str(max(1, tasks)))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ROWS_A_BATCH))
    return spark.createDataFrame(pa.Table.from_batches([batch_of(kind, values)]), _columns(kind))


def _columns(kind: type) -> StructType:
    found: StructType = from_arrow_schema(schema_of(kind))
    return found


def _unwritable(error: OSError) -> tuple[int, str]:
    """What the driver raises again. Other errors are the task's, which Spark tries again."""
    if error.errno not in UNWRITABLE:
        raise error
    return error.errno or 0, error.strerror or ""


def _written(kind: type[_Written], rows: DataFrame) -> list[_Written]:
    """The last rows. Raises OSError if a task could not write its tables."""
    found = values_of(kind, rows.toArrow())
    for each in found:
        if each.unwritable is not None:
            raise OSError(*each.unwritable)
    return found
