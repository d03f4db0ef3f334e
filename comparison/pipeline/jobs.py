"""Spark's part: share out tasks, bring the partitions of large runs together, collect typed values.

Nothing is measured here. A job's data are bytes: what the tasks exchange are their own values, so that the JVM moves
them and never looks inside. Hence RDDs: a query would have to be planned and compiled first. There is one collect a
job.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import or_, pos
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.pipeline.bronze.quarantine import count_lines_on
from comparison.pipeline.bronze.tables import joined, read_part
from comparison.pipeline.gold import partitions
from comparison.pipeline.gold.run import acting, together
from comparison.pipeline.silver.context import KINDS, context_columns, context_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from comparison.pipeline.silver.reduce import Bundle
from comparison.pipeline.tasks import (
    EVENTS,
    WRONG_DATA,
    BrokenRun,
    PartResult,
    analyse_part,
    broken,
    finished,
    measure_bucket,
    measure_part,
    reduce_part,
    why_broken,
    write_gold,
    write_nothing,
)
from kernel.errors import UNWRITABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import SparkSession

    from comparison.pipeline.bronze.chunks import Part
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.remembered import ReadParts
    from comparison.pipeline.silver.context import Context
    from comparison.results.run import Run

_TASKS_A_CORE = 8
#: Naming and commits, which a context of a large run needs besides its own kinds.
_OF_AUTHORITY = ("authority_named", "authority_cleared", "offset_written")


def analyse(
    spark: SparkSession, runs: Sequence[TraceRun], parts: Sequence[Part], folder: Path, free: Iterator[int]
) -> tuple[dict[int, Run], list[PartResult]]:
    """Analyse the runs of these parts, and write their tables into `folder`: figures and verdicts by the runs' places.

    `free` are numbers that no part has, in order; the tables of large runs' partitions get them.
    """
    folder.mkdir(exist_ok=True)
    results = _mapped(spark, len(parts), _AnalysePart(tuple(runs), tuple(parts), folder))
    files: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for part, result in zip(parts, results, strict=True):
        if not part.whole:
            files[part.chunks[0].run, part.chunks[0].file].append((part.number, result.read[0].lines))
    for pieces in files.values():
        count_lines_on(folder, pieces)
    return _with_large_runs(spark, runs, parts, results, folder, free), results


def measure_again(
    spark: SparkSession, runs: Sequence[TraceRun], read: ReadParts, folder: Path, free: Iterator[int]
) -> dict[int, Run]:
    """The same from the tables of events that are in `folder` already, by `comparison.pipeline.remembered`."""
    whole = [number for number, part in enumerate(read.parts) if part.whole]
    again = list(read.results)
    for number, result in zip(whole, _mapped(spark, len(whole), _MeasurePart(runs, read, whole, folder)), strict=True):
        again[number] = result
    return _with_large_runs(spark, runs, read.parts, again, folder, free)


def _with_large_runs(
    spark: SparkSession,
    runs: Sequence[TraceRun],
    parts: Sequence[Part],
    results: Sequence[PartResult],
    folder: Path,
    free: Iterator[int],
) -> dict[int, Run]:
    """All runs: those that parts hold whole have been measured with their parts."""
    found: dict[int, Run] = {}
    pieces: defaultdict[int, list[PartResult]] = defaultdict(list)
    for part, result in zip(parts, results, strict=True):
        found |= result.runs
        if not part.whole:
            pieces[part.chunks[0].run].append(result)
    for number, of_one in pieces.items():
        first_number, *_ = islice(free, _buckets(spark))
        try:
            found[number] = _large(spark, runs[number], of_one, folder, first_number)
        except WRONG_DATA as error:
            read = [one for each in of_one for one in each.read]
            found[number] = broken(runs[number], why_broken(error), read)
            write_nothing(runs[number], folder, of_one[0].number)
    return found


def _buckets(spark: SparkSession) -> int:
    return 2 * spark.sparkContext.defaultParallelism


def _tasks(spark: SparkSession, count: int) -> int:
    """How many tasks share `count` numbers: enough to even out, and few, as each has a cost of its own."""
    return min(count, _TASKS_A_CORE * spark.sparkContext.defaultParallelism)


def _mapped(spark: SparkSession, count: int, task: Callable[[int], Any]) -> list[Any]:
    """Do `task` for each number below `count`, and return their results in order."""
    if not count:
        return []
    return [_value(data) for data in _shared_out(spark, count).mapPartitions(_Each(task)).collect()]


def _shared_out(spark: SparkSession, count: int) -> RDD[int]:
    """The numbers below `count`, in order, shared out among tasks."""
    return spark.sparkContext.parallelize(range(count), _tasks(spark, count))


def _attempted(task: Callable[..., Any], *given: Any) -> Any:
    """The task's result; or the error of a disk that cannot be written, as a value, so that the driver can raise it."""
    try:
        return task(*given)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        return _Unwritable(error.errno, error.strerror)


def _of_one_run(task: Callable[..., Any], *given: Any) -> Any:
    """The same of a task for one run; what is wrong with the run's data is a value too."""
    try:
        return _attempted(task, *given)
    except WRONG_DATA as error:
        return _Broken(why_broken(error))


def _value(data: bytes) -> Any:
    """A task's result. Raises the OSError that it met, or BrokenRun."""
    value = pickle.loads(data)
    if isinstance(value, _Unwritable):
        raise OSError(value.number, value.text)
    if isinstance(value, _Broken):
        raise BrokenRun(value.why)
    return value


