"""What kept members from fetching partitions: pauses that the application asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from comparison.pipeline.silver.deliveries import by_partition

if TYPE_CHECKING:
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context

PAUSED, RESUMED = "partitions_paused", "partitions_resumed"
#: The columns that are needed beside those that are counted by.
NEEDED = ("process", "member", "stream", "cause", "t_ns", "seq")
#: One row for each partition that was paused or resumed.
HINDRANCE_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int64()),
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
    for kind in (PAUSED, RESUMED):
        if kind in tables:
            found += [by_partition(tables[kind], kind, context, HINDRANCE_SCHEMA)]
    return pa.concat_tables(found)
