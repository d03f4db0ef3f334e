"""Check lines against the table of kinds: the writer before it writes, the reader after it reads.

Every event is checked twice, so a correct one costs a single loop over checks that are prepared once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kernel.trace.events import COMMON_FIELDS, END_FIELDS, HEADER_FIELDS, KINDS, TIME_NS_LIMIT, Type
from kernel.trace.limits import DETAIL_DEPTH_MAX, LIMITS, NUMBER_LIMIT, RECORD_RANGES, RECORDS_MAX
from kernel.trace.words import ENDINGS, HEADER_WORDS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def type_problems(event: Mapping[str, object]) -> list[str]:
    """The fields of an event that are missing, of the wrong type or an unknown word; empty for a valid one.

    Unknown kinds are valid. Each message begins with the name of the field. The writer checks only this, because
    numbers from foreign clients may be anything.
    """
    return _problems(event, _of_its_kind(event, _TYPE_CHECKS))


def problems(event: Mapping[str, object]) -> list[str]:
    """All ways in which an event breaks the schema, including values from which no figures can be computed."""
    found = _problems(event, _of_its_kind(event, _CHECKS))
    if found:
        return found
    return [
        f"{first} to {last} is not a range of records"
        for first, last in RECORD_RANGES.get(str(event.get("kind")), ())
        if not is_range(event.get(first), event.get(last))
    ]


def header_problems(header: Mapping[str, object]) -> list[str]:
    """What is wrong with a header, a line each; its times have narrower limits (`TIME_NS_LIMIT`)."""
    return _problems(header, _HEADER_CHECKS)


def end_problems(end: Mapping[str, object]) -> list[str]:
    """What is wrong with an end marker, a line each."""
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


def _is_number(value: int) -> bool:
    return -NUMBER_LIMIT < value < NUMBER_LIMIT


def is_time(ns: int) -> bool:
    """Whether a time can be added to others without overflow."""
    return -TIME_NS_LIMIT < ns < TIME_NS_LIMIT


def is_range(first: object, last: object) -> bool:
    """Whether these are the first and the last number of some records; both may be null."""
    if not isinstance(first, int) or not isinstance(last, int):
        return first is last
    return 0 <= last - first < RECORDS_MAX


def is_shallow(detail: object) -> bool:
    """Whether a value is nested no deeper than DETAIL_DEPTH_MAX."""
    level: list[object] = [detail]
    for _ in range(DETAIL_DEPTH_MAX):
        inner = [
            each
            for outer in level
            if isinstance(outer, dict | list)
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
        level = [each for each in inner if isinstance(each, dict | list)]
        if not level:
            return True
    return False


def _are_partitions(value: Sequence[object]) -> bool:
    return all(
        isinstance(each, dict)
        and isinstance(each.get("topic"), str)
        and type(each.get("partition")) is int
        and _is_number(each["partition"])
        for each in value
    )


#: For each type: the Python type that JSON decodes to, a check of the value if one is needed, and its message.
_TYPES: Mapping[Type, tuple[type, Callable[..., bool] | None, str]] = MappingProxyType(
    {
        Type.TEXT: (str, None, ""),
        Type.INT: (int, _fits, "does not fit into 64 bits"),
        Type.FLAG: (bool, None, ""),
        Type.PARTITIONS: (list, _are_partitions, "should give a topic and a partition in each entry"),
        Type.DETAIL: (dict, is_shallow, f"is nested deeper than {DETAIL_DEPTH_MAX} levels"),
    }
)
_NULLABLE_COMMON = frozenset({"member", "stream"})
#: Of a field with more words, none is named.
_NAMED_WORDS_MAX = 20


def _check(
    name: str, type_: Type, *, may_be_null: bool, may_be_absent: bool, words: Sequence[str] | None = None
) -> _FieldCheck:
    check = _FieldCheck(name, type_, *_TYPES[type_], may_be_null, may_be_absent)
    if words is None:
        return check
    return check._replace(is_good=frozenset(words).__contains__, otherwise=f"is not {_any_of(words)}")


def _any_of(words: Sequence[str]) -> str:
    if len(words) > _NAMED_WORDS_MAX:
        return f"one of its {len(words)} words"
    *others, last = (word or "''" for word in words)
    return f"{', '.join(others)} or {last}"


def _type_check(name: str, type_: Type, kind: str = "") -> _FieldCheck:
    """The check of a field of events."""
    optional = kind in KINDS and name in KINDS[kind].optional
    may_be_null = optional or name in _NULLABLE_COMMON
    check = _check(name, type_, may_be_null=may_be_null, may_be_absent=optional, words=WORDS.get((kind, name)))
    if (kind, name) in ENDINGS:
        endings = ENDINGS[kind, name]
        return check._replace(
            is_good=lambda text: text.endswith(endings), otherwise=f"does not end in {_any_of(endings)}"
        )
    return check._replace(is_good=None) if type_ is Type.DETAIL else check


def _full_check(name: str, type_: Type, kind: str = "") -> _FieldCheck:
    """The same with the limits of values; those of times are checked separately."""
    check = _type_check(name, type_, kind)
    if (kind, name) in LIMITS:
        low, high = LIMITS[kind, name]
        return check._replace(is_good=lambda value: low <= value <= high, otherwise=f"is not {low} to {high}")
    if type_ is Type.DETAIL:
        return check._replace(is_good=is_shallow)
    if type_ is Type.INT and name != "ns":
        return check._replace(is_good=_is_number, otherwise="is out of range")
    return check


_Checks = tuple["_FieldCheck", ...]


class _EventChecks(NamedTuple):
    """The checks of events: of the common fields, and of all fields of each kind."""

    common: _Checks
    by_kind: Mapping[str, _Checks]


def _event_checks(check: Callable[..., _FieldCheck]) -> _EventChecks:
    common = tuple(check(name, type_) for name, type_ in COMMON_FIELDS.items())
    by_kind = {
        kind: tuple(check(name, type_, kind) for name, type_ in {**COMMON_FIELDS, **of_kind.fields}.items())
        for kind, of_kind in KINDS.items()
    }
    return _EventChecks(common, MappingProxyType(by_kind))


_TYPE_CHECKS, _CHECKS = _event_checks(_type_check), _event_checks(_full_check)


def _of_its_kind(event: Mapping[str, object], checks: _EventChecks) -> _Checks:
    kind = event.get("kind")
    return checks.by_kind.get(kind, checks.common) if isinstance(kind, str) else checks.common


def _of_whole_line(fields: Mapping[str, Type], times: frozenset[str]) -> tuple[_FieldCheck, ...]:
    """The checks of a header or an end marker: every field is required."""
    words = HEADER_WORDS if fields is HEADER_FIELDS else {}
    checks = (
        _check(name, type_, may_be_null=False, may_be_absent=False, words=words.get(name))
        for name, type_ in fields.items()
    )
    return tuple(
        check._replace(is_good=is_time, otherwise=TIME_OUT_OF_RANGE) if check.name in times else check
        for check in checks
    )


TIME_OUT_OF_RANGE = "is not a possible time"
_HEADER_CHECKS = _of_whole_line(HEADER_FIELDS, frozenset({"monotonic_ns", "wall_ns"}))
_END_CHECKS = _of_whole_line(END_FIELDS, frozenset({"monotonic_ns"}))
