"""`trace` writes a run for other tools, and says what is wrong with what it was given."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pandas as pd
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from comparison.cli.trace import trace
from kernel.errors import UserError
from tests.support.commands.called import output_of
from tests.support.runs.seen_runs import write_cut


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_cut(tmp_path)
    return tmp_path


def test_lines_go_to_standard_output(runs: Path) -> None:
    found = [
        json.loads(line) for line in output_of(trace, runs / "split-brain" / "eager", "--to", "jsonl").splitlines()
    ]
    assert [each["s"] for each in found] == sorted(each["s"] for each in found)
    assert {each["process"] for each in found} == {"broker-1", "m1", "m2", "runner"}


@pytest.mark.parametrize(("form", "name"), [("perfetto", "trace.pftrace"), ("parquet", "trace.parquet")])
def test_other_forms_go_to_a_file_in_the_run_unless_told_where(runs: Path, form: str, name: str) -> None:
    run = runs / "split-brain" / "eager"
    assert output_of(trace, run, "--to", form) == f"{run / name}\n"
    assert (run / name).stat().st_size


def test_suffix_says_the_form(runs: Path, tmp_path: Path) -> None:
    run = runs / "split-brain" / "zookeeper"
    for name in ("x.pftrace", "y.perfetto-trace", "x.parquet", "x.jsonl"):
        assert output_of(trace, run, "-o", tmp_path / name) == f"{tmp_path / name}\n"
    assert len(Trace.FromString((tmp_path / "x.pftrace").read_bytes()).packet) > 100
    assert (tmp_path / "x.pftrace").read_bytes() == (tmp_path / "y.perfetto-trace").read_bytes()
    assert len(pd.read_parquet(tmp_path / "x.parquet")) == len((tmp_path / "x.jsonl").read_text().splitlines())


def test_unknown_form_is_refused_with_the_known_ones(runs: Path) -> None:
    with pytest.raises(click.UsageError, match="'csv' is not one of 'perfetto', 'jsonl', 'parquet'"):
        output_of(trace, runs, "--to", "csv")
    with pytest.raises(UserError, match=r"--to perfetto, jsonl, parquet, or a file: -o x\.pftrace"):
        output_of(trace, runs / "split-brain" / "eager", "-o", "x.csv")


def test_folder_without_a_run_or_with_several_is_refused(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"nowhere'. Give the folder of a run"):
        output_of(trace, tmp_path / "nowhere", "--to", "jsonl")
    with pytest.raises(UserError, match=r"no trace \(\*\.jsonl\) in .*empty. Give the folder of a run"):
        output_of(trace, tmp_path / "empty", "--to", "jsonl")
    with pytest.raises(UserError, match=r"2 runs in .*. Give one of them: .*eager, .*zookeeper$"):
        output_of(trace, runs, "--to", "jsonl")


def test_file_that_cannot_be_written_is_named_and_an_old_one_stays(runs: Path, tmp_path: Path) -> None:
    run = runs / "split-brain" / "eager"
    with pytest.raises(UserError, match=r"cannot write /nowhere/x\.jsonl: .*Choose another with --output"):
        output_of(trace, run, "-o", "/nowhere/x.jsonl")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        output_of(trace, run, "-o", tmp_path / "folder.parquet")


def test_lines_that_cannot_be_used_are_a_warning(runs: Path) -> None:
    run = runs / "split-brain" / "eager"
    with (run / "trace" / "m1.jsonl").open("a") as file:
        file.write('{"torn')
    assert "m1.jsonl: 1 unusable lines ignored (torn)" in output_of(trace, run, "--to", "jsonl")
