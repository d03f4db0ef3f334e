"""The tables of an analysis (docs/architecture.md, `tables/`), read with pyarrow; they must have the columns needed.

The report knows the tables only as files: `tests/comparison/report/view/test_runs.py` holds these columns against the
schemas of the pipeline. A run with more rows than ROWS_MAX in a table is thinned here, so that no report grows with the
length of a run: accepted commits evenly; of stretches the shortest, which are joined where somebody had the partition.
What was left out is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comparison.results.keys import BELIEVED, OVER_TIME
from kernel.errors import UserError
from kernel.platform.places import arrow_source, exists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.platform.places import Place

TABLES = "tables"
#: Rows that are read of one run and one table.
ROWS_MAX = 20_000
_PARTITION = ("group_id", "topic", "partition")
#: The columns that the report reads, by table.
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ownership": ("view", *_PARTITION, "owner", "from_ns", "until_ns"),
        "segments": ("view", *_PARTITION, "low", "high", "holders", "is_wanted", "counts_as_overlap"),
        "commits": (*_PARTITION, "t_ns", "record_offset", "by_member", "outcome", "is_stale", "moved_back_by"),
        "rounds": ("round", "from_ns", "until_ns", "generation"),
        "phases": ("process", "member", "phase", "from_ns", "until_ns"),
        "faults": ("fault", "target", "from_ns", "healed_ns"),
        "course": ("from_ns", "until_ns", "delivered", "duplicates", "undelivered", "lag"),
        "waits": ("round", "process", "member", "joined_ns", "waited_ns", "is_waited_for"),
        "events/kind=member_started": ("process", "member", "stream"),
    }
)
MEMBERS = "events/kind=member_started"
OWNERSHIP = "ownership"
#: The owner of stretches that were too many to be kept apart, and into about how many a lane is joined at most.
SEVERAL, _JOINED_INTO = "several", 500


class TablesMissing(UserError):
    """An analysis of an earlier version left no such table; analyse the run again."""


@dataclass(frozen=True, slots=True)
class RunTables:
    """The rows of one run by table, and how many were left out."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    left_out: Mapping[str, int]


def read_tables(folder: Place) -> dict[str, RunTables]:
    """The tables in the result's `folder`, by run id. Raises TablesMissing."""
    by_run: dict[str, dict[str, pa.Table]] = {}
    for name, columns in COLUMNS.items():
        for run_id, table in _by_run(_read(folder / TABLES, name, columns)):
            by_run.setdefault(run_id, {})[name] = table
    return {run_id: _rows(tables) for run_id, tables in by_run.items()}


def _read(folder: Place, name: str, columns: Sequence[str]) -> pa.Table | None:
    path = folder / name
    if not exists(path):
        if name == MEMBERS and exists(folder):
            return None  # nobody started
        raise TablesMissing(f"{path} is missing. Analyse the run again with this version")
    kept = None
    if name == "segments":
        # Of lines that are no times, and of stretches that say nothing, nothing is drawn.
        kept = pc.field("view").isin(OVER_TIME) & (pc.field("counts_as_overlap") | (pc.field("holders") == 0))
    try:
        return pq.read_table(**arrow_source(path), columns=["run_id", *columns], filters=kept, partitioning=None)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise TablesMissing(f"{path} is not as this version writes it ({error}): analyse the run again") from error


def _by_run(table: pa.Table | None) -> list[tuple[str, pa.Table]]:
    if table is None or not len(table):
        return []
    codes = pc.dictionary_encode(table["run_id"].combine_chunks())
    places = codes.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(places, kind="stable")
    edges = np.searchsorted(places[order], np.arange(len(codes.dictionary) + 1))
    return [
        (str(name), table.take(order[edges[number] : edges[number + 1]]).drop_columns(["run_id"]))
        for number, name in enumerate(codes.dictionary.to_pylist())
    ]


def _rows(tables: Mapping[str, pa.Table]) -> RunTables:
    rows: dict[str, list[dict[str, Any]]] = {}
    left_out: dict[str, int] = {}
    for name in COLUMNS:
        table = tables.get(name)
        if table is None:
            rows[name] = []
            continue
        if name == OWNERSHIP:
            table = _owners_once(table)
        kept = _thinned(name, table)
        rows[name] = kept.to_pylist()
        if len(kept) < len(table):
            left_out[name] = len(table) - len(kept)
    return RunTables(rows, left_out)


def _thinned(name: str, table: pa.Table) -> pa.Table:
    if len(table) <= ROWS_MAX:
        return table
    if name == "commits":
        telling = pc.or_(pc.not_equal(table["outcome"], "accepted"), pc.greater(table["moved_back_by"], 0))
        usual = np.flatnonzero(~telling.to_numpy())[:: 1 + len(table) // ROWS_MAX]
        return table.take(np.sort(np.concatenate([np.flatnonzero(telling.to_numpy())[:ROWS_MAX], usual])))
    low, high = ("low", "high") if name == "segments" else ("from_ns", "until_ns")
    if low not in table.column_names:
        return table.slice(0, ROWS_MAX)
    lows, highs = table[low].to_numpy(), pc.fill_null(table[high], (1 << 62) - 1).to_numpy()
    order = np.argsort(lows - highs, kind="stable")
    kept = table.take(np.sort(order[:ROWS_MAX]))
    return pa.concat_tables([kept, _joined(table.take(order[ROWS_MAX:]))]) if name == OWNERSHIP else kept


def _owners_once(table: pa.Table) -> pa.Table:
    """What members believe is not drawn; of it, one row for each owner is kept, for the names."""
    is_believed = pc.equal(table["view"], BELIEVED)
    believed = table.filter(is_believed)
    codes = pc.dictionary_encode(believed["owner"].combine_chunks()).indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return pa.concat_tables([table.filter(pc.invert(is_believed)), believed.take(np.sort(first))])


def _joined(table: pa.Table) -> pa.Table:
    """Stretches of ownership as fewer ones, of nobody in particular."""
    where = ["view", *_PARTITION]
    table = table.sort_by([(name, "ascending") for name in (*where, "from_ns")])
    lows, highs = table["from_ns"].to_numpy(), pc.fill_null(table["until_ns"], 0).to_numpy()
    distance = (highs.max() - lows.min()) // _JOINED_INTO
    begins = np.ones(len(table), dtype=np.bool_)
    begins[1:] = lows[1:] - highs[:-1] > distance
    for name in where:
        codes = pc.dictionary_encode(table[name].combine_chunks()).indices.to_numpy()
        begins[1:] |= codes[1:] != codes[:-1]
    rows = np.flatnonzero(begins)
    columns = {name: table[name].take(rows) for name in table.column_names}
    columns["owner"] = pa.repeat(pa.scalar(SEVERAL), len(rows))
    columns["until_ns"] = pa.array(np.maximum.reduceat(highs, rows), pa.int64())
    return pa.table(columns, schema=table.schema)
