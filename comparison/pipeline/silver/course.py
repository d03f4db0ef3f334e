"""The measured span in intervals of equal length, and what a part of a run did in each of them, partition by partition.

A run has few intervals however long it is, so what is kept of an hour of polls is some hundred rows a partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.silver.arrays import codes, ends, from_zero, in_order, integers, starts, together
from comparison.pipeline.silver.naming import WHERE
from comparison.results.causes import interval_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.measured import RunSpan

#: One row for consecutive records that one stream was handed in an interval: offsets `first` to `end`-1, from the
#: first to the last poll.
STEP_SCHEMA = pa.schema(
    [
        *WHERE,
        ("interval", pa.int64()),
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)
#: One row a partition and interval: the records acknowledged in it have offsets from `first` to `end`-1. They had been
#: handed to the producer from `sent_first_ns` to `sent_last_ns`, or were acknowledged then if it does not say.
PRODUCED_SCHEMA = pa.schema(
    [
        *WHERE[1:],
        ("interval", pa.int64()),
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("sent_first_ns", pa.int64()),
        ("sent_last_ns", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of a span; the last one may be shorter."""

    start_ns: int
    end_ns: int
    length_ns: int
    count: int

    def numbers(self, t_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The interval of each moment: -1 before the span, `count` behind it."""
        found: NDArray[np.int64] = np.maximum(-1, (t_ns - self.start_ns) // self.length_ns)
        return np.where(t_ns < self.end_ns, found, self.count)


def intervals_of(span: RunSpan) -> Intervals:
    span_ns = max(0, span.end_ns - span.start_ns)
    length_ns = interval_ns(span_ns)
    return Intervals(span.start_ns, span.end_ns, length_ns, -(-span_ns // length_ns))


def produced_of(tables: Tables, intervals: Intervals) -> pa.Table:
    """How far the log of each partition reached by what producers were answered: PRODUCED_SCHEMA."""
    if "records_acked" not in tables:
        return PRODUCED_SCHEMA.empty_table()
    table = tables["records_acked"]
    topics, names = codes(table["topic"])
    t_ns = integers(table["t_ns"])
    partitions, at, sent_ns = (
        integers(table["partition"]),
        intervals.numbers(t_ns),
        t_ns - integers(table["latency_ns"]),
    )
    order = in_order(together(topics, from_zero(partitions)), at)
    topics, partitions, at = topics[order], partitions[order], at[order]
    rows, _ = ends(starts(topics, partitions, at))
    if not len(rows):
        return PRODUCED_SCHEMA.empty_table()
    first, last, sent_ns = (each[order] for each in (integers(table["first"]), integers(table["last"]), sent_ns))
    columns = [
        pa.array(names, pa.string()).take(topics[rows]),
        partitions[rows],
        at[rows],
        np.minimum.reduceat(first, rows),
        np.maximum.reduceat(last, rows) + 1,
        np.minimum.reduceat(sent_ns, rows),
        np.maximum.reduceat(sent_ns, rows),
    ]
    return pa.table(columns, schema=PRODUCED_SCHEMA)
