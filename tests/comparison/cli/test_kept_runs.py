"""What earlier versions wrote stays readable: `tests/comparison/kept/README.md` says how it was made."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest

from comparison.exits import Exit
from docs.generators.table_pages import SWEEP_TABLES
from tests.comparison.pipeline.test_table_pages import QUERIES
from tests.support.commands.called import code_of
from tests.support.runs.seen_runs import analysed_inline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = Path(__file__).parents[1] / "kept" / "0.1.0"
#: Those of tables that kept ones do not have: of unusable lines, and of sweeps.
WITHOUT = ("quarantine", *SWEEP_TABLES)
#: A table of events that has a column more than then.
GROWN, ADDED = "events/kind=zk_op", "latency_ns"


def copied(folder: Path) -> Path:
    """What is kept, in a folder as it was written."""
    shutil.copytree(KEPT, folder)
    for path in folder.rglob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return copied(tmp_path / "kept")


@pytest.fixture(scope="module")
def renewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, analysed again where the kept tables are."""
    folder = copied(tmp_path_factory.mktemp("renewed") / "kept")
    analysed_inline(folder)
    return folder


def told(path: Path) -> dict[str, dict[str, Any]]:
    """All that a result says of each run but where it is, by design."""
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return {run["design"]: {name: value for name, value in run.items() if name != "path"} for run in runs}


def of_then(now: Any, then: Any) -> Any:
    """Without the fields that there were not."""
    if isinstance(then, dict):
        return {name: of_then(value, then[name]) for name, value in now.items() if name in then}
    if isinstance(then, list) and len(now) == len(then):
        return [of_then(*each) for each in zip(now, then, strict=True)]
    return now


def found(query: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder)
    return sorted(map(str, duckdb.sql(query).fetchall()))


def test_result_is_reported(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("report", kept) == Exit.AS_EXPECTED
    assert capsys.readouterr().err == ""
    page = (kept / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'id="([\w-]+)-lanes"', page) == ["crash-zookeeper", "crash-eager"]


@pytest.mark.usefixtures("without_spark")
def test_runs_have_the_figures_and_verdicts_that_they_had(kept: Path, tmp_path: Path) -> None:
    before = told(kept / "result.json")
    assert all({each["check"] for each in run["verdicts"]} >= {"counts", "settles"} for run in before.values())
    assert code_of("analyze", kept / "crash", "--output", tmp_path / "again") == Exit.AS_EXPECTED
    assert of_then(told(tmp_path / "again" / "result.json"), before) == before


def test_analysis_beside_kept_tables_replaces_all_of_them(renewed: Path) -> None:
    for folder, version in ((KEPT, None), (renewed, b"1")):
        written = [pq.read_schema(path).metadata or {} for path in (folder / "tables").rglob("*.parquet")]
        assert {each.get(b"rebalance_lab.schema_version") for each in written} == {version}
    names = [{path.name for path in (folder / "tables").iterdir()} for folder in (KEPT, renewed)]
    assert names[0] == names[1]


@pytest.mark.parametrize(("table", "query"), [each for each in QUERIES if each[0] not in WITHOUT])
def test_query_finds_in_kept_tables_what_it_finds_in_new_ones(
    renewed: Path, table: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = found(query, KEPT, monkeypatch)
    assert then == found(query, renewed, monkeypatch)
    assert then or table in ("verdicts", "bystanders", "commits")  # none that the query asks for


def test_column_that_was_added_since_is_null_in_kept_tables(renewed: Path, spark: SparkSession) -> None:
    then, now = (str(folder / "tables" / GROWN / "*.parquet") for folder in (KEPT, renewed))
    count = sum(pq.read_metadata(path).num_rows for path in (KEPT / "tables" / GROWN).iterdir())
    both = duckdb.sql(f"FROM read_parquet({[then, now]}, union_by_name = true)")
    merged = spark.read.option("mergeSchema", "true").parquet(then, now)
    for one in (both.columns, merged.columns):
        assert ADDED in one
    assert both.aggregate(f"count(*), count({ADDED})").fetchall() == [(2 * count, 0)]
    assert (merged.count(), merged.where(f"{ADDED} IS NOT NULL").count()) == (2 * count, 0)
