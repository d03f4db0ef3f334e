"""Events as Arrow tables, one for each kind, and as Parquet: `events/kind=<kind>/part-<number>.parquet`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from comparison.pipeline.bronze.alike import read_alike
from comparison.pipeline.bronze.decode import Decoded, decode, usual_event
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS, RUN_COLUMNS, named_in_files
from kernel.platform.places import arrow_source, exists, make_folder, whole
from kernel.trace.column_names import FILE_NAMES
from kernel.trace.events import KINDS, Type
from kernel.trace.limits import RECORD_RANGES, RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from comparison.pipeline.bronze.alike import Group
    from comparison.pipeline.bronze.runs import TraceFile, TraceRun
    from kernel.platform.places import Place

#: What every file says of the columns of its table: raised when one means something else, or is gone.
SCHEMA_VERSION = 1
_VERSION = {"rebalance_lab.schema_version": str(SCHEMA_VERSION)}
#: The folder of the tables of events.
EVENTS = "events"
#: The tables of one run, or of a part of it, by kind; a kind without events may be absent.
Tables = dict[str, pa.Table]

#: No event has a shorter line: its common fields alone take more.
_EVENT_BYTES_MIN = 64
_PLACE = ("seq", "ns", "process", "member", "stream", "cause")
_READ_AS = {name: column for column, name in FILE_NAMES.items()}
_ENCODE = msgspec.json.Encoder().encode


def decoded_tables(lines: bytes, file: TraceFile) -> tuple[Decoded, Tables]:
    """Decode lines of one file, and what they are as tables.

    Lines that are alike are in the tables and in `places`, but not among the decoded events.

    Whether ranges of records are possible is seen fastest in tables; if one is not, its line is found.
    """
    decoded, tables = _mostly_alike(lines, file) or _decoded(lines, file)
    if _has_impossible_ranges(tables):
        decoded, tables = _decoded(lines, file, line_by_line=True)
    return decoded, tables


def _decoded(lines: bytes, file: TraceFile, *, line_by_line: bool = False) -> tuple[Decoded, Tables]:
    decoded = decode(lines, line_by_line=line_by_line)
    return decoded, tables_of(decoded, file)


def _mostly_alike(lines: bytes, file: TraceFile) -> tuple[Decoded, Tables] | None:
    """The same for lines of which many are alike; None if they are not, or if one is no event."""
    # An index of many short lines would take many times their size.
    if lines.count(b"\n") * _EVENT_BYTES_MIN > len(lines):
        return None
    alike = read_alike(lines, usual_event)
    if not alike.groups:
        return None
    decoded, tables = _decoded(alike.rest, file)
    if len(decoded.places) < len(alike.rest_lines):
        return None
    count = len(alike.rest_lines)
    for kind, groups in alike.groups.items():
        numbers = np.concatenate([group.lines for group in groups])
        count += len(numbers)
        found = _table_of_groups(kind, groups, file)
        if kind in tables:
            others = [place for place, event in enumerate(decoded.in_order) if type(event).__name__ == kind]
            numbers = np.concatenate([numbers, alike.rest_lines[others]])
            found = pa.concat_tables([found, tables[kind]])
        tables[kind] = found if (numbers[1:] > numbers[:-1]).all() else found.take(np.argsort(numbers))
    places = np.empty((count, 2), dtype=np.int64)
    places[alike.rest_lines] = decoded.places
    for group in (group for groups in alike.groups.values() for group in groups):
        places[group.lines, 0], places[group.lines, 1] = group.numbers["seq"], group.numbers["ns"]
    return replace(decoded, places=places), tables


def _table_of_groups(kind: str, groups: Sequence[Group], file: TraceFile) -> pa.Table:
    """The rows of one group behind those of the other."""
    counts = [len(group.lines) for group in groups]
    columns = []
    for field in EVENT_SCHEMAS[kind]:
        name = "ns" if field.name == "t_ns" else field.name
        if name in ("file", "role"):
            columns.append(_constant(file.name if name == "file" else file.role, sum(counts)))
        elif all(name in group.numbers for group in groups):
            values = np.concatenate([group.numbers[name] for group in groups])
            columns.append(pa.array(values + file.offset_ns if name == "ns" else values))
        else:
            pieces = [
                pa.array(group.numbers[name])
                if name in group.numbers
                else _constant(getattr(group.event, name), len(group.lines), field.type)
                for group in groups
            ]
            columns.append(pa.chunked_array(pieces, field.type))
    return pa.table(columns, schema=EVENT_SCHEMAS[kind])


def tables_of(decoded: Decoded, file: TraceFile) -> Tables:
    """A chunk of one file as tables; times are moved to the run's clock."""
    return {kind: _table(kind, events, file) for kind, events in decoded.events.items()}


def _table(kind: str, events: Sequence[Any], file: TraceFile) -> pa.Table:
    schema = EVENT_SCHEMAS[kind]
    names = (*_PLACE, *schema.names[len(_PLACE) + 2 :])
    values = dict(zip(names, zip(*map(attrgetter(*names), events), strict=True), strict=True))
    values["t_ns"] = pa.array(values.pop("ns"), pa.int64())
    if file.offset_ns:
        values["t_ns"] = pa.compute.add(values["t_ns"], file.offset_ns)
    values["file"], values["role"] = _constant(file.name, len(events)), _constant(file.role, len(events))
    for name, type_ in KINDS[kind].fields.items() if kind in KINDS else ():
        if type_ is Type.DETAIL:
            values[name] = [None if each is None else _ENCODE(each).decode() for each in values[name]]
        elif type_ is Type.PARTITIONS:
            values[name] = [[(one.topic, one.partition) for one in each] for each in values[name]]
    return pa.table([_column(values[field.name], field.type) for field in schema], schema=schema)


