"""Unusable lines as a table: in which file and line, what is wrong, and how the line begins.

Of each file the first KEPT_LINES are in it; `runs` and the integrity of the files have the numbers of all. A file
without a usable header has one row, for its first line, and one that cannot be read has one for line 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from comparison.pipeline.bronze.decode import KEPT_LINES, Unusable
from comparison.pipeline.bronze.kinds import RUN_COLUMNS
from comparison.pipeline.bronze.tables import with_run, write_table
from kernel.platform.places import arrow_source, exists, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.pipeline.bronze.runs import TraceRun
    from kernel.platform.places import Place

QUARANTINE = "quarantine"
#: The columns of a run's unusable lines, without those of the run.
_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),  # from 1; 0: the file as a whole
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("text", pa.string()),
    ]
)
QUARANTINE_SCHEMA = pa.schema([*RUN_COLUMNS, *_SCHEMA])


def quarantine_table(run: TraceRun, lines: Iterable[tuple[str, Unusable]]) -> pa.Table:
    """Unusable lines of a run's files: QUARANTINE_SCHEMA."""
    rows = [
        {"file": file, "line": each.line, "reason": str(each.reason), "detail": each.detail, "text": each.text}
        for file, each in lines
    ]
    return with_run(run, pa.Table.from_pylist(rows, _SCHEMA))


def write_quarantine(folder: Place, number: int, tables: Sequence[pa.Table]) -> None:
    """Write those of a part, if there are any."""
    if any(len(table) for table in tables):
        write_table(quarantine_path(folder, number), pa.concat_tables(tables))


def count_lines_on(folder: Place, pieces: Iterable[tuple[int, int]]) -> None:
    """Number the lines of one file that many parts hold, and keep the first KEPT_LINES unusable ones.

    `pieces` are the parts in the order of the file, with the number of lines of each. A task knows its own lines only.
    """
    before = kept = 0
    for part, lines in pieces:
        path = quarantine_path(folder, part)
        if exists(path):
            table = pq.read_table(**arrow_source(path), partitioning=None)
            place = table.schema.get_field_index("line")
            numbers = pa.compute.add(table["line"], before)
            table = table.set_column(place, table.schema.field(place), numbers).slice(0, KEPT_LINES - kept)
            kept += len(table)
            if len(table):
                write_table(path, table)
            else:
                remove(path)
        before += lines


def quarantine_path(folder: Place, number: int) -> Place:
    return folder / QUARANTINE / f"part-{number:05}.parquet"
