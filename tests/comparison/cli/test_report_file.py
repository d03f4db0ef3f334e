"""The report of an analysis is written from what is beside it, and hostile names stay text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from comparison.cli.catalogue_text import catalogue
from comparison.cli.report_file import write_report
from comparison.pipeline.analysis import analyze
from comparison.run_folder import write_json
from comparison.scenarios.plan.catalogue import CATALOGUE
from tests.support.inline_spark import InlineSpark
from tests.support.seen_runs import analysed_inline, write_cut

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_report_has_lanes_conditions_and_what_to_look_for(tmp_path: Path) -> None:
    write_cut(tmp_path)
    write_json(tmp_path / "command.json", {"command": ["rebalance-lab", "run", "split-brain"], "left_out": []})
    text = write_report(analysed_inline(tmp_path), tmp_path).read_text(encoding="utf-8")
    assert "rebalance-lab run split-brain" in text
    assert "two deliver: m1 + m2" in text
    assert "Two consumers own my partition" in text
    assert text.index('id="split-brain-zookeeper-lanes"') < text.index('id="split-brain-eager-lanes"')


def test_report_of_runs_of_several_commands_has_each_of_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_cut(tmp_path / "runs" / name)
        write_json(
            tmp_path / "runs" / name / "command.json", {"command": ["rebalance-lab", "run", name], "left_out": []}
        )
    result = analyze(cast("SparkSession", InlineSpark(1)), [tmp_path / "runs"], output=tmp_path / "all")
    text = write_report(result, tmp_path / "all").read_text(encoding="utf-8")
    assert "rebalance-lab run one\nrebalance-lab run two\n" in text


def test_report_needs_no_record_of_the_command(tmp_path: Path) -> None:
    write_cut(tmp_path)
    (tmp_path / "command.json").write_bytes(b"[]")
    (tmp_path / "run.json").write_bytes(b"{")
    text = write_report(analysed_inline(tmp_path), tmp_path).read_text(encoding="utf-8")
    assert not re.search(r"^rebalance-lab run", text, re.MULTILINE)


def test_every_scenario_is_described_in_words() -> None:
    described = catalogue()
    assert list(described) == [*CATALOGUE, "playground"]
    assert all(each["symptom"] and each["look_for"] and each["steps"] for each in described.values())
    assert not any("(" in step.split()[0] for each in described.values() for step in each["steps"])
