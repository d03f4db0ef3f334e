"""The queries say of the tables of a finished analysis what the analysis itself found."""

from __future__ import annotations

from pathlib import Path

import duckdb

from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.generated.runs import write_synthetic_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.reading import read_tables
from comparison.pipeline.sums.queries import statement, sums_of, text_of
from comparison.results.keys import SERIALS, WHOLE_RUN
from tests.support.runs.seen_runs import analysed_inline
from tests.support.trace.traces import e, tables, traced_run


def test_queries_on_files_give_what_was_measured(tmp_path: Path) -> None:
    write_synthetic_runs(tmp_path / "runs", runs=2, events_min=3_000, members=3, partitions=4)
    analysed_inline(tmp_path)
    kept = tmp_path / "tables"
    database = duckdb.connect()
    for name in ("ownership", "segments", "commits", "changes"):
        database.read_parquet(f"{kept}/{name}/*.parquet").create_view(name)
    database.read_parquet(f"{kept}/runs.parquet").create_view("runs")
    database.sql(text_of("windows")).create_view("windows")
    runs = find_runs([tmp_path / "runs"])
    found, _ = read_tables(runs, [chunk for part in parts_of(runs, 1) for chunk in part.chunks])
    measured = {run.run_id: measure(run, found[place])[0] for place, run in enumerate(runs)}
    sums = sums_of(database.sql(statement()).fetchall())
    assert sums.keys() == measured.keys()
    for run_id, of_run in sums.items():
        whole = measured[run_id]
        assert (of_run.coverage, of_run.turnover, of_run.begun) == (whole.coverage, whole.turnover, whole.begun)
        assert of_run.commits.written == whole.commits.written > 0


def test_records_are_counted_whole_though_their_numbers_are_larger_than_any_time() -> None:
    acked = e(0, "runner", "records_acked", p=0, first=0, last=4, serial_first=100, serial_last=104)
    measured, _ = measure(traced_run(), tables([acked]))
    assert measured.coverage[WHOLE_RUN, SERIALS].gap == 5
