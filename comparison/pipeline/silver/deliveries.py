"""What members were handed, reduced to stretches of consecutive records; and what producers had acknowledged.

A *stretch* is a run of polls of one stream from one partition: consecutive offsets, consecutive serial numbers, no
pause longer than DELIVERY_PAUSE_NS_MAX, and no change of the stream's claim in between. Fifty million polls become some
thousands of stretches here, so only those travel; stretches of parts of a run touch and mean the same as longer ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comparison.ownership.fold import CLAIMS, DELIVERY_PAUSE_NS_MAX
from comparison.pipeline.silver.arrays import (
    codes,
    ends,
    from_zero,
    in_order,
    integers,
    ranked,
    starts,
    together,
    total,
)
from comparison.pipeline.silver.course import STEP_SCHEMA, intervals_of
from comparison.pipeline.silver.groups import group_column
from comparison.pipeline.silver.naming import WHERE, Names, keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.naming import Naming

#: The width of a bin of the group's delivery, and the longest time that is binned: ten minutes.
BIN_NS = 100_000_000
BINNED_NS_MAX = 600_000_000_000
#: No number, in columns of serial numbers; it marks records without one.
NO_SERIAL = -(1 << 62)

_WHO = [
    ("file", pa.string()),
    ("process", pa.string()),
    ("member", pa.string()),
    ("stream", pa.int64()),
]
#: One row a stretch: records `first` to `end`-1 and serials alike, from the first to the last poll.
STRETCH_SCHEMA = pa.schema(
    [
        *WHERE,
        *_WHO,
        ("seq", pa.int64()),
        ("seq_last", pa.int64()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("serial_first", pa.int64()),
        ("serial_end", pa.int64()),
    ]
)
#: One row for each partition that a stream was assigned, or that was taken from it.
CLAIM_SCHEMA = pa.schema([*WHERE, *_WHO, ("seq", pa.int64()), ("t_ns", pa.int64()), ("kind", pa.string())])
#: What is kept of an event that lists partitions.
_OF_LISTS = ("file", "process", "member", "stream", "cause", "seq", "t_ns")
#: Serial numbers `first` to `end`-1 of a topic's partition were acknowledged, at `offset` and those behind it.
ACK_SCHEMA = pa.schema(
    [
        *WHERE[1:],
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("offset", pa.int64()),
    ]
)
#: A stream delivered from a partition in the middle of a round.
KEPT_SCHEMA = pa.schema([("round", pa.int64()), *WHERE, ("owner", pa.string())])


@dataclass(slots=True)
class Delivered:
    """What a part of a run's deliveries comes to."""

    stretches: pa.Table = field(default_factory=STRETCH_SCHEMA.empty_table)
    in_rounds: pa.Table = field(default_factory=KEPT_SCHEMA.empty_table)
    stale: int = 0  #: records delivered by a member that was not the owner
    bins: dict[int | None, int] = field(default_factory=dict)  #: records by bin; None: outside of the span
    steps: pa.Table = field(default_factory=STEP_SCHEMA.empty_table)


def claims_of(tables: Tables, context: Context) -> pa.Table:
    """CLAIM_SCHEMA."""
    found = [by_partition(tables[kind], kind, context, CLAIM_SCHEMA) for kind in CLAIMS if kind in tables]
    return pa.concat_tables([CLAIM_SCHEMA.empty_table(), *found])


def by_partition(table: pa.Table, kind: str, context: Context, schema: pa.Schema) -> pa.Table:
    """A row for each partition of each event of a kind that lists partitions."""
    listed = table["partitions"].combine_chunks()
    each = pc.list_flatten(listed)
    of_row = table.select([name for name in _OF_LISTS if name in table.column_names])
    of_row = of_row.take(pc.list_parent_indices(listed))
    columns = {name: of_row[name] for name in of_row.column_names}
    columns |= {name: pc.struct_field(each, name) for name in ("topic", "partition")}
    columns |= {"group": group_column(context.memberships, of_row), "kind": pa.repeat(kind, len(of_row))}
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def acks_of(tables: Tables) -> pa.Table:
    """What was acknowledged to the producer, in few ranges: ACK_SCHEMA."""
    if "records_acked" not in tables:
        return ACK_SCHEMA.empty_table()
    table = tables["records_acked"]
    topics, names = codes(table["topic"])
    partitions = integers(table["partition"])
    first, end = integers(table["serial_first"]), integers(table["serial_last"]) + 1
    order = in_order(together(topics, from_zero(partitions)), first)
    columns = (topics, partitions, first, end, integers(table["first"]))
    topics, partitions, first, end, offset = (column[order] for column in columns)
    begins = starts(topics, partitions, offset - first)
    begins[1:] |= first[1:] != end[:-1]
    rows, last = ends(begins)
    where = pa.array(names, pa.string()).take(topics[rows]), partitions[rows]
    return pa.table([*where, first[rows], end[last], offset[rows]], schema=ACK_SCHEMA)


