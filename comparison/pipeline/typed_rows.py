"""Python values as rows with a schema: what one stage of the plan hands to the next.

The schema is derived from a class's annotations, so that it cannot differ from it: a dataclass, a NamedTuple or a
msgspec.Struct is a struct, a list a list, a mapping a list of keys and values. A list of flat objects is JSON, and so
is what JSON from outside may hold (`Any`). Thus Spark sees columns that it can select, and nothing is pickled.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernel.platform.places import place_of

_Value = TypeVar("_Value")
#: Names that annotations of our classes use and that their modules import for type checkers only.
_NAMES: Mapping[str, Any] = {
    "Mapping": Mapping,
    "Sequence": Sequence,
    "Place": Path,
    "NDArray": NDArray,
    "Numbers": NDArray[np.int64],
}


class Column(NamedTuple):
    """How values of one type are stored: the Arrow type, and the ways there and back."""

    type: pa.DataType
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


_PLAIN: Mapping[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}
_JSON = Column(pa.string(), lambda value: msgspec.json.encode(value).decode(), msgspec.json.decode)
#: A path here, or in a store.
_PLACE = Column(pa.binary(), lambda place: os.fsencode(str(place)), lambda data: place_of(os.fsdecode(data)))
#: Numbers of any shape.
_ARRAY = Column(
    pa.struct([("shape", pa.list_(pa.int64())), ("values", pa.list_(pa.int64()))]),
    lambda array: {"shape": array.shape, "values": array.ravel()},
    lambda row: np.array(row["values"], np.int64).reshape(row["shape"]),
)


def _stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


#: A table in Arrow's own stream format: Spark would turn each of its rows into its own format and back, which took more
#: CPU time than all that is done with them.
_TABLE = Column(pa.binary(), _stream_of, lambda data: pa.ipc.open_stream(data).read_all())


@cache
def column(hint: Any) -> Column:
    """The column for a type. Raises TypeError for one that has none."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return Column(_PLAIN[hint], _same, _same)
    if hint is Any:
        return _JSON
    if hint is Path:
        return _PLACE
    if hint is pa.Table:
        return _TABLE
    if origin is np.ndarray:
        return _ARRAY
    if origin in (Union, UnionType):
        return _either(arguments)
    if origin is tuple and arguments[-1] is not ...:
        return _struct({f"_{place}": each for place, each in enumerate(arguments, 1)}, tuple, lambda *each: each)
    if origin is not None and issubclass(origin, Mapping):
        return _JSON if arguments == (str, Any) else _mapping(*arguments)
    if origin is not None and issubclass(origin, Collection):
        kind = list if origin in (Sequence, Collection) else origin
        return _texts(arguments[0], kind) if _is_flat(arguments[0]) else _several(column(arguments[0]), kind)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Column(pa.string(), lambda value: value.value, hint)
    if isinstance(hint, type) and (fields := _fields_of(hint)):
        return _struct(
            fields,
            lambda value: [getattr(value, name) for name in fields],
            lambda *each: hint(**dict(zip(fields, each, strict=True))),
        )
    raise TypeError(f"no column holds values of {hint!r}")


def _fields_of(kind: type) -> dict[str, Any]:
    names: Iterable[str] = getattr(kind, "__struct_fields__", getattr(kind, "_fields", ()))
    if dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
    hints = typing.get_type_hints(kind, localns=dict(_NAMES))
    return {name: hints[name] for name in names}


def _either(arguments: Sequence[Any]) -> Column:
    """One of several types, and perhaps nothing. Of several classes, the name and the fields as JSON."""
    known = [each for each in arguments if each is not NoneType]
    if len(known) == 1:
        type_, pack, unpack = column(known[0])
        return Column(
            type_,
            lambda value: None if value is None else pack(value),
            lambda row: None if row is None else unpack(row),
        )
    by_name = {each.__name__: each for each in known}
    return Column(
        pa.struct([("is", pa.string()), ("fields", pa.string())]),
        lambda value: {"is": type(value).__name__, "fields": msgspec.json.encode(value).decode()},
        lambda row: msgspec.json.decode(row["fields"], type=by_name[row["is"]]),
    )


def _struct(fields: Mapping[str, Any], values: Callable[[Any], Iterable[Any]], make: Callable[..., Any]) -> Column:
    columns = {name: column(hint) for name, hint in fields.items()}
    packs = [(name, each.pack) for name, each in columns.items()]
    unpacks = [(name, each.unpack) for name, each in columns.items()]
    return Column(
        pa.struct([(name, each.type) for name, each in columns.items()]),
        lambda value: {name: pack(each) for (name, pack), each in zip(packs, values(value), strict=True)},
        lambda row: make(*(unpack(row[name]) for name, unpack in unpacks)),
    )


def _several(of: Column, kind: Callable[[Iterable[Any]], Any]) -> Column:
    return Column(
        pa.list_(of.type),
        lambda values: [of.pack(each) for each in values],
        lambda rows: kind(of.unpack(each) for each in rows),
    )


def _is_flat(hint: Any) -> bool:
    """Whether it is a class of words and whole numbers only."""
    if not isinstance(hint, type):
        return False
    types = {one for each in _fields_of(hint).values() for one in typing.get_args(each) or (each,)}
    return bool(types) and types <= {int, str, bool, NoneType}


def _texts(of: type, kind: Callable[[Iterable[Any]], Any]) -> Column:
    """Of objects that there may be a hundred thousand of: as structs they took ten times the CPU time on their way."""
    decode = msgspec.json.Decoder(list[of]).decode  # type: ignore[valid-type]
    return Column(pa.string(), lambda values: msgspec.json.encode([*values]).decode(), lambda text: kind(decode(text)))


def _mapping(key: Any, value: Any) -> Column:
    keys, values = column(key), column(value)
    return Column(
        pa.list_(pa.struct([("key", keys.type), ("value", values.type)])),
        lambda mapping: [{"key": keys.pack(name), "value": values.pack(each)} for name, each in mapping.items()],
        lambda rows: {keys.unpack(row["key"]): values.unpack(row["value"]) for row in rows},
    )


def schema_of(kind: type) -> pa.Schema:
    """The columns of a class of rows."""
    return pa.schema(list(column(kind).type))


def batch_of(kind: type[_Value], values: Sequence[_Value]) -> pa.RecordBatch:
    """One row a value."""
    type_, pack, _ = column(kind)  # type: ignore[arg-type]  # a class has a hash
    return pa.RecordBatch.from_struct_array(pa.array([pack(each) for each in values], type_))


def values_of(kind: type[_Value], rows: pa.RecordBatch | pa.Table) -> list[_Value]:
    """The values of such rows."""
    unpack = column(kind).unpack  # type: ignore[arg-type]  # likewise
    return [unpack(row) for row in rows.to_pylist()]
