"""`report` puts finished analyses on one page, and says what is missing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from comparison.cli.report import report
from kernel.errors import EnvironmentFault, UserError
from tests.support.commands.called import output_of
from tests.support.runs.seen_runs import analysed_inline, write_cut


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs")
    write_cut(path)
    analysed_inline(path)
    return path


def lanes(path: Path) -> list[str]:
    return re.findall(r'id="([\w-]+)-lanes"', path.read_text(encoding="utf-8"))


def test_whole_result_is_written_beside_it(folder: Path) -> None:
    assert output_of(report, folder) == f"{folder / 'report.html'}\n"
    assert lanes(folder / "report.html") == ["split-brain-zookeeper", "split-brain-eager"]


def test_one_run_of_a_result_is_shown_alone(folder: Path, tmp_path: Path) -> None:
    output_of(report, folder / "split-brain" / "eager", "-o", tmp_path / "x.html")
    assert lanes(tmp_path / "x.html") == ["split-brain-eager"]


def test_folder_of_a_scenario_stands_for_it_with_the_run_that_another_scenario_has(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "split-brain", tmp_path / "split-brain")
    sharing = tmp_path / "split-brain-ensemble"
    shutil.copytree(folder / "split-brain" / "eager", sharing / "eager")
    for trace in (sharing / "eager" / "trace").iterdir():
        trace.write_text(trace.read_text().replace('"scenario":"split-brain"', f'"scenario":"{sharing.name}"'))
    analysed_inline(tmp_path)
    output_of(report, sharing, "-o", tmp_path / "x.html")
    assert lanes(tmp_path / "x.html") == [f"{sharing.name}-zookeeper", f"{sharing.name}-eager"]
    output_of(report, tmp_path / "split-brain", sharing, "-o", tmp_path / "both.html")
    assert "All 3 runs" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_a_part_does_not_replace_the_report_of_the_whole(folder: Path) -> None:
    with pytest.raises(UserError, match="Say with -o where its page goes"):
        output_of(report, folder / "split-brain" / "eager")


def test_runs_of_several_results_are_on_one_page(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder / "split-brain" / "zookeeper", other / "split-brain" / "zookeeper")
    analysed_inline(other)
    output_of(report, folder / "split-brain" / "eager", other, "-o", tmp_path / "both.html")
    assert sorted(lanes(tmp_path / "both.html")) == ["split-brain-eager", "split-brain-zookeeper"]
    with pytest.raises(UserError, match=r"--names is for two results with a scenario in the same design"):
        output_of(report, folder / "split-brain" / "eager", other, "-o", tmp_path / "both.html", "--names", "a,b")


def test_two_results_of_the_same_are_compared_and_three_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "split-brain" / "zookeeper", tmp_path / "other" / "split-brain" / "zookeeper")
    analysed_inline(tmp_path / "other")
    output_of(report, folder, tmp_path / "other", "-o", tmp_path / "both.html", "--names", "old,new")
    assert lanes(tmp_path / "both.html") == [f"split-brain-in-zookeeper-{side}" for side in ("old", "new")]
    with pytest.raises(UserError, match=r"split-brain in zookeeper is in .* and in .*. Give one of them"):
        output_of(report, folder, tmp_path / "other", folder / "split-brain" / "eager", "-o", tmp_path / "x.html")


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [(None, "no result.json with a run in"), (b"{", "cannot be shown"), (b'{"schema_version": 99}', "version 99")],
)
def test_what_was_not_analysed_is_refused_with_the_remedy(tmp_path: Path, broken: bytes | None, complaint: str) -> None:
    if broken is not None:
        (tmp_path / "result.json").write_bytes(broken)
    with pytest.raises(UserError, match=f"{complaint}.*Give a folder that `run` or `compare` created"):
        output_of(report, tmp_path, "-o", tmp_path / "x.html")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match=f"{complaint}.*rebalance-lab analyze"):
        output_of(report, tmp_path, "-o", tmp_path / "x.html")


def test_unwritable_file_is_named(folder: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"cannot write /nowhere/x\.html"):
        output_of(report, folder, "-o", "/nowhere/x.html")


@pytest.mark.parametrize("starts", [True, False])
def test_page_is_opened_in_the_browser(folder: Path, monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or starts)
    said = output_of(report, folder, "--open")
    assert opened == [(folder / "report.html").as_uri()]
    assert ("no browser could be started" in said) is not starts
