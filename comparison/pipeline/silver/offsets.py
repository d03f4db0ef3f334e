"""All about offsets in one table: commits at the authority, where deliveries start, and offsets read at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.silver.deliveries import owners_of
from comparison.pipeline.silver.groups import group_column
from comparison.pipeline.silver.naming import WHERE

if TYPE_CHECKING:
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context

WRITTEN, REFUSED, FINAL = "offset_written", "offset_refused", "final_offset"
#: A member begins to deliver a partition; and before that, if the group has no offset that it could begin at.
STARTED, RESET = "position_started", "position_reset"
#: Rows of different kinds, distinguished by `kind`.
OFFSET_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        *WHERE,
        ("t_ns", pa.int64()),
        ("seq", pa.int64()),
        ("role", pa.string()),
        ("process", pa.string()),
        ("offset", pa.int64()),
        ("by", pa.string()),  #: a member; the stream that starts, `process/member/stream`
        ("reset", pa.string()),  #: auto.offset.reset, where it set the position
        ("epoch", pa.int64()),
        ("error", pa.string()),
        ("end", pa.int64()),  #: of the log, with an offset read at the end
    ]
)


def offset_rows(tables: Tables, context: Context) -> pa.Table:
    """Everything about offsets that the judgement needs: OFFSET_SCHEMA."""
    found = [OFFSET_SCHEMA.empty_table()]
    for kind in (WRITTEN, REFUSED, STARTED, RESET, FINAL):
        if kind not in tables:
            continue
        table = tables[kind]
        columns = {name: table[name] for name in table.column_names if name in OFFSET_SCHEMA.names}
        columns["kind"] = pa.repeat(kind, len(table))
        if kind == FINAL:
            columns["offset"] = table["committed"]
        if kind in (STARTED, RESET):
            columns["group"] = group_column(context.memberships, table)
            columns["by"] = owners_of(table)
        missing = {field.name: pa.nulls(len(table), field.type) for field in OFFSET_SCHEMA if field.name not in columns}
        found.append(pa.table(columns | missing).select(OFFSET_SCHEMA.names).cast(OFFSET_SCHEMA))
    return pa.concat_tables(found)


def of_ended_sessions(tables: Tables, context: Context) -> int:
    """Commits that ZooKeeper stored after it had expired the session in which they were sent."""
    if not context.session_ends or WRITTEN not in tables:
        return 0
    written = tables[WRITTEN].select(["session", "t_ns", "seq"])
    candidates = written.filter(pc.is_in(written["session"], pa.array(context.session_ends, pa.string())))
    return sum((row["t_ns"], row["seq"]) > context.session_ends[row["session"]] for row in candidates.to_pylist())
