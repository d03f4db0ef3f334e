"""The pages of trace files and tables are current, and say of every column what it means; their queries and the
examples run on a real analysis.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas
import pyarrow.parquet as pq
import pytest

from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS, named_in_files
from comparison.pipeline.bronze.tables import write_table
from comparison.results.metrics import METRICS
from docs.examples.moved_back import moved_back
from docs.examples.owned_twice import owned_twice
from docs.generators import columns
from docs.generators.pages import DOCS
from docs.generators.table_pages import RUN_NAMES, SWEEP_TABLES, TABLES, TABLES_PAGE, tables_page, trace_page
from kernel.trace.events import KINDS
from tests.comparison.pipeline.test_analysis import PAUSE
from tests.support.runs.seen_runs import analysed_cut, analysed_inline
from tests.support.trace.traces import e, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = re.findall(r"^##+ (\w+)$.*?```sql\n(.*?)```", tables_page(), re.MULTILINE | re.DOTALL)
#: m2 takes part in two rebalances after m1 was frozen.
REBALANCED = [
    e(at_ms, "m2", kind, member="g_m2", stream=0, **fields)
    for at_ms, kind, fields in (
        (3_050, "rebalance_started", {"trigger": "ids"}),
        (3_060, "phase_entered", {"phase": "join", "attempt": 1}),
        (3_110, "phase_entered", {"phase": "claim", "attempt": 1}),
        (3_115, "rebalance_ended", {"outcome": "ok"}),
        (4_130, "rebalance_started", {"trigger": "ids"}),
        (4_160, "rebalance_ended", {"outcome": "ok"}),
    )
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An analysed run in which everything has a row but waits at a coordinator, also an unusable line."""
    found = tmp_path_factory.mktemp("analysed")
    waited = e(3_100, "bystander", "bystander_op", op="getData", ok=True, latency_ns=1_000_000)
    events = sorted([*PAUSE, *REBALANCED, waited], key=lambda event: event["t_ns"])
    run = write_run(found / "pause", events, scenario="pause")
    with (run / "trace" / "m1.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    analysed_inline(found)
    for name, table in SWEEP_TABLES.items():
        write_table(found / "tables" / f"{name}.parquet", table.schema.empty_table())
    return found


def test_every_field_and_column_has_a_meaning_and_no_meaning_is_left_over() -> None:
    fields = {(name, field) for name, kind in KINDS.items() for field in kind.fields}
    assert columns.FIELDS.keys() == {field for _, field in fields}
    assert columns.OF_KIND.keys() <= fields
    assert columns.TABLES.keys() == TABLES.keys() | SWEEP_TABLES.keys()
    for name, table in {**TABLES, **SWEEP_TABLES}.items():
        own = [each for each in named_in_files(table.schema) if name in SWEEP_TABLES or each not in RUN_NAMES]
        assert sorted(columns.TABLES[name]) == sorted(own), name
        assert set(table.key) <= set(own), name


def test_null_of_every_optional_field_is_explained() -> None:
    optional = {(name, field) for name, kind in KINDS.items() for field in kind.optional}
    assert [
        place for place in sorted(optional) if not (columns.OF_KIND.get(place) or columns.FIELDS[place[1]]).null
    ] == []


def test_times_and_lengths_have_a_unit() -> None:
    """Their names end in one."""
    named = [(name, column) for table in columns.TABLES.values() for name, column in table.items()]
    named += [item for part in (columns.FIELDS, columns.HEADER, columns.END, columns.COMMON) for item in part.items()]
    timed = [(name, column) for name, column in named if re.search(r"(^|_)(ns|ms|s)$", name)]
    assert len(timed) > 20
    assert [name for name, column in timed if not column.unit] == []


def test_the_unit_of_a_metric_is_in_its_name_or_in_its_meaning() -> None:
    """The page has no other place for it."""
    units = [(name, metric.unit) for name, metric in METRICS.items() if metric.unit not in metric.meaning]
    assert [name for name, unit in units if not name.endswith(f"_{unit}")] == []


def test_what_is_null_in_a_table_is_explained(folder: Path, tmp_path: Path) -> None:
    analysed_cut(tmp_path)
    seen, silent = set(), set()
    for tables in (folder / "tables", tmp_path / "tables"):
        for name, table in TABLES.items():
            for path in tables.glob(table.files):
                read = pq.read_table(path)
                null = {(name, column) for column in read.column_names if read[column].null_count}
                seen |= null
                silent |= {(name, column) for _, column in null if not columns.TABLES[name][column].null}
    assert len(seen) > 5
    assert silent == set()


def test_tables_of_an_analysis_are_those_of_the_page(folder: Path) -> None:
    tables = folder / "tables"
    names = {path.name.removesuffix(".parquet") for path in tables.iterdir()}
    assert names - {"events", "parts.json", *SWEEP_TABLES} == set(TABLES)
    for name, table in TABLES.items():
        for path in tables.glob(table.files):
            schema = pq.read_schema(path)
            own = [each for each in named_in_files(table.schema) if each not in RUN_NAMES]
            assert schema.names == [*RUN_NAMES, *own], name
    kinds = {path.name.removeprefix("kind=") for path in (tables / "events").iterdir()}
    assert kinds <= EVENT_SCHEMAS.keys()


@pytest.mark.parametrize(("table", "query"), QUERIES, ids=[name for name, _ in QUERIES])
def test_query_of_a_table_runs(folder: Path, table: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = duckdb.sql(query).fetchall()
    assert found or table in ("verdicts", "waits", *SWEEP_TABLES)  # the run has no coordinator


@pytest.mark.parametrize("table", TABLES)
def test_table_is_read_in_pandas_as_the_page_says(folder: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = re.findall(r"`pandas\.read_parquet\(\"(.*?)\"\)`", TABLES_PAGE.read_text(encoding="utf-8"))
    files = TABLES[table].files
    monkeypatch.chdir(folder)
    read = pandas.read_parquet(said.replace("ownership", files.removesuffix("/*.parquet")))
    assert [(len(read),)] == duckdb.sql(f"SELECT count(*) FROM 'tables/{files}'").fetchall()


def test_query_of_the_trace_page_runs_in_a_run_s_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", trace_page(), re.DOTALL)
    monkeypatch.chdir(folder / "pause")
    found = duckdb.sql(query).fetchall()
    assert {kind for _, kind, _, _ in found} >= {"fault_started", "fault_ended"}
    assert found[0][0] == 0


def test_every_table_has_a_query() -> None:
    assert [name for name, _ in QUERIES] == [*TABLES, "Events", *SWEEP_TABLES]


def test_who_owned_a_partition_twice(folder: Path) -> None:
    (row,) = owned_twice(folder).to_dict("records")
    assert (row["topic"], row["partition"], row["owners"]) == ("t", 0, "m1/g_m1/0 and m2/g_m2/0")
    assert (row["from_s"], row["lasted_ms"]) == (3.112, 1_088.0)
    assert owned_twice(folder, "delivering").empty


def test_which_commits_moved_back(folder: Path) -> None:
    found = moved_back(folder)
    (row,) = [dict(zip(found.columns, values, strict=True)) for values in found.fetchall()]
    assert (row["at_s"], row["by_member"], row["record_offset"]) == (4.12, "g_m1", 20)
    assert (row["before_by"], row["offset_before"], row["moved_back_by"]) == ("g_m2", 30, 10)
    assert (row["owner"], row["is_stale"]) == ("g_m2-0", True)


@pytest.mark.parametrize("name", ["owned_twice.py", "moved_back.py"])
def test_example_is_a_command(folder: Path, name: str) -> None:
    ended = subprocess.run(
        [sys.executable, DOCS / "examples" / name, folder], capture_output=True, text=True, check=True
    )
    assert "g_m1" in ended.stdout


def test_waits_of_members_in_the_notebook(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells run one after the other, as in Jupyter."""
    monkeypatch.setenv("REBALANCE_LAB_FOLDER", str(folder))
    notebook = json.loads((DOCS / "examples" / "waits.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], {cell["cell_type"] for cell in notebook["cells"]}) == (4, {"markdown", "code"})
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"cell {number}", "exec"), namespace)
    waits = [row.asDict() for row in namespace["waits"].collect()]
    names = ("change", "process", "rebalancing_ms", "joining_ms")
    assert [tuple(row[name] for name in names) for row in waits] == [("freeze", "m2", 95.0, 50.0)]
    assert "freeze" in capsys.readouterr().out
    assert namespace["spark"] is spark
