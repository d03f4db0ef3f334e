"""`open_run` finds an analysis's tables, and says what there is instead of what there is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kernel.errors import UserError
from rebalance_lab import open_run
from tests.support.runs.seen_runs import analysed_cut


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return analysed_cut(tmp_path_factory.mktemp("runs"))


def test_tables_are_read_by_name(folder: Path) -> None:
    run = open_run(str(folder))
    assert {"runs", "ownership", "events"} <= set(run.names())
    assert "parts.json" not in run.names()
    assert run.arrow("runs", columns=["design"])["design"].to_pylist() == ["eager", "zookeeper"]
    assert set(run.pandas("ownership")["view"]) >= {"authority", "delivering"}
    assert "records_delivered" in run.kinds()
    delivered = run.arrow("events", kind="records_delivered")
    assert "kind" not in delivered.column_names
    assert delivered.num_rows == sum(
        pq.read_metadata(path).num_rows for path in (folder / "tables" / "events").rglob("kind=records_delivered/*")
    )


def test_what_is_not_there_is_refused_with_what_is(folder: Path, tmp_path: Path) -> None:
    run = open_run(folder)
    with pytest.raises(UserError, match=r"unknown table 'ownerships'. Did you mean 'ownership'\?"):
        run.path("ownerships")
    with pytest.raises(UserError, match=r"unknown kind of event 'record_delivered'. Did you mean 'records_delivered'"):
        run.path("events", kind="record_delivered")
    with pytest.raises(UserError, match="has no tables"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match="Analyse it first: rebalance-lab analyze"):
        open_run(tmp_path)
    with pytest.raises(UserError, match="no such file or folder "):
        open_run(tmp_path / "gone")
