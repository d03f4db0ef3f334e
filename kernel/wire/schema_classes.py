"""Define schemas of messages that kio lacks, as classes in the form of kio's own.

kio's reader and writer accept any dataclass with kio's metadata, so these messages need no separate codec. None is
flexible (KIP-482): sizes have a fixed width, and there are no tagged fields.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader
from kio.schema.types import TopicName
from kio.static.constants import EntityType
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.wire.versions import Api

#: {kio's name of a Kafka type: its Python type}
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "string": TopicName,
    "records": Records | None,
    "error_code": ErrorCode,
    "timedelta_i32": i32Timedelta,
}


class Column(NamedTuple):
    """A field as kio describes it: `kind` is kio's name of the type, '' for an array of nested classes."""

    kind: str
    type_: Any
    default: Any = dataclasses.MISSING


def array_of(part: Any) -> Column:
    return Column("", tuple[part, ...])


class Schema:
    """Makes the classes of a message: the whole and its nested parts share API, version and header."""

    def __init__(self, api: Api, version: int, *, request: bool) -> None:
        self._payload = EntityType.request if request else EntityType.response
        self._described = {
            "__version__": i16(version),
            "__flexible__": False,
            "__api_key__": i16(api),
            "__header_schema__": RequestHeader if request else ResponseHeader,
        }

    def part(self, name: str, /, **fields: str | Column) -> type[Any]:
        return self._made(name, EntityType.nested, fields)

    def whole(self, name: str, /, **fields: str | Column) -> type[Any]:
        return self._made(name, self._payload, fields)

    def _made(self, name: str, kind: EntityType, fields: Mapping[str, str | Column]) -> type[Any]:
        columns: list[tuple[str, Any, Any]] = []
        for field_name, given in fields.items():
            column = Column(given, _TYPES[given]) if isinstance(given, str) else given
            metadata = {"kafka_type": column.kind} if column.kind else {}
            columns.append((field_name, column.type_, dataclasses.field(metadata=metadata, default=column.default)))
        namespace = {"__type__": kind, **self._described}
        return dataclasses.make_dataclass(name, columns, namespace=namespace, frozen=True, slots=True, kw_only=True)
