"""Check lines against the table of kinds: the writer before it writes, the reader after it reads.

Every event is checked twice, so a correct one costs a single loop over checks that are prepared once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kernel.trace.events import COMMON_FIELDS, END_FIELDS, HEADER_FIELDS, KINDS, TIME_NS_LIMIT, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def problems(event: Mapping[str, object]) -> list[str]:
    """The ways in which an event breaks the schema; empty for a valid one. Unknown kinds are valid.

    Each message begins with the name of the field.
    """
    kind = event.get("kind")
    return _problems(event, _CHECKS_OF_KIND.get(kind, _COMMON_CHECKS) if isinstance(kind, str) else _COMMON_CHECKS)


def header_problems(header: Mapping[str, object]) -> list[str]:
    """The same for a header; its times have narrower limits (`TIME_NS_LIMIT`)."""
    return _problems(header, _HEADER_CHECKS)


def end_problems(end: Mapping[str, object]) -> list[str]:
    """The same for an end marker."""
    return _problems(end, _END_CHECKS)


def _problems(fields: Mapping[str, object], checks: Iterable[_FieldCheck]) -> list[str]:
    found = []
    for check in checks:
        value = fields.get(check.name)
        if type(value) is check.expected:
            if check.is_good is None or check.is_good(value):
                continue
            found.append(f"{check.name} {check.otherwise}")
        elif value is None:
            if check.name not in fields and not check.may_be_absent:
                found.append(f"{check.name} is missing")
            elif not check.may_be_null:
                found.append(f"{check.name} is null")
        else:
            found.append(f"{check.name} should be {check.wanted.value}, is {type(value).__name__}")
    return found


class _FieldCheck(NamedTuple):
    """What one field must be."""

    name: str
    wanted: Type
    expected: type
    is_good: Callable[..., bool] | None
    otherwise: str
    may_be_null: bool
    may_be_absent: bool


def _fits(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def is_time(ns: int) -> bool:
    """Whether a time can be added to others without overflow."""
    return -TIME_NS_LIMIT < ns < TIME_NS_LIMIT


def _are_partitions(value: Sequence[object]) -> bool:
    return all(
        isinstance(each, dict)
        and isinstance(each.get("topic"), str)
        and type(each.get("partition")) is int
        and _fits(each["partition"])
        for each in value
    )


#: For each type: the Python type that JSON decodes to, a check of the value if one is needed, and what a failure says.
_TYPES: Mapping[Type, tuple[type, Callable[..., bool] | None, str]] = MappingProxyType(
    {
        Type.TEXT: (str, None, ""),
        Type.INT: (int, _fits, "does not fit into 64 bits"),
        Type.FLAG: (bool, None, ""),
        Type.PARTITIONS: (list, _are_partitions, "should give a topic and a partition in each entry"),
        Type.DETAIL: (dict, None, ""),
    }
)
_NULLABLE_COMMON = frozenset({"member", "stream"})


def _check(name: str, type_: Type, *, may_be_null: bool, may_be_absent: bool) -> _FieldCheck:
    return _FieldCheck(name, type_, *_TYPES[type_], may_be_null, may_be_absent)


_COMMON_CHECKS = tuple(
    _check(name, type_, may_be_null=name in _NULLABLE_COMMON, may_be_absent=False)
    for name, type_ in COMMON_FIELDS.items()
)
_CHECKS_OF_KIND: Mapping[str, tuple[_FieldCheck, ...]] = MappingProxyType(
    {
        name: _COMMON_CHECKS
        + tuple(
            _check(field, type_, may_be_null=field in kind.optional, may_be_absent=field in kind.optional)
            for field, type_ in kind.fields.items()
        )
        for name, kind in KINDS.items()
    }
)


def _of_whole_line(fields: Mapping[str, Type], times: frozenset[str]) -> tuple[_FieldCheck, ...]:
    """The checks of a header or an end marker: every field is required."""
    checks = (_check(name, type_, may_be_null=False, may_be_absent=False) for name, type_ in fields.items())
    return tuple(
        check._replace(is_good=is_time, otherwise=TIME_OUT_OF_RANGE) if check.name in times else check
        for check in checks
    )


TIME_OUT_OF_RANGE = "is not a possible time"
_HEADER_CHECKS = _of_whole_line(HEADER_FIELDS, frozenset({"monotonic_ns", "wall_ns"}))
_END_CHECKS = _of_whole_line(END_FIELDS, frozenset({"monotonic_ns"}))
