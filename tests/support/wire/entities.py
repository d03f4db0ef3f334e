"""Build kio's entities from the mappings that `kernel.wire.writing` writes: what its bytes are held against."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from kernel.wire.errors import ErrorCode
from kernel.wire.schema import Field, fields_of, zero_of


def built(entity: type[Any], given: Mapping[str, Any]) -> Any:
    """An instance of `entity`. What is missing has its default; names that the entity lacks are ignored."""
    return entity(**{field.name: _value(field, given) for field in fields_of(entity)})


def _value(field: Field, given: Mapping[str, Any]) -> Any:
    if field.name not in given and field.nested is not None and not field.is_array and not field.nullable:
        return field.default if type(field.default) is field.nested else built(field.nested, {})
    value: Any = given[field.name] if field.name in given else zero_of(field)
    if value is None and not field.nullable:
        value = () if field.is_array else _NULLS.get(field.kind)
    if field.is_array and value is not None:
        return tuple(_one(field, each) for each in value)
    return None if value is None else _one(field, value)


def _one(field: Field, value: Any) -> Any:
    if field.nested is not None:
        return built(field.nested, value) if isinstance(value, Mapping) else value
    match field.kind, value:
        case "error_code", _:
            return ErrorCode(value)
        case (("timedelta_i32" | "timedelta_i64"), int()):
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64", int():
            return None if value < 0 else datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    return value


_NULLS = {"string": "", "bytes": b"", "records": b""}
