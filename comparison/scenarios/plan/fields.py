"""The fields of steps and scenarios: their names and types, read from the dataclasses, and values made to fit them.

A file's keys are the fields' names, so that a new step, or a new field, needs nothing here.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kernel.decimals import decimal
from kernel.errors import ConfigurationError

#: Names of types that modules import for annotations only.
_TYPES = {**vars(typing), **vars(collections.abc), "Step": object}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Misfit(ConfigurationError):
    """A value does not fit its field; `path` leads to the part of it that does not."""

    def __init__(self, why: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(why)
        self.path = path


@cache
def types_of(cls: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, in their order."""
    hints = get_type_hints(cls, localns=_TYPES)
    return {field.name: hints[field.name] for field in fields(cls)}


def required(cls: type) -> list[str]:
    """The fields without a default."""
    return [field.name for field in fields(cls) if not has_default(field)]


def has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def default_of(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def fitted(value: object, wanted: Any) -> Any:
    """A value of a TOML file as a field of this type has it. Raises `Misfit`."""
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return _of_several(value, [part for part in parts if part is not types.NoneType])
    if origin is Literal:
        return _checked(value, any(value == word and type(value) is type(word) for word in parts), wanted)
    if origin is tuple:
        if not isinstance(value, list):
            raise Misfit(f"must be {in_words(wanted)}, is {_shown(value)}")
        return tuple(_inside(each, parts[0], place) for place, each in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _table(value, *parts)
    if wanted is float:
        return _checked(value, isinstance(value, int | float) and not isinstance(value, bool), wanted)
    return _checked(value, type(value) is wanted, wanted)


def in_words(wanted: Any) -> str:
    """A type, for people."""
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(in_words(part) for part in parts if part is not types.NoneType)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin is tuple:
        each = _WORDS.get(parts[0], "a value").removeprefix("a ")
        return f"a list of {each}s"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    return _WORDS.get(wanted, str(wanted))


def _of_several(value: object, wanted: list[Any]) -> Any:
    for each in wanted:
        try:
            return fitted(value, each)
        except Misfit:
            if len(wanted) == 1:
                raise
    raise Misfit(f"must be {' or '.join(in_words(each) for each in wanted)}, is {_shown(value)}")


def _checked(value: object, fits: bool, wanted: Any) -> object:
    if not fits:
        raise Misfit(f"must be {in_words(wanted)}, is {_shown(value)}")
    return value


def _inside(value: object, wanted: Any, place: str | int) -> Any:
    try:
        return fitted(value, wanted)
    except Misfit as misfit:
        raise Misfit(str(misfit), (place, *misfit.path)) from misfit


def _table(value: object, key: Any, wanted: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Misfit(f"must be a table, is {_shown(value)}")
    if key is int:
        if strange := next((name for name in value if decimal(name) is None), None):
            raise Misfit(f"has the key {strange!r}, which must be a number", (strange,))
        return {decimal(name): _inside(each, wanted, name) for name, each in value.items()}
    if wanted is str:
        return {name: _setting(each, path) for name, each, path in flat(value)}
    return {name: _inside(each, wanted, name) for name, each in value.items()}


def flat(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, object, tuple[str, ...]]]:
    """Every (name, value, path): `session.timeout.ms = 6000` is three tables in TOML, and one of Kafka's settings."""
    found: list[tuple[str, object, tuple[str, ...]]] = []
    for key, value in table.items():
        path = (*above, key)
        found += flat(value, path) if isinstance(value, dict) else [(".".join(path), value, path)]
    return found


def _setting(value: object, path: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise Misfit(f"must be a text, a number, true or false, is {_shown(value)}", path)
    return str(value)


def _shown(value: object) -> str:
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)
