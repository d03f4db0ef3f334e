"""Silver and gold: what Spark's tasks do with a part of the events, and with a bucket of a run's partitions.

Plain Python on Arrow tables. The classes are the rows that one stage hands to the next; their columns follow from the
annotations (`comparison.pipeline.typed_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa

from comparison.ownership.groups import NamedGroups
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.pipeline.bronze.runs import TraceRun  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.bronze.tables import EVENTS, by_run, joined, read_part, with_run, write_table
from comparison.pipeline.gold.commits import COMMIT_SCHEMA
from comparison.pipeline.gold.cover import SEGMENT_SCHEMA
from comparison.pipeline.gold.ownership import INTERVAL_SCHEMA
from comparison.pipeline.gold.partitions import PartitionFigures, measure_partitions
from comparison.pipeline.gold.run import acting
from comparison.pipeline.judged import why_broken
from comparison.pipeline.measured import Acting  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.silver.context import KINDS, Context, bounds_of, context_columns, context_of
from comparison.pipeline.silver.groups import groups_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from comparison.pipeline.silver.reduce import BUNDLE_SCHEMAS, ENCODED_KINDS, Bundle, Counted, needed_columns, reduced
from comparison.wrong_data import WRONG_DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from comparison.pipeline.bronze.tables import Tables

#: Naming and commits: who acted for a group, and who had a partition when.
_OF_AUTHORITY = ("authority_named", "authority_cleared", "offset_written")


@dataclass(frozen=True, slots=True)
class RunIn:
    """A run of which a part has events."""

    place: int  #: among all runs
    run: TraceRun
    parts: tuple[int, ...]  #: the numbers of all that have events of it
    buckets: int  #: how many its partitions are shared out to
    number: int  #: of the first bucket's tables; the others' follow
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
    """What a part of the events shows of a bucket of a run's partitions.

    Only the first bucket of a run has what is not about partitions. Only its first part has the context.
    """

    place: int
    bucket: int
    part: int
    of: RunIn
    broken: str = ""  #: why the run cannot be measured
    context: Context | None = None
    acting: list[Acting] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    stretches: Annotated[pa.Table, BUNDLE_SCHEMAS["stretches"]] = field(
        default_factory=BUNDLE_SCHEMAS["stretches"].empty_table
    )
    acks: Annotated[pa.Table, BUNDLE_SCHEMAS["acks"]] = field(default_factory=BUNDLE_SCHEMAS["acks"].empty_table)
    claims: Annotated[pa.Table, BUNDLE_SCHEMAS["claims"]] = field(default_factory=BUNDLE_SCHEMAS["claims"].empty_table)
    naming: Annotated[pa.Table, BUNDLE_SCHEMAS["naming"]] = field(default_factory=BUNDLE_SCHEMAS["naming"].empty_table)
    offsets: Annotated[pa.Table, BUNDLE_SCHEMAS["offsets"]] = field(
        default_factory=BUNDLE_SCHEMAS["offsets"].empty_table
    )
    in_rounds: Annotated[pa.Table, BUNDLE_SCHEMAS["in_rounds"]] = field(
        default_factory=BUNDLE_SCHEMAS["in_rounds"].empty_table
    )
    steps: Annotated[pa.Table, BUNDLE_SCHEMAS["steps"]] = field(default_factory=BUNDLE_SCHEMAS["steps"].empty_table)
    produced: Annotated[pa.Table, BUNDLE_SCHEMAS["produced"]] = field(
        default_factory=BUNDLE_SCHEMAS["produced"].empty_table
    )


@dataclass(slots=True)
class Gold:
    """What was measured of a bucket of a run's partitions; the first one has what is not about partitions."""

    place: int
    bucket: int
    of: RunIn
    broken: str = ""
    context: Context | None = None
    acting: list[Acting] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    figures: PartitionFigures = field(default_factory=PartitionFigures)
    ownership: Annotated[pa.Table, INTERVAL_SCHEMA] = field(default_factory=INTERVAL_SCHEMA.empty_table)
    segments: Annotated[pa.Table, SEGMENT_SCHEMA] = field(default_factory=SEGMENT_SCHEMA.empty_table)
    commits: Annotated[pa.Table, COMMIT_SCHEMA] = field(default_factory=COMMIT_SCHEMA.empty_table)

    @classmethod
    def nothing(cls, place: int, run: TraceRun, number: int) -> Gold:
        """Of a run without events. Readers expect every table, also of such runs alone."""
        return cls(place, 0, RunIn(place, run, (), 1, number, None, NamedGroups()))


@dataclass(slots=True)
class Found:
    """The same without its tables, which are written."""

    place: int
    bucket: int
    broken: str
    context: Context | None
    acting: list[Acting]
    counted: list[Counted]
    figures: PartitionFigures
    unwritable: tuple[int, str] | None = None  #: the error of the disk that the tables did not fit on


#: The tables of partitions.
TABLES = ("ownership", "segments", "commits")


def silver_of(part: PartOfEvents, folder: Path) -> Iterator[Silver]:
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
            yield Silver(first.place, 0, part.number, first, why_broken(error))


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
        yield Silver(of.place, 0, part.number, of, why_broken(error))


def _shared_out(
    part: PartOfEvents, of: RunIn, context: Context, brokers: list[Acting], found: tuple[Bundle, Counted]
) -> Iterator[Silver]:
    bundle, counted = found
    is_first = part.number == of.parts[0]
    for bucket, share in enumerate(bundle.shared_out(of.buckets) if of.buckets > 1 else [bundle]):
        rows = {name: getattr(share, name) for name in BUNDLE_SCHEMAS}
        silver = Silver(of.place, bucket, part.number, of, **rows)
        if is_first:
            silver.context = context if bucket == 0 else context.of_partitions()
        if bucket == 0:
            silver.counted = [counted]
            silver.acting = brokers if is_first else []
        yield silver


#: Of the large run that this process worked on last; every part of it needs the same.
_last: list[tuple[tuple[str, RunIn], tuple[Context, Naming, list[Acting]]]] = []


def _of_all_parts(of: RunIn, folder: Path) -> tuple[Context, Naming, list[Acting]]:
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


def gold_of(rows: Sequence[Silver]) -> Gold:
    """Measure a bucket from what all parts show of it."""
    first, *_ = rows = sorted(rows, key=lambda each: each.part)
    found = Gold(first.place, first.bucket, first.of, next((each.broken for each in rows if each.broken), ""))
    context = first.context
    if found.broken or context is None:  # without the first part, which was broken
        return found
    try:
        bundle = Bundle(*(pa.concat_tables([getattr(row, name) for row in rows]) for name in BUNDLE_SCHEMAS))
        found.figures, tables = measure_partitions(bundle, context, first.bucket, first.of.buckets)
        found.ownership, found.segments, found.commits = tables
    except WRONG_DATA as error:
        return Gold(first.place, first.bucket, first.of, why_broken(error))
    if first.bucket == 0:
        found.context, found.acting = context, first.acting
        found.counted = [each for row in rows for each in row.counted]
    return found


def write_gold(rows: Sequence[Gold], folder: Path) -> None:
    """Write the tables of some buckets: a file each."""
    number = rows[0].of.number + rows[0].bucket
    for name in TABLES:
        tables = [with_run(row.of.run, getattr(row, name)) for row in rows]
        write_table(folder / name / f"part-{number:05}.parquet", pa.concat_tables(tables))
