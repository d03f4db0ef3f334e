"""Who had which partition, when, in arrays: the three views of `comparison.ownership.fold`, for runs of any length.

A property over random traces says that the two give the same intervals. `owner` is `process/member/stream` in the views
of members, and the authority's own name for it in `authority`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.ownership.fold import CLAIMS, DELIVERY_PAUSE_NS_MAX
from comparison.pipeline.silver.arrays import (
    NOWHERE,
    as_of,
    codes,
    following,
    from_zero,
    integers,
    starts,
    taken,
    together,
)
from comparison.pipeline.silver.deliveries import owners_of
from comparison.pipeline.silver.naming import WHERE, keys_of
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from comparison.pipeline.silver.context import Context

#: One row an interval; `until_ns` is null while it is open, `gone_ns` is when the owner itself ended, if it did.
INTERVAL_SCHEMA = pa.schema(
    [
        ("view", pa.string()),
        *WHERE,
        ("owner", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("closed_by", pa.string()),
        ("gone_ns", pa.int64()),
    ]
)
#: In columns of moments: null.
NEVER_NS = (1 << 62) - 1


def believed(claims: pa.Table, context: Context) -> pa.Table:
    """Intervals of the view BELIEVED; `closed_by` is revoked, lost, reassigned, member, process or end."""
    keys, _ = keys_of(claims)
    order = np.lexsort((integers(claims["seq"]), _streams(claims), keys))
    claims = claims.take(order)
    t_ns = integers(claims["t_ns"])
    kinds, kind_names = codes(claims["kind"])
    next_row = following(starts(keys[order], _streams(claims)))
    next_ns = taken(t_ns, next_row, NEVER_NS)
    process_ns, member_ns, closed = _ends_of(claims, context)
    gone_ns = np.minimum(process_ns, member_ns)
    until_ns = np.minimum(next_ns, gone_ns)
    is_next = (until_ns == next_ns) & (taken(integers(claims["seq"]), next_row, NEVER_NS) < closed)
    reasons = np.array([CLAIMS.get(str(name), "") for name in kind_names] or [""], dtype=object)
    why = np.where(next_row == NOWHERE, "", reasons[kinds[next_row]] if len(kinds) else "")
    why = np.where(is_next, why, np.where(until_ns == member_ns, "member", "process"))
    why = np.where(until_ns == NEVER_NS, "end", why)
    assigned = np.array([name == "partitions_assigned" for name in kind_names] or [False], dtype=np.bool_)
    opened = np.flatnonzero(assigned[kinds])
    rows = claims.take(opened)
    return _intervals(BELIEVED, rows, owners_of(rows), t_ns[opened], until_ns[opened], why[opened], gone_ns[opened])


def _streams(claims: pa.Table) -> NDArray[np.int64]:
    streams = integers(claims["stream"], null=-1)
    return together(codes(claims["process"])[0], codes(claims["member"])[0], from_zero(streams))


def _ends_of(claims: pa.Table, context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """When the process and the member of each row ended, and the number of the member's end in its file.

    A process may be started again under its name, and a member come back with its id: what ends it is the first end
    that comes. A member's own end is in the order of its file.
    """
    t_ns, seq = integers(claims["t_ns"]), integers(claims["seq"])
    processes, process_names = codes(claims["process"])
    members, member_names = codes(claims["member"])
    process_ns = np.full(len(t_ns), NEVER_NS)
    member_ns, member_seq = np.full(len(t_ns), NEVER_NS), np.full(len(t_ns), NEVER_NS)
    for number, process in enumerate(process_names):
        mine = processes == number
        ended = np.array(context.process_ends.get(str(process), ()), dtype=np.int64)
        process_ns[mine] = _next(ended, ended, t_ns[mine])
        for other, member in enumerate(member_names):
            if ends := context.member_ends.get((str(process), member)):
                of_member = mine & (members == other)
                closed, ended = np.array(ends, dtype=np.int64).T
                member_ns[of_member] = _next(closed, ended, seq[of_member])
                member_seq[of_member] = _next(closed, closed, seq[of_member])
    return process_ns, member_ns, member_seq


def _next(places: NDArray[np.int64], ends: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first end whose place is not before `at`; places are in order."""
    found: NDArray[np.int64] = np.append(ends, NEVER_NS)[np.searchsorted(places, at, side="left")]
    return found


