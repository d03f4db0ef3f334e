"""Whom the authority named as the owner of a partition, at any moment, and whether a member is that owner."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.silver.arrays import NOWHERE, codes, ends, in_order, integers, ranked, starts, together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.bronze.tables import Tables

#: A partition of a group: group, topic, partition.
Key = tuple[str, str, int]
#: Its columns.
WHERE = (("group", pa.string()), ("topic", pa.string()), ("partition", pa.int64()))

#: The columns of the authority's moves that are kept, those of a cleared partition with an empty owner.
NAMING_SCHEMA = pa.schema(
    [
        *WHERE,
        ("t_ns", pa.int64()),
        ("seq", pa.int64()),
        ("owner", pa.string()),
        ("process", pa.string()),
        ("reason", pa.string()),  #: why a partition was cleared; null when it was named
    ]
)
#: ZooKeeper's owners are threads of consumers, `<consumer id>-<n>`.
_THREAD = re.compile(r"-\d+$")


def naming_rows(tables: Tables) -> pa.Table:
    """Every time that the authority named an owner or cleared one: NAMING_SCHEMA."""
    found = [NAMING_SCHEMA.empty_table()]
    for kind in ("authority_named", "authority_cleared"):
        if kind in tables:
            table = tables[kind]
            is_named = kind == "authority_named"
            owner = table["owner"] if is_named else pa.repeat("", len(table))
            reason = pa.nulls(len(table), pa.string()) if is_named else table["reason"]
            kept = {name: table[name] for name in ("group", "topic", "partition", "t_ns", "seq", "process")}
            found.append(pa.table({**kept, "owner": owner, "reason": reason}, schema=NAMING_SCHEMA))
    return pa.concat_tables(found)


class Names:
    """Text by number, so that columns of text compare as columns of numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str | None, int] = {}

    @property
    def texts(self) -> list[str]:
        """The text of each number."""
        return [text or "" for text in self._numbers]

    def number(self, text: str | None) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Sequence[str | None]) -> NDArray[np.int64]:
        for text in dict.fromkeys(texts):
            self.number(text)
        return np.fromiter(map(self._numbers.__getitem__, texts), dtype=np.int64, count=len(texts))

    def column(self, column: pa.ChunkedArray) -> NDArray[np.int64]:
        places, texts = codes(column)
        return self.numbers(texts)[places] if len(places) else places


def keys_of(table: pa.Table) -> tuple[NDArray[np.int64], list[Key]]:
    """The partition of each row as a number, and what the numbers mean; `table` has group, topic and partition."""
    groups, group_names = codes(table["group"])
    topics, topic_names = codes(table["topic"])
    partitions = integers(table["partition"])
    _, where = ranked(partitions)
    distinct, keys = ranked(together(groups, topics, where))
    row_of = np.empty(len(distinct), dtype=np.int64)
    row_of[keys] = np.arange(len(keys))
    return keys, [
        (str(group_names[groups[row]]), str(topic_names[topics[row]]), int(partitions[row])) for row in row_of
    ]


