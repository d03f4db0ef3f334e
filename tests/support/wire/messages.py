"""Random Kafka messages, generated from the codec's schemas as the mappings that `kernel.wire` takes."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kernel.wire.errors import ErrorCode
from kernel.wire.schema import Field, entity_class, fields_of
from kernel.wire.versions import SERVED, Api

#: Every (api, version) of the version table.
SERVED_VERSIONS = [(api, version) for api, (low, high) in SERVED.items() for version in range(low, high + 1)]


def entity_of(api: Api, version: int, *, request: bool) -> type[Any]:
    return entity_class(api, version, request=request)


def mappings(entity: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings that fill every field of `entity`."""
    return st.fixed_dictionaries({field.name: _values(field) for field in fields_of(entity)})


def partial_mappings(entity: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings that fill some fields of `entity`, also of what is nested."""
    each = {field.name: _values(field, partial_mappings) for field in fields_of(entity)}
    return st.fixed_dictionaries({}, optional=each)


def _values(
    field: Field, of_nested: Callable[[type[Any]], st.SearchStrategy[Any]] = mappings
) -> st.SearchStrategy[Any]:
    one = of_nested(field.nested) if field.nested is not None else _KINDS[field.kind]
    values: st.SearchStrategy[Any] = st.lists(one, max_size=2).map(tuple) if field.is_array else one
    # A null tagged field is absent; kio cannot write null for fields with another default.
    return st.none() | values if field.nullable and field.tag is None else values


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _milliseconds(bits: int) -> st.SearchStrategy[datetime.timedelta]:
    # A 64-bit duration may be longer than a timedelta can be.
    return _integers(min(bits, 47)).map(lambda ms: datetime.timedelta(milliseconds=ms))


_TEXTS = st.text(max_size=6)
_BYTES = st.binary(max_size=12)
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint16": st.integers(0, 2**16 - 1),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": _TEXTS,
    "bytes": _BYTES,
    "records": _BYTES,
    "uuid": st.uuids(),
    "error_code": st.sampled_from(list(ErrorCode)),
    "timedelta_i32": _milliseconds(32),
    "timedelta_i64": _milliseconds(64),
    "datetime_i64": st.integers(0, 4_000_000_000).map(lambda s: datetime.datetime.fromtimestamp(s, datetime.UTC)),
}