def delivered_of(tables: Tables, claims: pa.Table, context: Context, naming: Naming) -> Delivered:
    """Reduce the polls of a part of a run, whose lines are in the order of their files; `claims`: CLAIM_SCHEMA."""
    if "records_delivered" not in tables:
        return Delivered()
    table = tables["records_delivered"]
    table = table.append_column("group", group_column(context.memberships, table))
    polls, claimed = _streams(table, claims)
    seq, t_ns = integers(table["seq"]), integers(table["t_ns"])
    order = in_order(polls, seq)
    claim = _claims_before(polls[order], seq[order], claimed, integers(claims["seq"]))
    columns = {name: integers(table[name])[order] for name in ("first", "last")}
    serial_first, serial_last = (
        integers(table[name], null=NO_SERIAL)[order] for name in ("serial_first", "serial_last")
    )
    t_sorted, numbered = t_ns[order], serial_first != NO_SERIAL
    begins = starts(polls[order], claim, numbered)
    begins[1:] |= columns["first"][1:] != columns["last"][:-1] + 1
    begins[1:] |= numbered[1:] & (serial_first[1:] != serial_last[:-1] + 1)
    begins[1:] |= t_sorted[1:] - t_sorted[:-1] > DELIVERY_PAUSE_NS_MAX
    rows, last = ends(begins)
    of_stretch = table.select(["group", "topic", "partition", *(name for name, _ in _WHO)]).take(order[rows])
    of_stretch = of_stretch.cast(pa.schema([*WHERE, *_WHO]))
    stretches = pa.table(
        [
            *of_stretch.columns,
            seq[order][rows],
            seq[order][last],
            t_sorted[rows],
            t_sorted[last],
            columns["first"][rows],
            columns["last"][last] + 1,
            serial_first[rows],
            np.where(numbered[last], serial_last[last] + 1, NO_SERIAL),
        ],
        schema=STRETCH_SCHEMA,
    )
    records = integers(table["last"]) - integers(table["first"]) + 1
    stale = order[_doubtful(of_stretch, rows, t_sorted, naming)]
    if len(stale):
        polls_of_it = table.select(["group", "topic", "partition", "member"]).take(stale)
        keys, meanings = keys_of(polls_of_it)
        stale = stale[naming.stale(keys, meanings, t_ns[stale], polls_of_it["member"], context.tolerance_ns)]
    return Delivered(
        stretches=stretches,
        in_rounds=_in_rounds(table, t_ns, context) if context.keeps else KEPT_SCHEMA.empty_table(),
        stale=total(records[stale]),
        bins=_binned(t_ns, records, context),
        steps=_steps(table, order, begins, (t_sorted, columns["first"], columns["last"]), context),
    )


def _doubtful(
    of_stretch: pa.Table, rows: NDArray[np.int64], t_ns: NDArray[np.int64], naming: Naming
) -> NDArray[np.bool_]:
    """Which polls are of a stretch that was not all its owner's; `rows` are the first ones of the stretches."""
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    first_ns, last_ns = np.minimum.reduceat(t_ns, rows), np.maximum.reduceat(t_ns, rows)
    doubtful = naming.is_doubtful(*keys_of(of_stretch), first_ns, last_ns, of_stretch["member"])
    return np.repeat(doubtful, np.diff(rows, append=len(t_ns)))