def _column(values: Any, type_: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, type_)


def _constant(value: Any, count: int, type_: pa.DataType | None = None) -> pa.Array:
    return pa.repeat(pa.scalar(value, type_ or pa.string()), count)


def _has_impossible_ranges(tables: Tables) -> bool:
    """Whether an event has a range of records that kernel.trace.check.is_range refuses."""
    for kind, pairs in RECORD_RANGES.items():
        for first, last in pairs if kind in tables else ():
            more = pa.compute.subtract(tables[kind][last], tables[kind][first])
            least = pa.compute.min_max(more).as_py()
            if more.null_count and not tables[kind][first].is_null().equals(tables[kind][last].is_null()):
                return True
            if least["min"] is not None and not 0 <= least["min"] <= least["max"] < RECORDS_MAX:
                return True
    return False


def joined(parts: Iterable[Tables]) -> Tables:
    """Several tables of each kind, one behind the other."""
    found: dict[str, list[pa.Table]] = {}
    for part in parts:
        for kind, table in part.items():
            found.setdefault(kind, []).append(table)
    return {kind: pa.concat_tables(tables) for kind, tables in found.items()}


def labelled(run: TraceRun, tables: Tables) -> Tables:
    """The tables with the columns that say which run it is."""
    return {kind: with_run(run, table) for kind, table in tables.items()}


def with_run(run: TraceRun, table: pa.Table) -> pa.Table:
    values = (run.run_id, run.scenario, run.design, run.seed, run.repeat)
    for place, (column, value) in enumerate(zip(RUN_COLUMNS, values, strict=True)):
        table = table.add_column(place, column, _constant(value, len(table), column.type))
    return table


def write_part(folder: Place, number: int, tables: Tables) -> None:
    """Write one part of every kind that it has; writing it again replaces it."""
    make_folder(folder)
    for kind, table in tables.items():
        write_table(folder / f"kind={kind}" / f"part-{number:05}.parquet", table)


def write_table(path: Place, table: pa.Table) -> None:
    """Write one file of a table, whole or not at all; its columns get the names that they have in files.

    Its folder may be new, but not the one above, which may be gone because the analysis was broken off.
    """
    table = as_in_files(table).replace_schema_metadata(_VERSION)
    make_folder(path.parent)
    with whole(path) as file:
        pq.write_table(table, file, **_encoding(table.schema))


def as_in_files(table: pa.Table) -> pa.Table:
    """The same with the names that its columns have in files."""
    return table.rename_columns(named_in_files(table.schema))


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Numbers mostly go up by a little, so that differences are small; texts repeat. Halves the time, and takes a
    thirtieth of the space of a polling member's events.
    """
    numbers = [column.name for column in schema if column.type == pa.int64()]
    return {
        "compression": "zstd",
        "use_dictionary": [column.name for column in schema if column.type == pa.string()],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "write_statistics": numbers,
    }


def read_part(
    folder: Place,
    number: int,
    kinds: Iterable[str] = EVENT_SCHEMAS,
    columns: Callable[[str], Sequence[str] | None] = lambda _: None,
    encoded: Container[str] = (),
) -> Tables:
    """One part of the given kinds, with the columns that say which run it is, or only those that `columns` names.

    Text stays as numbers into a dictionary in tables of the kinds that `encoded` has.
    """
    found = {}
    for kind in kinds:
        path = folder / f"kind={kind}" / f"part-{number:05}.parquet"
        if exists(path):
            wanted = columns(kind)
            texts = (
                [field.name for field in EVENT_SCHEMAS[kind] if field.type == pa.string()] if kind in encoded else []
            )
            named = [FILE_NAMES.get(name, name) for name in texts]
            with pq.ParquetFile(**arrow_source(path), read_dictionary=named, pre_buffer=False) as file:
                table = file.read(columns=None if wanted is None else [FILE_NAMES.get(name, name) for name in wanted])
            found[kind] = table.rename_columns([_READ_AS.get(name, name) for name in table.column_names])
    return found


def by_run(tables: Tables) -> dict[str, Tables]:
    """The tables of each run by its id, without the columns that say which it is; the rows of a run are together."""
    found: dict[str, Tables] = {}
    for kind, table in tables.items():
        places = table["run_id"].combine_chunks().dictionary_encode()
        numbers = np.asarray(places.indices)
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(table)]
        for begin, end in pairwise(edges):
            found.setdefault(places.dictionary[numbers[begin]].as_py(), {})[kind] = table.slice(begin, end - begin)
    return {run_id: unlabelled(of_one) for run_id, of_one in found.items()}


def unlabelled(tables: Tables) -> Tables:
    """The tables of one run without the columns that say which it is."""
    labels = {column.name for column in RUN_COLUMNS}
    return {kind: table.drop_columns([*labels & {*table.column_names}]) for kind, table in tables.items()}


def rows_of(tables: Tables, *kinds: str) -> list[dict[str, Any]]:
    """The events of some kinds as mappings with their `kind`, in the order of their times."""
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        if kind in tables:
            rows += [{"kind": kind, **row} for row in tables[kind].to_pylist()]
    rows.sort(key=lambda row: (row["t_ns"], row["seq"]))
    return rows