class _Broken(NamedTuple):
    why: str


class _Unwritable(NamedTuple):
    number: int | None
    text: str | None


class _Each:
    """A task for each of some numbers."""

    def __init__(self, task: Callable[[int], Any]) -> None:
        self._task = task

    def __call__(self, numbers: Iterable[int]) -> Iterator[bytes]:
        for number in numbers:
            yield pickle.dumps(_attempted(self._task, number))


class _AnalysePart:
    def __init__(self, runs: tuple[TraceRun, ...], parts: tuple[Part, ...], folder: Path) -> None:
        self._runs, self._parts, self._folder = runs, parts, folder

    def __call__(self, number: int) -> PartResult:
        return analyse_part(self._runs, self._parts[number], self._folder)


class _MeasurePart:
    def __init__(self, runs: Sequence[TraceRun], read: ReadParts, whole: Sequence[int], folder: Path) -> None:
        self._runs, self._folder = tuple(runs), folder
        self._parts = [(read.parts[number], read.results[number]) for number in whole]

    def __call__(self, number: int) -> PartResult:
        return measure_part(self._runs, *self._parts[number], self._folder)


def _large(spark: SparkSession, run: TraceRun, pieces: Sequence[PartResult], folder: Path, first_number: int) -> Run:
    """Measure a run that many parts hold: reduce each of them, then measure its partitions by buckets."""
    numbers = [piece.number for piece in pieces]
    context, authority = _context(run, pieces, folder)
    shared = spark.sparkContext.broadcast(_Shared(context.of_partitions(), naming_rows(authority)))
    buckets = _buckets(spark)
    rows = (
        _shared_out(spark, len(numbers))
        .mapPartitions(_ReducePart(shared, folder, numbers, buckets))
        .partitionBy(buckets + 1, pos)
        .mapPartitions(_MeasureBucket(run, shared, folder, buckets, first_number))
        .collect()
    )
    shared.destroy()
    values = {bucket: _value(data) for bucket, data in rows}
    parts = values.pop(buckets)
    figures = partitions.added(list(values.values()))
    measured = together(context, parts, figures, acting(authority, context))
    write_gold(folder, numbers[0], [(run, partitions.PartitionFigures(), measured)])  # its rounds; the rest is written
    return finished(run, measured, [read for piece in pieces for read in piece.read])


def _context(run: TraceRun, pieces: Sequence[PartResult], folder: Path) -> tuple[Context, Tables]:
    """The run's context, and its tables of what the authority said."""
    few = _read_of(pieces, KINDS, folder, context_columns)
    authority = _read_of(pieces, _OF_AUTHORITY, folder, lambda kind: EVENT_SCHEMAS[kind].names)
    known = [piece.bounds for piece in pieces if piece.bounds is not None]
    bounds = (min(low for low, _ in known), max(high for _, high in known)) if known else None
    named = reduce(or_, (piece.groups for piece in pieces))
    return context_of(run, few, bounds, named), authority


def _read_of(
    pieces: Sequence[PartResult], kinds: Sequence[str], folder: Path, columns: Callable[[str], Sequence[str]]
) -> Tables:
    """The tables of some kinds, several parts at a time: the executors wait for them."""
    with ThreadPoolExecutor(thread_name_prefix="reading") as pool:
        return joined(pool.map(lambda piece: read_part(folder / EVENTS, piece.number, kinds, columns), pieces))


class _Shared(NamedTuple):
    """What the tasks of a large run are sent once, because it grows with the run: a task's own arguments are read again
    by every task.
    """

    context: Context
    naming: pa.Table


class _ReducePart:
    """Parts of a large run, by bucket; behind the last bucket comes what only adds up."""

    def __init__(self, shared: Any, folder: Path, numbers: Sequence[int], buckets: int) -> None:
        self._shared, self._folder, self._numbers, self._buckets = shared, folder, numbers, buckets

    def __call__(self, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        context, naming = _indexed(self._shared)
        for place in places:
            part = _of_one_run(reduce_part, context, naming, self._folder, self._numbers[place])
            if not isinstance(part, _Broken | _Unwritable):
                for bucket, share in enumerate(part.bundle.shared_out(self._buckets)):
                    yield bucket, pickle.dumps(share)
                part = replace(part, bundle=Bundle())
            yield self._buckets, pickle.dumps(part)


class _MeasureBucket:
    """What is done with all that belongs to a bucket, which is a partition."""

    def __init__(self, run: TraceRun, shared: Any, folder: Path, buckets: int, first_number: int) -> None:
        self._run, self._shared, self._folder = run, shared, folder
        self._buckets, self._first_number = buckets, first_number

    def __call__(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        bucket, found = self._buckets, []
        for each, data in rows:
            bucket = each
            found.append(pickle.loads(data))  # our own
        if bucket == self._buckets:
            measured: Any = next((each for each in found if isinstance(each, _Broken | _Unwritable)), found)
        else:
            context, number = self._shared.value.context, self._first_number + bucket
            measured = _of_one_run(
                measure_bucket, self._run, context, found, bucket, self._buckets, self._folder, number
            )
        yield bucket, pickle.dumps(measured)


_cached: list[Any] = []


def _indexed(broadcast: Any) -> tuple[Context, Naming]:
    """The context, and the index of who was named; a worker process makes it once for all its tasks."""
    shared: _Shared = broadcast.value
    if not _cached or _cached[0] is not shared:
        _cached[:] = shared, Naming(shared.naming)
    naming = _cached[1]
    assert isinstance(naming, Naming)
    return shared.context, naming