class Naming:
    """The owner of each partition by the authority, over time."""

    def __init__(self, rows: pa.Table) -> None:
        """`rows` have the columns of `NAMING_SCHEMA`."""
        self._names = Names()
        keys, meanings = keys_of(rows)
        t_ns, seq = integers(rows["t_ns"]), integers(rows["seq"])
        owners, owner_names = codes(rows["owner"])
        order = np.lexsort((seq, t_ns, keys))
        self._t_ns, self._owners = t_ns[order], owners[order]
        self._owner_names = [name or "" for name in owner_names]
        self._consumers = self._names.numbers([_THREAD.sub("", name) for name in self._owner_names])
        self._threads = self._names.numbers(self._owner_names)
        self._nobody = np.array([name == "" for name in self._owner_names], dtype=np.bool_)
        self._named_by_key: dict[Key, list[NDArray[np.int64]]] = {}
        edges = [*np.flatnonzero(starts(keys[order])).tolist(), len(order)]
        self._slices: Mapping[Key, slice] = {
            meanings[keys[order[low]]]: slice(low, high) for low, high in pairwise(edges)
        }

    def stale(
        self,
        keys: NDArray[np.int64],
        meanings: Sequence[Key],
        t_ns: NDArray[np.int64],
        by: pa.ChunkedArray,
        tolerance_ns: int,
    ) -> NDArray[np.bool_]:
        """Which deliveries are by a member while another one is the owner, and by more than the tolerance.

        An unknown member does not count as another one; nor is anything stale while a partition has no owner.
        """
        members = self._names.column(by)
        unknown = np.isin(members, [self._names.number(None), self._names.number("")])
        stale = np.zeros(len(keys), dtype=np.bool_)
        order = in_order(keys, t_ns)
        first_rows, last_rows = ends(starts(keys[order]))
        for low, high in zip(first_rows.tolist(), last_rows.tolist(), strict=True):
            if (place := self._slices.get(meanings[keys[order[low]]])) is None:
                continue
            rows = order[low : high + 1]
            rows = rows[~unknown[rows]]
            moves, owners = self._t_ns[place], self._owners[place]
            at = np.searchsorted(moves, t_ns[rows], side="right") - 1
            suspected = (at != NOWHERE) & ~self._nobody[owners[at]] & ~self._is(owners[at], members[rows])
            rows = rows[suspected]
            if not len(rows):
                continue
            first = np.searchsorted(moves, t_ns[rows] - tolerance_ns, side="right") - 1
            last = np.searchsorted(moves, t_ns[rows] + tolerance_ns, side="right") - 1
            near = np.zeros(len(rows), dtype=np.bool_)
            for named in self._named(meanings[keys[order[low]]]):
                # The last time that the member was named, by `last`: (member, place) among (name, place) in order.
                at = members[rows] * len(moves)
                found = named[np.searchsorted(named, at + last, side="right") - 1]
                near |= (last != NOWHERE) & (found >= at + np.maximum(first, 0))
            stale[rows] = ~near
        return stale

    def _named(self, key: Key) -> list[NDArray[np.int64]]:
        """A partition's owners as (name, place), in order: by their threads, and by their consumers."""
        if key not in self._named_by_key:
            owners = self._owners[self._slices[key]]
            places = np.arange(len(owners))
            self._named_by_key[key] = [
                np.append(NOWHERE, np.sort(names[owners] * len(owners) + places))
                for names in (self._threads, self._consumers)
            ]
        return self._named_by_key[key]

    def is_doubtful(
        self,
        keys: NDArray[np.int64],
        meanings: Sequence[Key],
        from_ns: NDArray[np.int64],
        until_ns: NDArray[np.int64],
        by: pa.ChunkedArray,
    ) -> NDArray[np.bool_]:
        """Which stretches of deliveries are not all by the owner, so that some of them may be stale."""
        members = self._names.column(by)
        doubtful = np.zeros(len(keys), dtype=np.bool_)
        for key, meaning in enumerate(meanings):
            if (place := self._slices.get(meaning)) is None:
                continue
            rows = np.flatnonzero(keys == key)
            moves, owners = self._t_ns[place], self._owners[place]
            first = np.searchsorted(moves, from_ns[rows], side="right") - 1
            last = np.searchsorted(moves, until_ns[rows], side="right") - 1
            is_owner = (first == NOWHERE) | self._nobody[owners[first]] | self._is(owners[first], members[rows])
            doubtful[rows] = (first != last) | ~is_owner
        return doubtful

    def _is(self, owners: NDArray[np.int64], members: NDArray[np.int64]) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = (self._threads[owners] == members) | (self._consumers[owners] == members)
        return same


@lru_cache(maxsize=4096)  # there are many commits, and few owners and senders
def is_another(owner: str | None, by: str | None) -> bool:
    """Whether a commit is by another member than the owner. An unknown sender or owner is not another."""
    return bool(owner) and bool(by) and by not in (owner, _THREAD.sub("", owner or ""))
