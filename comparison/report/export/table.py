"""The stream as one Parquet table: a row an event, a column for each field that any kind of event has.

Columns have the names of the analysis's tables (`docs/tables.md`). What a kind does not have is null; fields that this
version does not know are in `other`, as JSON.
"""

from __future__ import annotations

from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kernel.trace.column_names import ARROW_TYPES, FILE_NAMES
from kernel.trace.events import COMMON_FIELDS, KINDS, Type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from comparison.report.export.stream import Recorded, Stream

_ROWS = 50_000
_FIELDS: Mapping[str, Type] = MappingProxyType(
    {name: type_ for kind in KINDS.values() for name, type_ in kind.fields.items()}
)
_OTHER = "other"
SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("scenario", pa.string()),
        ("design", pa.string()),
        ("seed", pa.int64()),
        ("s", pa.float64()),
        ("t_ns", pa.int64()),
        ("role", pa.string()),
        *((name, ARROW_TYPES[type_]) for name, type_ in COMMON_FIELDS.items()),
        *((FILE_NAMES.get(name, name), ARROW_TYPES[type_]) for name, type_ in _FIELDS.items()),
        (_OTHER, pa.string()),
    ]
)


def write_table(stream: Stream, path: Path) -> None:
    """Write the table. Raises OSError."""
    run = {"run_id": stream.run, "scenario": stream.scenario, "design": stream.design, "seed": stream.seed}
    rows = ({**run, **_row(each)} for each in stream.events)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        while some := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(some, SCHEMA))


def _row(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    kind = KINDS.get(event["kind"])
    known = kind.fields if kind is not None else {}
    row = {"s": recorded.seconds, "t_ns": recorded.t_ns, "role": recorded.role}
    row |= {name: event[name] for name in COMMON_FIELDS}
    for name in known:
        value = event.get(name)
        is_detail = value is not None and known[name] is Type.DETAIL
        row[FILE_NAMES.get(name, name)] = _json(value) if is_detail else value
    other = {name: value for name, value in event.items() if name not in COMMON_FIELDS and name not in known}
    return {**row, _OTHER: _json(other) if other else None}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
