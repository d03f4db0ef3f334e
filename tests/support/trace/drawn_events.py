"""Events of every kind for hypothesis, with any values that the schema allows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from kernel.trace.events import COMMON_FIELDS, KINDS, TIME_NS_LIMIT, Type
from kernel.trace.limits import LIMITS, NUMBER_LIMIT, RECORD_RANGES, RECORDS_MAX
from kernel.trace.words import ENDINGS, WORDS

INTS = st.integers(1 - NUMBER_LIMIT, NUMBER_LIMIT - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.TEXT: TEXTS,
    Type.INT: INTS,
    Type.FLAG: st.booleans(),
    Type.PARTITIONS: st.lists(st.fixed_dictionaries({"topic": TEXTS, "partition": INTS}), max_size=3),
    Type.DETAIL: st.dictionaries(TEXTS, st.one_of(INTS, TEXTS, st.none(), st.lists(st.booleans())), max_size=2),
}


def events_of_kind(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = KINDS[kind].fields
    optional = KINDS[kind].optional
    times = st.integers(1 - TIME_NS_LIMIT, TIME_NS_LIMIT - 1)
    common = {name: times if name == "ns" else _values_of(kind, name, type_) for name, type_ in COMMON_FIELDS.items()}
    ranged = {name for pair in RECORD_RANGES.get(kind, ()) for name in pair}
    values = {name: _values_of(kind, name, type_) for name, type_ in fields.items() if name not in ranged}
    events = st.fixed_dictionaries(
        {
            **common,
            "kind": st.just(kind),
            "member": st.one_of(st.none(), TEXTS),
            "stream": st.one_of(st.none(), INTS),
            **{name: value for name, value in values.items() if name not in optional},
        },
        optional={name: st.one_of(st.none(), value) for name, value in values.items() if name in optional},
    )
    return events if not ranged else st.builds(lambda event, ranges: event | ranges, events, _ranges_of(kind))


def _values_of(kind: str, field: str, type_: Type) -> st.SearchStrategy[Any]:
    if (kind, field) in LIMITS:
        return st.integers(*LIMITS[kind, field])
    if (kind, field) in ENDINGS:
        return st.builds(str.__add__, TEXTS, st.sampled_from(ENDINGS[kind, field]))
    return st.sampled_from(WORDS[kind, field]) if (kind, field) in WORDS else VALUES[type_]


def _ranges_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """The first and the last number of the records of an event."""
    found: st.SearchStrategy[dict[str, Any]] = st.just({})
    for first, last in RECORD_RANGES[kind]:
        pairs: st.SearchStrategy[dict[str, Any]] = st.builds(
            lambda at, more, first=first, last=last: {first: at, last: at + more},
            st.integers(1 - NUMBER_LIMIT, NUMBER_LIMIT - RECORDS_MAX),
            st.integers(0, RECORDS_MAX - 1),
        )
        if first in KINDS[kind].optional:
            pairs = st.one_of(st.just({}), st.just({first: None, last: None}), pairs)
        found = st.builds(lambda one, other: one | other, found, pairs)
    return found


ANY_EVENT = st.sampled_from(sorted(KINDS)).flatmap(events_of_kind)


def line_of(event: dict[str, Any]) -> bytes:
    return msgspec.json.encode(event) + b"\n"
