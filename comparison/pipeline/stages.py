"""Silver and gold: what Spark's tasks do with a part of the events, and with a bucket of a run's partitions.

Plain Python on Arrow tables. The classes are the rows that one stage hands to the next; their columns follow from the
annotations (`comparison.pipeline.typed_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from comparison.ownership.groups import NamedGroups  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.pipeline.bronze.runs import TraceRun  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.bronze.tables import EVENTS, by_run, joined, read_part, with_run, write_table
from comparison.pipeline.gold.partitions import TABLES, PartitionFigures, PartitionTables, measure_partitions
from comparison.pipeline.gold.run import acting
from comparison.pipeline.judged import why_broken
from comparison.pipeline.measured import Acting  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.silver.context import KINDS, Context, bounds_of, context_columns, context_of
from comparison.pipeline.silver.groups import groups_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from comparison.pipeline.silver.reduce import ENCODED_KINDS, Bundle, Counted, needed_columns, reduced
from comparison.wrong_data import WRONG_DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.pipeline.bronze.tables import Tables
    from kernel.platform.places import Place

#: Naming and commits: who acted for a group, and who had a partition when.
_OF_AUTHORITY = ("authority_named", "authority_cleared", "offset_written")


@dataclass(frozen=True, slots=True)
class RunIn:
    """A run of which a part has events."""

    place: int  #: among all runs
    run: TraceRun
    parts: tuple[int, ...]  #: the numbers of all that have events of it
    bucket: int  #: the number of its first bucket; the others' follow
    buckets: int  #: how many its partitions are shared out to
    bounds: tuple[int, int] | None  #: of a run in several parts: its first and last moment
    groups: NamedGroups  #: likewise: what it names

    @property
    def is_whole(self) -> bool:
        return len(self.parts) == 1


@dataclass(frozen=True, slots=True)
class PartOfEvents:
    """What one task reduces."""

    number: int
    runs: tuple[RunIn, ...]


@dataclass(slots=True)
class Silver:
    """What a part of the events shows of a run, or of a share of its partitions.

    Only the first share has what is not about partitions, and only the first part has the context.
    """

    bucket: int
    place: int
    part: int
    of: RunIn
    broken: str = ""  #: why the run cannot be measured
    context: Context | None = None
    acting: list[Acting] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    bundle: Bundle = field(default_factory=Bundle)


@dataclass(slots=True)
class Gold:
    """What was measured of a run or of a share of its partitions, beside its tables, which are written."""

    place: int
    share: int
    broken: str = ""
    context: Context | None = None
    acting: list[Acting] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    figures: PartitionFigures = field(default_factory=PartitionFigures)
    unwritable: tuple[int, str] | None = None  #: the error of the disk that the tables did not fit on


def silver_of(part: PartOfEvents, folder: Place) -> Iterator[Silver]:
    """Reduce a part, from its tables in `folder`."""
    first = part.runs[0]
    if first.is_whole:
        written = by_run(read_part(folder / EVENTS, part.number, columns=_columns))
        for of in part.runs:
            yield from _silver_of_whole(part, of, written.get(of.run.run_id, {}))
    else:
        try:
            context, naming, acting_brokers = _of_all_parts(first, folder)
            tables = read_part(folder / EVENTS, part.number, columns=needed_columns, encoded=ENCODED_KINDS)
            yield from _shared_out(part, first, context, acting_brokers, reduced(tables, context, naming))
        except WRONG_DATA as error:
            yield Silver(first.bucket, first.place, part.number, first, why_broken(error))


def _columns(kind: str) -> list[str]:
    """The columns that are needed of a whole run."""
    needed = {"run_id", *needed_columns(kind)}
    if kind in KINDS:
        needed |= {*context_columns(kind)}
    if kind in _OF_AUTHORITY:
        needed |= {*EVENT_SCHEMAS[kind].names}
    return [name for name in ("run_id", *EVENT_SCHEMAS[kind].names) if name in needed]


def _silver_of_whole(part: PartOfEvents, of: RunIn, tables: Tables) -> Iterator[Silver]:
    try:
        few = {kind: table for kind, table in tables.items() if kind in KINDS}
        context = context_of(of.run, few, bounds_of(tables), groups_of(tables))
        yield from _shared_out(part, of, context, acting(tables, context), reduced(tables, context))
    except WRONG_DATA as error:
        yield Silver(of.bucket, of.place, part.number, of, why_broken(error))


def _shared_out(
    part: PartOfEvents, of: RunIn, context: Context, brokers: list[Acting], found: tuple[Bundle, Counted]
) -> Iterator[Silver]:
    bundle, counted = found
    is_first = part.number == of.parts[0]
    for share, rows in enumerate(bundle.shared_out(of.buckets) if of.buckets > 1 else [bundle]):
        silver = Silver(of.bucket + share, of.place, part.number, of, bundle=rows)
        if is_first:
            silver.context = context if share == 0 else context.of_partitions()
        if share == 0:
            silver.counted = [counted]
            silver.acting = brokers if is_first else []
        yield silver


#: Of the large run that this process worked on last; every part of it needs the same.
_last: list[tuple[tuple[str, RunIn], tuple[Context, Naming, list[Acting]]]] = []


def _of_all_parts(of: RunIn, folder: Place) -> tuple[Context, Naming, list[Acting]]:
    """The context of a run that several parts hold, who was named in it, and who acted."""
    key = (str(folder), of)
    if not _last or _last[0][0] != key:
        parts = [read_part(folder / EVENTS, each, KINDS, context_columns) for each in of.parts]
        named = [
            read_part(folder / EVENTS, each, _OF_AUTHORITY, lambda kind: EVENT_SCHEMAS[kind].names) for each in of.parts
        ]
        authority = joined(named)
        context = context_of(of.run, joined(parts), of.bounds, of.groups)
        _last[:] = [(key, (context, Naming(naming_rows(authority)), acting(authority, context)))]
    return _last[0][1]


def gold_of(silver: Sequence[Silver], folder: Place) -> list[Gold]:
    """Measure a bucket from what all parts show of it, and write its tables into `folder`."""
    found, written = [], []
    for _, of_one in groupby(sorted(silver, key=lambda each: (each.place, each.part)), key=lambda each: each.place):
        rows = list(of_one)
        gold, tables = _measured(rows)
        found.append(gold)
        written.append((rows[0].of.run, tables))
    write_gold(folder, silver[0].bucket, written)
    return found


def _measured(rows: Sequence[Silver]) -> tuple[Gold, PartitionTables]:
    first = rows[0]
    share, context = first.bucket - first.of.bucket, first.context
    if broken := next((each.broken for each in rows if each.broken), ""):
        return Gold(first.place, share, broken), NO_TABLES
    assert context is not None, "the first part has it, if it is not broken"
    try:
        bundle = Bundle.joined([each.bundle for each in rows])
        figures, tables = measure_partitions(bundle, context, share, first.of.buckets)
    except WRONG_DATA as error:
        return Gold(first.place, share, why_broken(error)), NO_TABLES
    found = Gold(first.place, share, figures=figures)
    if share == 0:
        found.context, found.acting = context, first.acting
        found.counted = [each for row in rows for each in row.counted]
    return found, tables


#: Of a run of which nothing can be measured: readers expect every table, also of such runs alone.
NO_TABLES = PartitionTables(*(schema.empty_table() for schema in TABLES.values()))


def write_gold(folder: Place, number: int, found: Sequence[tuple[TraceRun, PartitionTables]]) -> None:
    """Write the tables of a bucket."""
    for place, name in enumerate(TABLES):
        tables = [with_run(run, of_one[place]) for run, of_one in found]
        write_table(gold_file(folder, name, number), pa.concat_tables(tables))


def gold_file(folder: Place, table: str, number: int) -> Place:
    """Where a bucket's rows of a table are."""
    return folder / table / f"part-{number:05}.parquet"
