"""The events of a run, as the analysis kept them: sequences of messages are drawn from them, and they are shown raw.

Read from `tables/events/`, with the fields and names that a trace has. What a rebalance has by the thousand and says
nothing about it (deliveries, fetches, heartbeats without an error, what brokers read for themselves) is left out.
"""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comparison.report.view.tables import TABLES, TablesMissing
from comparison.screen.printable import printable_all
from kernel.platform.places import arrow_source, exists
from kernel.trace.column_names import FILE_NAMES
from kernel.trace.events import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.platform.places import Place

    Event = dict[str, Any]

#: Which of their rows are read of the kinds that others have by the thousand.
_OPERATIONS = (pc.field("role") == "member") | pc.starts_with(pc.field("path"), "/consumers/")
#: Which process is which broker.
_REGISTRATIONS = (pc.field("op") == "multi") & pc.starts_with(pc.field("path"), "/brokers/ids/")
_REQUESTS = (pc.field("api") != "Heartbeat") | (pc.field("error") != "")
for _api in ("Fetch", "Metadata", "ApiVersions", "ListOffsets", "Produce", "InitProducerId"):
    _REQUESTS &= pc.field("api") != _api
#: The kinds that are read.
KINDS_READ: Mapping[str, pc.Expression | None] = MappingProxyType(
    {
        "member_started": None,
        "member_closed": None,
        "rebalance_triggered": None,
        "rebalance_started": None,
        "attempt_started": None,
        "phase_entered": None,
        "attempt_ended": None,
        "rebalance_ended": None,
        "partitions_assigned": None,
        "partitions_revoked": None,
        "partitions_lost": None,
        "partitions_paused": None,
        "partitions_resumed": None,
        "position_reset": None,
        "session_changed": pc.field("role") == "member",
        "fetch_refused": None,
        "leader_changed": None,
        "group_changed": None,
        "group_member_joined": None,
        "group_member_left": None,
        "group_member_advanced": None,
        "change_started": None,
        "change_settled": None,
        "fault_started": None,
        "fault_ended": None,
        "process_ended": None,
        "member_failed": None,
        "member_refused": None,
        "authority_named": None,
        "authority_cleared": None,
        "offset_written": None,
        "offset_refused": None,
        "zk_notified": _OPERATIONS,
        "zk_op": _OPERATIONS | _REGISTRATIONS,
        "request_answered": _REQUESTS,
    }
)
#: Of a run with more, the first ones in time are read.
EVENTS_MAX = 20_000
_COMMON = ("seq", "t_ns", "process", "member", "stream", "cause")


class RunEvents(NamedTuple):
    """The events of one run in the order of time; `left_out` of those after them were too many."""

    events: tuple[Event, ...]
    left_out: int


NO_EVENTS = RunEvents((), 0)


def read_events(folder: Place) -> Mapping[str, RunEvents]:
    """By run id, from the tables in the result's `folder`. Raises TablesMissing."""
    by_run: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for kind, wanted in KINDS_READ.items():
        table = _read(folder / TABLES / "events" / f"kind={kind}", kind, wanted)
        if table is not None and len(table):
            for run_id in pc.unique(table["run_id"]).to_pylist():
                mine = table.filter(pc.equal(table["run_id"], run_id)).drop_columns(["run_id"])
                by_run[run_id].append(mine.append_column("kind", pa.repeat(pa.scalar(kind), len(mine))))
    return {run_id: _in_order(tables) for run_id, tables in by_run.items()}


def _read(path: Place, kind: str, wanted: pc.Expression | None) -> pa.Table | None:
    if not exists(path):
        return None  # there was no such event
    fields = {FILE_NAMES.get(name, name): name for name in KINDS[kind].fields}
    try:
        source = arrow_source(path)
        there = pq.ParquetDataset(source["source"], filesystem=source["filesystem"], partitioning=None).schema.names
        added = [name for name, field in fields.items() if field in KINDS[kind].optional and name not in there]
        columns = ["run_id", *_COMMON, *(name for name in fields if name not in added)]
        table = pq.read_table(**source, columns=columns, filters=wanted, partitioning=None)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise TablesMissing(f"{path} is not as this version writes it ({error}): analyse the run again") from error
    for name in added:  # since the table was written
        table = table.append_column(name, pa.nulls(len(table)))
    return table.rename_columns([{**fields, "t_ns": "ns"}.get(name, name) for name in table.column_names])


def _in_order(tables: Sequence[pa.Table]) -> RunEvents:
    """The events of one run's tables, one of each kind."""
    count = sum(len(table) for table in tables)
    if count > EVENTS_MAX:
        last_ns = sorted(ns for table in tables for ns in table["ns"].to_pylist())[EVENTS_MAX - 1]
        tables = [table.filter(pc.less_equal(table["ns"], last_ns)) for table in tables]
    events = [printable_all(row) for table in tables for row in table.to_pylist()]
    events.sort(key=lambda event: (event["ns"], event["process"], event["seq"]))
    return RunEvents(tuple(events), count - len(events))
