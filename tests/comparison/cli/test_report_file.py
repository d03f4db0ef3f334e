"""The report of an analysis is written from what is beside it, and hostile names stay text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import force_setattr

from comparison.cli.catalogue_text import catalogue
from comparison.cli.report_file import REPORT, left_out, write_report
from comparison.exits import Exit
from comparison.pipeline.analysis import analyze
from comparison.run_folder import write_json
from comparison.scenarios.plan.catalogue import CATALOGUE
from tests.support.runs.inline_spark import InlineSpark
from tests.support.runs.seen_runs import analysed_inline, reported_inline, write_cut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_report_has_lanes_conditions_and_what_to_look_for(tmp_path: Path) -> None:
    write_cut(tmp_path)
    write_json(tmp_path / "command.json", {"command": ["rebalance-lab", "run", "split-brain"], "left_out": []})
    text = reported_inline(tmp_path).read_text(encoding="utf-8")
    assert "rebalance-lab run split-brain" in text
    assert "two deliver: m1 + m2" in text
    assert "Two consumers own my partition" in text
    assert text.index('id="split-brain-zookeeper-lanes"') < text.index('id="split-brain-eager-lanes"')


def test_commands_that_write_no_report_do_not_wait_for_what_it_needs() -> None:
    code = "import sys; import comparison.cli.analysis; print(sorted({'jinja2', 'pandas', 'pyarrow'} & {*sys.modules}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout == "[]\n"


def test_report_of_runs_of_several_commands_has_each_of_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_cut(tmp_path / "runs" / name)
        write_json(
            tmp_path / "runs" / name / "command.json", {"command": ["rebalance-lab", "run", name], "left_out": []}
        )
    result = analyze(cast("SparkSession", InlineSpark(1)), [tmp_path / "runs"], output=tmp_path / "all")
    assert write_report(result, tmp_path / "all") == []
    text = (tmp_path / "all" / REPORT).read_text(encoding="utf-8")
    assert "rebalance-lab run one\nrebalance-lab run two\n" in text


def test_report_needs_no_record_of_the_command(tmp_path: Path) -> None:
    write_cut(tmp_path)
    (tmp_path / "command.json").write_bytes(b"[]")
    (tmp_path / "run.json").write_bytes(b"{")
    text = reported_inline(tmp_path).read_text(encoding="utf-8")
    assert not re.search(r"^rebalance-lab run", text, re.MULTILINE)


def test_every_scenario_is_described_in_words() -> None:
    described = catalogue()
    assert list(described) == [*CATALOGUE, "playground"]
    assert all(each["symptom"] and each["look_for"] and each["steps"] for each in described.values())
    assert not any("(" in step.split()[0] for each in described.values() for step in each["steps"])


def test_run_that_cannot_be_shown_costs_no_other_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cut(tmp_path)
    result = analysed_inline(tmp_path)
    bad, good = result.runs
    force_setattr(bad.changes[0], "from_ms", "soon")
    unshown = write_report(result, tmp_path)
    assert [each.path for each in unshown] == [bad.path]
    assert re.search(r"TypeError: .* \(\w+\.py, line \d+\)$", unshown[0].why)
    text = (tmp_path / REPORT).read_text(encoding="utf-8")
    assert f"split-brain-{good.design}-lanes" in text
    assert f"split-brain-{bad.design}-lanes" not in text
    assert left_out(unshown) == Exit.INTERNAL
    assert f"{bad.path} is missing in the report: TypeError" in capsys.readouterr().err


def test_report_without_any_run_that_could_be_shown_says_so_of_each(tmp_path: Path) -> None:
    write_cut(tmp_path)
    result = analysed_inline(tmp_path)
    for run in result.runs:
        force_setattr(run.changes[0], "from_ms", "soon")
    assert [each.path for each in write_report(result, tmp_path)] == [run.path for run in result.runs]
    assert (tmp_path / REPORT).is_file()
