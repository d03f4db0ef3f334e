"""A folder of runs may be somebody else's: nothing is written or removed through its symbolic links."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.errors import EnvironmentFault
from tests.support.runs.seen_runs import analysed_inline, reported_inline, write_cut


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder with a file, beside that of the runs."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    return tmp_path / "precious"


def assert_untouched(precious: Path) -> None:
    assert {each.name: each.read_text() for each in precious.iterdir()} == {"file": "precious"}


@pytest.mark.parametrize("name", ["result.json", "report.html"])
def test_link_in_place_of_a_result_is_replaced(tmp_path: Path, precious: Path, name: str) -> None:
    write_cut(tmp_path / "runs")
    link = tmp_path / "runs" / name
    link.symlink_to("../precious/file")
    reported_inline(tmp_path / "runs")
    assert not link.is_symlink()
    assert link.stat().st_size > 1_000
    assert_untouched(precious)


def test_link_in_place_of_the_tables_is_refused(tmp_path: Path, precious: Path) -> None:
    write_cut(tmp_path / "runs")
    link = tmp_path / "runs" / "tables"
    link.symlink_to("../precious")
    before = sorted(each.name for each in (tmp_path / "runs").iterdir())
    with pytest.raises(EnvironmentFault, match=r"runs/tables is a symbolic link"):
        analysed_inline(tmp_path / "runs")
    assert sorted(each.name for each in (tmp_path / "runs").iterdir()) == before
    assert_untouched(precious)


@pytest.mark.parametrize("name", [".tables-in-progress", ".tables-replaced", ".tables-broken-off"])
@pytest.mark.parametrize("analysed_before", [False, True])
def test_link_in_place_of_a_folder_that_is_there_for_a_moment_is_removed(
    tmp_path: Path, precious: Path, name: str, analysed_before: bool
) -> None:
    write_cut(tmp_path / "runs")
    if analysed_before:
        analysed_inline(tmp_path / "runs")
        write_cut(tmp_path / "runs" / "more")
    link = tmp_path / "runs" / name
    link.symlink_to("../precious")
    analysed_inline(tmp_path / "runs")
    assert (tmp_path / "runs" / "tables" / "runs.parquet").is_file()
    assert not link.is_symlink()
    assert_untouched(precious)
