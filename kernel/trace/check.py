"""Checking events against the table; the writer does it before it writes, the reader after it has read.

Every event passes here twice, so the case that nothing is wrong is one loop over what was looked up beforehand.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kernel.trace.events import COMMON_FIELDS, KINDS, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def problems(event: Mapping[str, object]) -> list[str]:
    """What is wrong with an event by the table; empty when nothing is. Unknown kinds are not wrong.

    Each complaint begins with the name of its field.
    """
    kind = event.get("kind")
    rules = _RULES_OF_KIND.get(kind, _COMMON_RULES) if isinstance(kind, str) else _COMMON_RULES
    found = []
    for rule in rules:
        value = event.get(rule.name)
        if type(value) is rule.expected:
            if rule.is_good is None or rule.is_good(value):
                continue
            found.append(f"{rule.name} {rule.otherwise}")
        elif value is None:
            if rule.name not in event and not rule.may_be_absent:
                found.append(f"{rule.name} is missing")
            elif not rule.may_be_null:
                found.append(f"{rule.name} is null")
        else:
            found.append(f"{rule.name} should be {rule.wanted.value}, is {type(value).__name__}")
    return found


class _Rule(NamedTuple):
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


def _are_partitions(value: Sequence[object]) -> bool:
    return all(
        isinstance(each, dict)
        and isinstance(each.get("topic"), str)
        and type(each.get("partition")) is int
        and _fits(each["partition"])
        for each in value
    )


#: By type: what JSON makes of it, a closer look where one is needed, and what to say when that finds something.
_CHECKS: Mapping[Type, tuple[type, Callable[..., bool] | None, str]] = MappingProxyType(
    {
        Type.TEXT: (str, None, ""),
        Type.INT: (int, _fits, "does not fit into 64 bits"),
        Type.FLAG: (bool, None, ""),
        Type.PARTITIONS: (list, _are_partitions, "should give a topic and a partition in each place"),
        Type.DETAIL: (dict, None, ""),
    }
)
_NULLABLE_COMMON = frozenset({"member", "stream"})


def _rule(name: str, type_: Type, *, may_be_null: bool, may_be_absent: bool) -> _Rule:
    return _Rule(name, type_, *_CHECKS[type_], may_be_null, may_be_absent)


_COMMON_RULES = tuple(
    _rule(name, type_, may_be_null=name in _NULLABLE_COMMON, may_be_absent=False)
    for name, type_ in COMMON_FIELDS.items()
)
_RULES_OF_KIND: Mapping[str, tuple[_Rule, ...]] = MappingProxyType(
    {
        name: _COMMON_RULES
        + tuple(
            _rule(field, type_, may_be_null=field in kind.optional, may_be_absent=field in kind.optional)
            for field, type_ in kind.fields.items()
        )
        for name, kind in KINDS.items()
    }
)
