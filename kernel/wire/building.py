"""Build kio's entities from plain mappings, so that one handler serves every version of its API.

- A name that only other versions of the API have is left out.
- A missing name takes the schema's default, or zero, "", empty or null.
- A name that no version has is a bug and raises `KeyError`.
- Durations may be given in milliseconds, timestamps in epoch milliseconds, error codes as numbers, arrays as any
  iterable.
- None becomes "" or empty if the version does not allow null, as in the answers of Kafka's brokers.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kernel.wire.errors import ErrorCode
from kernel.wire.schema import EMPTY, Field, fields_of, names_of_all_versions, zero_of

if TYPE_CHECKING:
    from kernel.wire.versions import Api

Convert = Callable[[Any], Any]
Build = Callable[[Mapping[str, Any]], Any]


def builder(entity: type[Any], api: Api, *, request: bool) -> Build:
    """A function that builds an instance of `entity` from a mapping; make it once for each class."""
    return _builder(entity, functools.partial(_refuse_unknown, api, request), "")


def _refuse_unknown(api: Api, request: bool, path: str, given: Mapping[str, Any]) -> None:
    known = names_of_all_versions(api, request=request).get(path, frozenset())
    if unknown := sorted(set(given) - known):
        where = f" in {path[1:]}" if path else ""
        raise KeyError(f"{api.name}{where} has no field {', '.join(unknown)} in any version; it has {sorted(known)}")


def _builder(entity: type[Any], check: Callable[[str, Mapping[str, Any]], None], path: str) -> Build:
    plan: list[tuple[str, Convert]] = []
    defaults: dict[str, Any] = {}
    for field in fields_of(entity):
        build = None if field.nested is None else _builder(field.nested, check, f"{path}.{field.name}")
        convert = _converter(field, build)
        plan.append((field.name, convert))
        zero = zero_of(field) if build is None or field.is_array or field.nullable else _zero_entity(field, build)
        defaults[field.name] = convert(zero)

    def fill(given: Mapping[str, Any]) -> Any:
        values = dict(defaults)
        taken = 0
        for name, convert in plan:
            if name in given:
                values[name] = convert(given[name])
                taken += 1
        if taken < len(given):
            check(path, given)
        return entity(**values)

    return fill


def _zero_entity(field: Field, build: Build) -> Any:
    zero = field.default
    return zero if type(zero) is field.nested else build({})


def _converter(field: Field, build: Build | None) -> Convert:
    one = _entity_converter(build) if build is not None else _CONVERTERS.get(field.kind, _same)
    if field.is_array:
        if field.nullable:
            return lambda value: None if value is None else tuple(map(one, value))
        return lambda value: EMPTY if value is None else tuple(map(one, value))
    if field.nullable:
        return lambda value: None if value is None else one(value)
    if field.kind == "string":
        return lambda value: "" if value is None else value
    if field.kind in ("bytes", "records"):
        return lambda value: b"" if value is None else value
    return one


def _entity_converter(build: Build) -> Convert:
    return lambda value: build(value) if isinstance(value, Mapping) else value


def _same(value: Any) -> Any:
    return value


def _duration(value: Any) -> datetime.timedelta:
    return value if isinstance(value, datetime.timedelta) else datetime.timedelta(milliseconds=value)


def _point_in_time(value: Any) -> datetime.datetime | None:
    if not isinstance(value, int):
        return value  # type: ignore[no-any-return]  # a datetime, or None
    return None if value < 0 else datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)


_CONVERTERS: dict[str, Convert] = {
    "error_code": ErrorCode,
    "timedelta_i32": _duration,
    "timedelta_i64": _duration,
    "datetime_i64": _point_in_time,
}
