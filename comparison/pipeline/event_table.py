"""Write trace files to one Parquet file: one task of the ingest, in plain Python.

Every line becomes a row. The row of an unusable line has the reason in `problem`, the beginning of the line in `line`,
and only those common fields that have the right type.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kernel.trace.events import COMMON_FIELDS, KINDS, Type
from kernel.trace.reader import end_of, event_of, header_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Rows that a task holds in memory at a time.
ROWS_A_GROUP = 50_000
_SHOWN_CHARACTERS = 200

#: Every field of every kind; a name means the same type wherever it occurs.
EVENT_FIELDS: Mapping[str, Type] = {name: type_ for kind in KINDS.values() for name, type_ in kind.fields.items()}
#: The columns of the table: run, file, time on the run's clock, problem, and the event's fields.
COLUMNS: Mapping[str, Type] = {
    "run": Type.INT,
    "role": Type.TEXT,
    "file": Type.INT,
    "t_ns": Type.INT,
    "problem": Type.TEXT,
    "line": Type.TEXT,
    **COMMON_FIELDS,
    **EVENT_FIELDS,
}
_ARROW_TYPES: Mapping[Type, pa.DataType] = {
    Type.TEXT: pa.string(),
    Type.INT: pa.int64(),
    Type.FLAG: pa.bool_(),
    Type.PARTITIONS: pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int64())])),
    Type.DETAIL: pa.string(),
}
SCHEMA = pa.schema([(name, _ARROW_TYPES[type_]) for name, type_ in COLUMNS.items()])
_DETAILS = frozenset(name for name, type_ in EVENT_FIELDS.items() if type_ is Type.DETAIL)


def write_table(files: Sequence[Mapping[str, Any]], folder: str) -> int:
    """Write the events of some files to one Parquet file in `folder`; returns the number of rows.

    Each file is a mapping: file (its number), run, role, offset_ns, problem (of the whole file), path. The result
    is named for the first one, so that a repeated task replaces what it wrote. Events of one kind are stored together:
    most columns of a row group are then empty, and a stage skips the row groups that it does not need.
    """
    path = Path(folder) / f"part-{files[0]['file']:05}.parquet"
    count = 0
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for file in files:
            for row in rows_of(file):
                group = groups[row.get("kind", "")]
                group.append(row)
                count += 1
                if len(group) == ROWS_A_GROUP:
                    writer.write_table(_table(group))
                    group.clear()
        for group in groups.values():
            if group:
                writer.write_table(_table(group))
    return count


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    used = set().union(*rows)
    return pa.Table.from_arrays(
        [
            pa.array([row.get(field.name) for row in rows], field.type)
            if field.name in used
            else pa.nulls(len(rows), field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )


def rows_of(file: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of one file as rows, without its header; columns that are null may be absent."""
    whose = {"run": file["run"], "role": file["role"], "file": file["file"]}
    for number, line in enumerate(lines_of(Path(file["path"]))):
        if number == 0 and file["problem"] is None and header_of(line).header is not None:
            continue
        if file["problem"] is None and end_of(line) is not None:
            continue
        event, reason, wrong = event_of(line)
        row = {**whose, **_fields_of(event, wrong)} if event is not None else whose.copy()
        if "ns" in row:
            row["t_ns"] = row["ns"] + file["offset_ns"]
        if (problem := file["problem"] or reason) is not None:
            row |= {"problem": str(problem), "line": line.decode("utf-8", errors="replace")[:_SHOWN_CHARACTERS]}
        yield row


def _fields_of(event: dict[str, Any], wrong: Sequence[str]) -> dict[str, Any]:
    """The fields that have a column; of a flawed event, or one of an unknown kind, only the common ones."""
    kind = KINDS.get(str(event.get("kind")))
    if kind is None or wrong:
        wrong_fields = {complaint.partition(" ")[0] for complaint in wrong}
        return {name: event[name] for name in COMMON_FIELDS if name in event and name not in wrong_fields}
    fields = {name: event[name] for name in event if name in COMMON_FIELDS or name in kind.fields}
    for name in _DETAILS.intersection(fields):
        if fields[name] is not None:
            fields[name] = msgspec.json.encode(fields[name]).decode()
    return fields
