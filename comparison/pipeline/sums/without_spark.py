"""The same queries without Spark, for those who have the tables of a single run at hand: DuckDB answers them.

A fuzzer asks thousands of times, always of a few rows, and planning costs ten times as much as answering. So each
process prepares the statement once, and what a run has is put into the tables that it was prepared for.
"""

from __future__ import annotations

import atexit
import importlib
import os
from functools import cache
from typing import TYPE_CHECKING

from comparison.pipeline.sums.queries import statement, sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from comparison.pipeline.sums.queries import Sums


def answered(tables: Mapping[str, pa.Table]) -> dict[str, Sums]:
    """The figures of the runs in these tables, as they are in files: ownership, segments, commits, windows."""
    database = _prepared(os.getpid(), tuple((name, table.schema) for name, table in tables.items()))
    for name, table in tables.items():
        database.execute(f"DELETE FROM {name}")
        database.register("given", table)
        database.execute(f"INSERT INTO {name} SELECT * FROM given")
    return sums_of(database.execute("EXECUTE sums").fetchall())


@cache
def _prepared(process: int, schemas: tuple[tuple[str, pa.Schema], ...]) -> DuckDBPyConnection:
    """Of this process: a fork must not use its parent's."""
    # DuckDB complains of what is left of it when a process ends. So it is not loaded among a command's other modules,
    # which are never freed (`lean_imports.importing`).
    duckdb = importlib.import_module("duckdb")
    atexit.register(_prepared.cache_clear)
    database: DuckDBPyConnection = duckdb.connect(config={"threads": 1})
    database.execute("PRAGMA disable_optimizer")
    for name, schema in schemas:
        database.register("given", schema.empty_table())
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    database.execute(f"PREPARE sums AS {statement()}")
    return database
