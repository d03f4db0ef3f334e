"""Which commits moved a committed offset back, whose were they, and who owned the partition? With DuckDB.

    python docs/examples/moved_back.py runs/latest

After such a commit the next owner reads records again that had been read before.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

QUERY = """
WITH accepted AS (
    SELECT *, lag(record_offset) OVER earlier AS offset_before, lag(by_member) OVER earlier AS before_by
    FROM read_parquet($commits)
    WHERE outcome = 'accepted'
    WINDOW earlier AS (PARTITION BY run_id, group_id, topic, partition ORDER BY t_ns)
)
SELECT run_id, topic, partition, t_ns / 1e9 AS at_s, by_member, record_offset, before_by, offset_before,
       moved_back_by, coalesce(owner, 'nobody') AS owner, is_stale
FROM accepted
WHERE moved_back_by > 0
ORDER BY run_id, t_ns
"""


def moved_back(folder: Path) -> duckdb.DuckDBPyRelation:
    """One row for each commit that moved an offset back; `is_stale`: its sender was not the owner."""
    return duckdb.sql(QUERY, params={"commits": str(folder / "tables" / "commits" / "*.parquet")})


if __name__ == "__main__":
    moved_back(Path(sys.argv[1])).show(max_width=200)
