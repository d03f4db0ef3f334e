"""What kept members from fetching partitions: refusals of brokers, and pauses that the application asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from comparison.pipeline.silver.deliveries import by_partition
from comparison.pipeline.silver.groups import group_column
from comparison.pipeline.silver.naming import WHERE

if TYPE_CHECKING:
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context

REFUSED, PAUSED, RESUMED = "fetch_refused", "partitions_paused", "partitions_resumed"
#: The columns that are needed beside those that are counted by.
NEEDED = ("process", "member", "stream", "cause", "t_ns", "seq")
#: One row for each partition that could not be fetched from then on, or was paused or resumed.
HINDRANCE_SCHEMA = pa.schema(
    [
        *WHERE,
        ("kind", pa.string()),
        ("process", pa.string()),
        ("stream", pa.int64()),
        ("cause", pa.string()),
        ("t_ns", pa.int64()),
        ("seq", pa.int64()),
    ]
)


def hindrances_of(tables: Tables, context: Context) -> pa.Table:
    """HINDRANCE_SCHEMA."""
    found = [HINDRANCE_SCHEMA.empty_table()]
    if REFUSED in tables:
        table = tables[REFUSED]
        columns = {name: table[name] for name in (*NEEDED, "topic", "partition")}
        columns |= {"group": group_column(context.memberships, table), "kind": pa.repeat(REFUSED, len(table))}
        found.append(pa.table(columns).select(HINDRANCE_SCHEMA.names).cast(HINDRANCE_SCHEMA))
    listed = [kind for kind in (PAUSED, RESUMED) if kind in tables]
    return pa.concat_tables([*found, *(by_partition(tables[kind], kind, context, HINDRANCE_SCHEMA) for kind in listed)])