def _streams(polls: pa.Table, claims: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers for the streams and partitions of polls and of claims, the same for the same ones."""
    columns = []
    for name in ("file", "process", "member", "topic"):
        names = Names()
        columns.append(np.concatenate([names.column(table[name]) for table in (polls, claims)]))
    for name, null in (("stream", -1), ("partition", 0)):
        columns.append(from_zero(np.concatenate([integers(table[name], null) for table in (polls, claims)])))
    _, streams = ranked(together(*columns))
    return streams[: len(polls)], streams[len(polls) :]


def _claims_before(
    polls: NDArray[np.int64], seq: NDArray[np.int64], claimed: NDArray[np.int64], claim_seq: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many claims of its own stream, and of those before it in the order, each poll comes behind."""
    order = in_order(claimed, claim_seq)
    claimed, claim_seq = claimed[order], claim_seq[order]
    behind = np.zeros(len(polls) + 1, dtype=np.int64)
    first_rows, last_rows = ends(starts(claimed))
    for low, high in zip(first_rows.tolist(), last_rows.tolist(), strict=True):
        begin, end = np.searchsorted(polls, [claimed[low], claimed[low] + 1])
        np.add.at(behind, begin + np.searchsorted(seq[begin:end], claim_seq[low : high + 1]), 1)
    return np.cumsum(behind[:-1])


def _steps(
    table: pa.Table,
    order: NDArray[np.int64],
    begins: NDArray[np.bool_],
    polls: tuple[NDArray[np.int64], ...],
    context: Context,
) -> pa.Table:
    """The stretches cut into intervals of the run's course: STEP_SCHEMA; `polls` are time, first and last offset."""
    t_ns, first, last = polls
    at = intervals_of(context.span).numbers(t_ns)
    rows, final = ends(begins | starts(at))
    where = table.select([name for name, _ in WHERE]).take(order[rows]).cast(pa.schema(WHERE))
    # A process with several threads may trace in another order than it has read the clock.
    when = [most.reduceat(t_ns, rows) for most in (np.minimum, np.maximum)] if len(rows) else [rows, rows]
    return pa.table([*where.columns, at[rows], first[rows], last[final] + 1, *when], schema=STEP_SCHEMA)


def owners_of(table: pa.Table) -> pa.ChunkedArray:
    """The unit of ownership of each row, `process/member/stream`."""
    processes, process_names = codes(table["process"])
    members, member_names = codes(table["member"])
    streams = integers(table["stream"])
    distinct, numbers = ranked(together(processes, members, from_zero(streams)))
    row_of = np.empty(len(distinct), dtype=np.int64)
    row_of[numbers] = np.arange(len(numbers))
    texts = [
        f"{process_names[processes[row]]}/{member_names[members[row]] or ''}/{streams[row]}" for row in row_of.tolist()
    ]
    return pa.chunked_array([pa.array(texts, pa.string()).take(pa.array(numbers))])


def _binned(t_ns: NDArray[np.int64], records: NDArray[np.int64], context: Context) -> dict[int | None, int]:
    """Records in each bin since the span's start."""
    since = t_ns - context.span.start_ns
    inside = (since >= 0) & (since < BINNED_NS_MAX) & (t_ns < context.span.end_ns)
    bins, where = ranked(since[inside] // BIN_NS)
    sums = np.bincount(where, weights=records[inside], minlength=len(bins)).astype(np.int64)
    found: dict[int | None, int] = dict(zip(bins.tolist(), sums.tolist(), strict=True))
    if not inside.all():
        found[None] = total(records[~inside])
    return found


def _in_rounds(table: pa.Table, t_ns: NDArray[np.int64], context: Context) -> pa.Table:
    """Which streams delivered from which partitions in each round: KEPT_SCHEMA."""
    found = [KEPT_SCHEMA.empty_table()]
    for number, each in enumerate(context.rounds):
        if each.until_ns is None:
            continue
        rows = table.filter(pa.array((t_ns >= each.from_ns) & (t_ns < each.until_ns)))
        rows = rows.filter(pc.equal(rows["group"], each.group))
        names = ["group", "topic", "partition", "process", "member", "stream"]
        distinct = rows.select(names).group_by(names, use_threads=False).aggregate([])
        found.append(
            pa.table(
                {
                    "round": pa.repeat(pa.scalar(number, pa.int64()), len(distinct)),
                    **{name: distinct[name] for name in names[:3]},
                    "owner": owners_of(distinct),
                },
                schema=KEPT_SCHEMA,
            )
        )
    return pa.concat_tables(found)
