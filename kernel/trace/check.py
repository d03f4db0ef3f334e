"""Checking events against the table; the writer does it before it writes, the reader after it has read."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.trace.events import COMMON_FIELDS, KINDS, Type

if TYPE_CHECKING:
    from collections.abc import Mapping


def problems(event: Mapping[str, object]) -> list[str]:
    """What is wrong with an event by the table above; empty when nothing is. Unknown kinds are not wrong."""
    found = [f"{name} is missing" for name in COMMON_FIELDS if name not in event]
    found += [
        complaint
        for name, kind in COMMON_FIELDS.items()
        if name in event and (complaint := _mismatch(name, event[name], kind, nullable=name in _NULLABLE_COMMON))
    ]
    kind = KINDS.get(str(event.get("kind")))
    if kind is None:
        return found
    for name, type_ in kind.fields.items():
        if name not in event:
            if name not in kind.optional:
                found.append(f"{name} is missing")
        elif complaint := _mismatch(name, event[name], type_, nullable=name in kind.optional):
            found.append(complaint)
    return found


_NULLABLE_COMMON = frozenset({"member", "stream"})

_PYTHON_TYPES: Mapping[Type, tuple[type, ...]] = MappingProxyType(
    {
        Type.TEXT: (str,),
        Type.INT: (int,),
        Type.FLAG: (bool,),
        Type.PARTITIONS: (list,),
        Type.DETAIL: (dict,),
    }
)


def _mismatch(name: str, value: object, type_: Type, *, nullable: bool) -> str | None:
    if value is None:
        return None if nullable else f"{name} is null"
    if not isinstance(value, _PYTHON_TYPES[type_]) or (type_ is Type.INT and isinstance(value, bool)):
        return f"{name} should be {type_.value}, is {type(value).__name__}"
    return None
