"""Tables that an earlier analysis made, carried over into the folder of the next one."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comparison.pipeline.bronze.kinds import RUN_COLUMNS
from comparison.pipeline.bronze.quarantine import QUARANTINE
from comparison.pipeline.bronze.tables import EVENTS, with_run, write_table
from comparison.pipeline.gold.partitions import TABLES
from comparison.pipeline.written import OF_RUNS
from kernel.platform.places import arrow_source, copy_file, is_in_store, make_folder, name_below, sizes_below

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from comparison.pipeline.bronze.runs import TraceRun
    from kernel.platform.places import Place

#: The tables that are made from lines, and those that are measured from them.
READ, MEASURED = (EVENTS, QUARANTINE), (*TABLES, *OF_RUNS)
_RUN_ID = "run_id"


def sizes_of(folder: Place) -> dict[str, int]:
    """The files of the tables that tasks write, and their sizes."""
    return {name_below(path, folder): size for path, size in _files(folder, (*READ, *MEASURED)).items()}


def free_number(folder: Place) -> int:
    """The first number that no part of any table has, nor any with a higher one."""
    return 1 + max(map(number_of, _files(folder, (*READ, *MEASURED))), default=-1)


def number_of(path: Place) -> int:
    """Of a file of a table: its part's or its bucket's."""
    return int(path.stem.rpartition("-")[2])


def _files(folder: Place, names: Collection[str]) -> dict[Place, int]:
    """The files of these tables, in order, and their sizes."""
    found = sizes_below(folder, "part-*.parquet")
    return {path: found[path] for path in sorted(found) if name_below(path, folder).partition("/")[0] in names}


class Carried(NamedTuple):
    """A run whose rows are carried over: as it is now, and whether its rows have to say something else about it."""

    run: TraceRun
    is_renamed: bool


def carry(
    folder: Place, other: Place, names: Collection[str], runs: Mapping[str, Carried], held: Mapping[int, Iterable[str]]
) -> None:
    """Give `other` the rows that these runs have in some tables of `folder`. A run's key is its id there.

    `held` are the runs of each part, whose number a file of READ has. A file of which all rows remain as
    they are is linked where the disk can. Others are written without the rows of other runs, and with what the rows
    have to say of each run now.
    """
    for path in _files(folder, names):
        name = name_below(path, folder)
        target = other / name
        is_measured = name.partition("/")[0] in MEASURED
        there = _runs_in(path) if is_measured else list(held.get(number_of(path), ()))
        if not there and not is_measured:
            continue  # a part that nothing is known of
        kept = [run_id for run_id in there if run_id in runs]
        if kept == there and not any(runs[run_id].is_renamed for run_id in kept):
            make_folder(target.parent, parents=True)
            _link(path, target)
        elif kept:
            table = pq.read_table(**arrow_source(path), partitioning=None)
            rows = {run_id: table.filter(pc.equal(table[_RUN_ID], run_id)) for run_id in kept}
            # Events of a kind that nobody has are no table; what is measured is one, though it be empty.
            if is_measured or any(map(len, rows.values())):
                make_folder(target.parent, parents=True)
                write_table(target, pa.concat_tables([_of(runs[run_id].run, each) for run_id, each in rows.items()]))


def _runs_in(path: Place) -> list[str]:
    """The ids of the runs whose rows are in a file."""
    with pq.ParquetFile(**arrow_source(path)) as file:
        found: list[str] = pc.unique(file.read(columns=[_RUN_ID])[_RUN_ID]).to_pylist()
    return found


def _of(run: TraceRun, table: pa.Table) -> pa.Table:
    """The table with the columns that say which run it is of."""
    return with_run(run, table.drop_columns([column.name for column in RUN_COLUMNS]))


def _link(source: Place, target: Place) -> None:
    if is_in_store(source) or is_in_store(target):
        copy_file(source, target)
        return
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)
