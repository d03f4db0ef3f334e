"""The columns of the event tables, and the typed event of each kind that a line is decoded to.

Both are made from the one table of kinds (`kernel.trace.events.KINDS`), so that the writer, the decoder and the tables
agree.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pyarrow as pa

from kernel.trace.column_names import ARROW_TYPES, FILE_NAMES
from kernel.trace.events import COMMON_FIELDS, KINDS, TIME_NS_LIMIT, Type
from kernel.trace.limits import LIMITS, NUMBER_LIMIT
from kernel.trace.words import ENDINGS, WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The table for events of kinds that this version does not know: their common fields.
UNKNOWN_KIND = "unknown"
_NULLABLE_COMMON = frozenset({"member", "stream"})

_Int = Annotated[int, msgspec.Meta(gt=-NUMBER_LIMIT, lt=NUMBER_LIMIT)]
#: Times are added to other times (kernel.trace.check.is_time).
_Ns = Annotated[int, msgspec.Meta(gt=-TIME_NS_LIMIT, lt=TIME_NS_LIMIT)]


class _Partition(msgspec.Struct, frozen=True, gc=False):
    topic: str
    partition: _Int


_PYTHON_TYPES: Mapping[Type, Any] = MappingProxyType(
    {Type.TEXT: str, Type.INT: _Int, Type.FLAG: bool, Type.PARTITIONS: list[_Partition], Type.DETAIL: dict}
)


def _event_type(name: str) -> type[msgspec.Struct]:
    kind = KINDS[name]
    fields: list[Any] = []
    for field, type_ in {**COMMON_FIELDS, **kind.fields}.items():
        if field == "kind":
            continue
        shape = _Ns if field == "ns" else _PYTHON_TYPES[type_]
        if (name, field) in LIMITS:
            low, high = LIMITS[name, field]
            shape = Annotated[int, msgspec.Meta(ge=low, le=high)]
        if (name, field) in WORDS:
            shape = Literal[WORDS[name, field]]
        if (name, field) in ENDINGS:
            shape = Annotated[str, msgspec.Meta(pattern=rf"({'|'.join(ENDINGS[name, field])})\Z")]
        if field in kind.optional:
            fields.append((field, shape | None, None))
        elif field in _NULLABLE_COMMON:
            fields.append((field, shape | None))
        else:
            fields.append((field, shape))
    return msgspec.defstruct(name, fields, tag=name, tag_field="kind", kw_only=True, frozen=True, gc=False)


#: The event of each kind; the decoder checks every field that the table of kinds names, and its type.
EVENT_TYPES: Mapping[str, type[msgspec.Struct]] = MappingProxyType({name: _event_type(name) for name in KINDS})
ANY_EVENT = reduce(or_, EVENT_TYPES.values())


def named_in_files(schema: pa.Schema) -> list[str]:
    """The names of a table's columns in files."""
    return [FILE_NAMES.get(name, name) for name in schema.names]


#: The first columns of every table: which run, as result.json and the folders name it.
RUN_COLUMNS = (
    pa.field("run_id", pa.string()),
    pa.field("scenario", pa.string()),
    pa.field("design", pa.string()),
    pa.field("seed", pa.int64()),
    pa.field("repeat", pa.int64()),
)
_PLACE_COLUMNS = (
    pa.field("file", pa.string()),
    pa.field("role", pa.string()),
    pa.field("seq", pa.int64()),
    pa.field("t_ns", pa.int64()),
    *(pa.field(name, ARROW_TYPES[COMMON_FIELDS[name]]) for name in ("process", "member", "stream", "cause")),
)
#: The columns of a run's events by kind, without those of the run.
EVENT_SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        **{
            name: pa.schema([*_PLACE_COLUMNS, *((field, ARROW_TYPES[type_]) for field, type_ in kind.fields.items())])
            for name, kind in KINDS.items()
        },
        UNKNOWN_KIND: pa.schema([*_PLACE_COLUMNS, ("kind", pa.string())]),
    }
)
