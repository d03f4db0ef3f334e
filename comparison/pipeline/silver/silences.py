"""How long a member can have been silent, at most, when its session was ended.

The trace does not have the arrivals of heartbeats, but it bounds them. A member has one heartbeat outstanding at a
time, so the last one that was accepted was sent after the answer to the one before it, and arrived later still. In
`zookeeper` a commit is a request of the session, and ZooKeeper's log has its time. Both hold however late the machine
is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.measured_members import Silence
from comparison.pipeline.silver.offsets import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context

KIND = "request_answered"
#: The columns that are needed beside those that are counted by.
NEEDED = ("t_ns", "api", "error", "member")
_HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
#: A coordinator that answers so has started the member's session timer again.
_ACCEPTED = ("", "REBALANCE_IN_PROGRESS")

#: By the member, or its session with ZooKeeper, and the end of the session: when the last two heartbeats before it
#: were accepted, or the last commit was stored.
Heard = dict[tuple[str, int], list[int]]


def heard_in(tables: Tables, context: Context) -> Heard:
    """What a part of a run shows."""
    return {**_answered(tables, context), **_stored(tables, context)}


def _answered(tables: Tables, context: Context) -> Heard:
    if KIND not in tables or not context.expired:
        return {}
    table = tables[KIND].select(list(NEEDED))
    ids = pa.array({member for member, _ in context.expired}, pa.string())
    for name, values in (("api", _HEARTBEATS), ("error", _ACCEPTED), ("member", ids)):
        column = table[name].cast(pa.string())
        table = table.filter(pc.is_in(column, pa.array(values, pa.string())))
    answers = list(zip(table["member"].cast(pa.string()).to_pylist(), table["t_ns"].to_pylist(), strict=True))
    return {
        (member, end_ns): sorted(t_ns for whose, t_ns in answers if whose == member and t_ns < end_ns)[-2:]
        for member, end_ns in context.expired
    }


def _stored(tables: Tables, context: Context) -> Heard:
    if WRITTEN not in tables or not context.session_ends:
        return {}
    table = tables[WRITTEN].select(["session", "t_ns"])
    table = table.filter(pc.is_in(table["session"], pa.array(context.session_ends, pa.string())))
    found: Heard = {}
    for session, t_ns in zip(table["session"].to_pylist(), table["t_ns"].to_pylist(), strict=True):
        end_ns, _ = context.session_ends[session]
        if t_ns < end_ns:
            found[session, end_ns] = [max([t_ns, *found.get((session, end_ns), ())])]
    return found


def silences(parts: Iterable[Heard], context: Context) -> list[Silence]:
    """One for each end of a session before which enough was heard, in order."""
    together: Heard = {}
    for part in parts:
        for key, moments in part.items():
            together[key] = sorted([*together.get(key, ()), *moments])[-2:]
    members = set(context.expired)
    return [
        Silence(t_ns=key[1], longest_ns=key[1] - moments[0 if key in members else -1] + context.tolerance_ns)
        for key, moments in sorted(together.items(), key=lambda item: item[0][1])
        if len(moments) > (key in members)
    ]
