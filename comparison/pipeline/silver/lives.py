"""Offsets of topics that were deleted and created again: the new topic begins at offset 0, under the old name.

The offsets of one partition can only be compared within one *life* of its topic. So those of its second life are moved
up by LIFE, those of its third one by twice as much, where tables of events enter the silver stage; where offsets are
shown, they are moved back. Events tell the life by their time: they name the topic, never its id (KIP-516). Between two
lives, members begin what is to come, and all else is of what was. A partition of one life, as nearly all have, costs
nothing.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.silver.arrays import codes, integers
from comparison.pipeline.silver.offsets import FINAL, REFUSED, RESET, STARTED, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context

    Numbers = NDArray[np.int64]

#: How far apart the offsets of two lives are: no topic that is recreated has had as many records.
LIFE = 1 << 40
#: The columns of offsets, by the kind of event.
_COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        **dict.fromkeys(("records_delivered", "records_acked"), ("first", "last")),
        **dict.fromkeys((WRITTEN, REFUSED, STARTED, RESET), ("offset",)),
        FINAL: ("committed", "end"),
    }
)


def told_apart(tables: Tables, context: Context) -> Tables:
    """The tables with offsets that can be compared across the lives of a topic."""
    several = recreated(context)
    if not several:
        return tables
    begins = {place: np.array([low for low, _ in lives[1:]]) for place, lives in several.items()}
    ends = {place: np.array([high for _, high in lives[:-1]]) for place, lives in several.items()}

    def by_time(kind: str, table: pa.Table) -> Numbers:
        t_ns, since = integers(table["t_ns"]), ends if kind in (STARTED, RESET) else begins
        return _each(table, context, lambda rows, place: np.searchsorted(since[place], t_ns[rows], side="right"))

    return {
        kind: _moved(table, _COLUMNS[kind], by_time(kind, table)) if kind in _COLUMNS else table
        for kind, table in tables.items()
    }


def lives_of(table: pa.Table, column: str, context: Context) -> Numbers:
    """How many lives the topic of each row had had before, by this column with offsets that were told apart."""
    offsets = integers(table[column])
    return _each(table, context, lambda rows, _: life_of(offsets[rows]))


def as_traced(table: pa.Table, columns: Sequence[str], context: Context) -> pa.Table:
    """A table with its offsets as they were traced; those of a row are of one life."""
    return _moved(table, columns, -lives_of(table, columns[0], context)) if recreated(context) else table


def within_life(offset: int, place: tuple[str, int], context: Context) -> int:
    """One offset as it was traced."""
    return offset - life_of(offset) * LIFE if place in recreated(context) else offset


def life_begin(offset: int, place: tuple[str, int], context: Context) -> int:
    """The first offset of the life that this one is of."""
    return offset - within_life(offset, place, context)


def life_of(offset: Any) -> Any:
    """How many lives came before that of an offset, or of each of some; NO_OFFSET, -1, is of the one it was read in."""
    return (offset + LIFE // 2) // LIFE


def recreated(context: Context) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    """The lives of the partitions that have several."""
    return {place: lives for place, lives in context.existing.items() if len(lives) > 1}


def _each(table: pa.Table, context: Context, lives: Callable[[Numbers, tuple[str, int]], Numbers]) -> Numbers:
    """What `lives` says of the rows of each recreated partition; 0 for all others."""
    found = np.zeros(len(table), dtype=np.int64)
    if places := recreated(context):
        topics, names = codes(table["topic"])
        partitions = integers(table["partition"])
        for topic, partition in places:
            if topic in names:
                rows = np.flatnonzero((topics == names.index(topic)) & (partitions == partition))
                found[rows] = lives(rows, (topic, partition))
    return found


def _moved(table: pa.Table, columns: Sequence[str], lives: Numbers) -> pa.Table:
    """The table with these columns moved up by so many lives."""
    by = pa.array(lives * LIFE)
    for name in columns:
        table = table.set_column(table.column_names.index(name), name, pc.add(table[name], by))
    return table
