"""Events of every kind for hypothesis, with any values that the schema allows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from kernel.trace.events import COMMON_FIELDS, KINDS, TIME_NS_LIMIT, Type

INTS = st.integers(-(1 << 63), (1 << 63) - 1)
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
    common = {name: times if name == "ns" else VALUES[type_] for name, type_ in COMMON_FIELDS.items()}
    return st.fixed_dictionaries(
        {
            **common,
            "kind": st.just(kind),
            "member": st.one_of(st.none(), TEXTS),
            "stream": st.one_of(st.none(), INTS),
            **{name: VALUES[type_] for name, type_ in fields.items() if name not in optional},
        },
        optional={name: st.one_of(st.none(), VALUES[fields[name]]) for name in optional},
    )


ANY_EVENT = st.sampled_from(sorted(KINDS)).flatmap(events_of_kind)


def line_of(event: dict[str, Any]) -> bytes:
    return msgspec.json.encode(event) + b"\n"
