"""Entity classes of messages, and a description of their fields: name, type, nullability, tag."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
import typing
from dataclasses import MISSING, dataclass
from typing import Any

from kio.index import UnknownEntity, load_request_schema, load_response_schema

from kernel.wire import server_messages
from kernel.wire.first_versions import first_version
from kernel.wire.versions import SERVED, Api


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an entity class.

    `kind` is kio's name of the type ("int32", "string", ...), or '' when `nested` is an entity class.
    """

    name: str
    kind: str
    nested: type[Any] | None
    is_array: bool
    nullable: bool
    tag: int | None
    default: object


def fields_of(entity: type[Any]) -> tuple[Field, ...]:
    """The fields of an entity class in wire order."""
    known = _FIELDS.get(entity)
    if known is None:
        known = _FIELDS[entity] = tuple(_field(field) for field in dataclasses.fields(entity))
    return known


_FIELDS: dict[type[Any], tuple[Field, ...]] = {}


def _field(field: dataclasses.Field[Any]) -> Field:
    type_: Any = field.type
    nullable = isinstance(type_, types.UnionType)
    if nullable:
        (type_,) = (arm for arm in typing.get_args(type_) if arm is not types.NoneType)
    is_array = typing.get_origin(type_) is tuple
    if is_array:
        type_ = typing.get_args(type_)[0]
        if isinstance(type_, types.UnionType):  # arrays of uuid: the zero uuid reads as None
            type_ = typing.get_args(type_)[0]
    nested: type[Any] | None = type_ if isinstance(type_, type) and dataclasses.is_dataclass(type_) else None
    kind = "" if nested is not None else str(field.metadata["kafka_type"])
    return Field(field.name, kind, nested, is_array, nullable, field.metadata.get("tag"), field.default)


def is_flexible(entity: type[Any]) -> bool:
    """Whether the class has compact sizes and tagged fields (KIP-482)."""
    return bool(entity.__flexible__)


def entity_class(api: Api, version: int, *, request: bool) -> type[Any]:
    """The class of a whole message: kio's, or our own where kio has none. Raises kio's `UnknownEntity`."""
    own = (server_messages.REQUESTS if request else server_messages.RESPONSES).get((api, version))
    own = own or first_version(api, version, request=request)
    if own is not None:
        return own
    return load_request_schema(api, version) if request else load_response_schema(api, version)


@functools.cache
def names_of_all_versions(api: Api, *, request: bool) -> dict[str, frozenset[str]]:
    """{path of a nested field: names of its fields in any version of the API}; '' is the message itself."""
    found: dict[str, frozenset[str]] = {}
    for version in range(64):
        for path, names in _names(api, version, request=request).items():
            found[path] = found.get(path, frozenset()) | names
    return found


def names_in_other_versions(
    api: Api, version: int, path: str, names: frozenset[str], *, request: bool
) -> frozenset[str]:
    """`names`, if each is one of a field in some version of the API, at the path of a nested field.

    Raises `KeyError` otherwise. Loading a version takes a while, so those come first in which most names are: the
    lowest has what was dropped since, the highest what was added, and then the nearest ones.
    """
    left = names
    nearest = sorted(range(64), key=lambda other: abs(other - version))
    for other in (*SERVED[api], *nearest):
        left -= _names(api, other, request=request).get(path, frozenset())
        if not left:
            return names
    known = names_of_all_versions(api, request=request).get(path, frozenset())
    where = f" in {path[1:]}" if path else ""
    raise KeyError(f"{api.name}{where} has no field {', '.join(sorted(left))} in any version; it has {sorted(known)}")


@functools.cache
def _names(api: Api, version: int, *, request: bool) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with contextlib.suppress(UnknownEntity):
        _collect(entity_class(api, version, request=request), "", found)
    return found


def _collect(entity: type[Any], path: str, found: dict[str, set[str]]) -> None:
    names = found.setdefault(path, set())
    for field in fields_of(entity):
        names.add(field.name)
        if field.nested is not None:
            _collect(field.nested, f"{path}.{field.name}", found)


def zero_of(field: Field) -> object:
    """The value of a field that is not given: its default, or else zero, empty or null."""
    if field.default is not MISSING:
        return field.default
    return None if field.nullable else EMPTY if field.is_array else _ZEROES[field.kind]


#: {kind: size in bytes}; other kinds (strings, bytes) are encoded with their length.
FIXED_BYTES: dict[str, int] = {
    "int8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "float64": 8,
    "uuid": 16,
}

EMPTY: tuple[()] = ()

_ZEROES: dict[str, object] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "error_code", "timedelta_i32", "timedelta_i64"), 0),
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": None,
    "datetime_i64": None,
}