def authority(naming: pa.Table) -> pa.Table:
    """Intervals of the view AUTHORITY; `closed_by` is renamed, the reason of the clearing, or end."""
    keys, _ = keys_of(naming)
    order = np.lexsort((integers(naming["seq"]), integers(naming["t_ns"]), keys))
    naming = naming.take(order)
    t_ns = integers(naming["t_ns"])
    reasons, reason_names = codes(naming["reason"])
    next_row = following(starts(keys[order]))
    # Of a row that names an owner, the reason is null.
    words = np.array([name if name is not None else "renamed" for name in reason_names] or [""], dtype=object)
    why = np.where(next_row == NOWHERE, "end", words[reasons[next_row]] if len(reasons) else "")
    is_named = np.array([name is None for name in reason_names] or [False], dtype=np.bool_)
    opened = np.flatnonzero(is_named[reasons]) if len(reasons) else np.zeros(0, dtype=np.int64)
    rows = naming.take(opened)
    until_ns = taken(t_ns, next_row, NEVER_NS)[opened]
    never = np.full(len(opened), NEVER_NS)
    return _intervals(AUTHORITY, rows, rows["owner"], t_ns[opened], until_ns, why[opened], never)


def delivering(stretches: pa.Table, claims: pa.Table) -> pa.Table:
    """Intervals of the view DELIVERING, from the first to the last poll of each; `closed_by` is pause.

    Stretches of records that follow each other without a pause, and without a change of the stream's claim, are one.
    """
    who = ["group", "topic", "file"]
    both = pa.concat_tables([stretches.select([*who, *_OF_STREAM]), claims.select([*who, *_OF_STREAM])])
    partitions = integers(both["partition"])
    lines = together(*(codes(both[name])[0] for name in who), from_zero(partitions), _streams(both))
    mine, claimed = lines[: len(stretches)], lines[len(stretches) :]
    order = np.lexsort((integers(stretches["seq"]), mine))
    stretches, mine = stretches.take(order), mine[order]
    claim = as_of((mine, integers(stretches["seq"])), (claimed, integers(claims["seq"])))
    from_ns, until_ns = integers(stretches["from_ns"]), integers(stretches["until_ns"])
    begins = starts(mine, claim)
    begins[1:] |= from_ns[1:] - until_ns[:-1] > DELIVERY_PAUSE_NS_MAX
    rows = np.flatnonzero(begins)
    last = np.maximum.reduceat(until_ns, rows) if len(rows) else until_ns
    first = np.minimum.reduceat(from_ns, rows) if len(rows) else from_ns
    of_first = stretches.take(rows)
    never = np.full(len(rows), NEVER_NS)
    return _intervals(
        DELIVERING, of_first, owners_of(of_first), first, last, np.full(len(rows), "pause", dtype=object), never
    )


_OF_STREAM = ("partition", "process", "member", "stream")


def _intervals(
    view: str,
    rows: pa.Table,
    owners: object,
    from_ns: NDArray[np.int64],
    until_ns: NDArray[np.int64],
    closed_by: NDArray[np.object_],
    gone_ns: NDArray[np.int64],
) -> pa.Table:
    return pa.table(
        {
            "view": pa.repeat(view, len(rows)),
            **{name: rows[name] for name in ("group", "topic", "partition")},
            "owner": owners,
            "from_ns": from_ns,
            "until_ns": _or_null(until_ns),
            "closed_by": pa.array(closed_by, pa.string()),
            "gone_ns": _or_null(gone_ns),
        },
        schema=INTERVAL_SCHEMA,
    )


def _or_null(moments: NDArray[np.int64]) -> pa.Array:
    return pa.array(moments, mask=moments == NEVER_NS)
