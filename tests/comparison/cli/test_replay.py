"""`report --replay` writes one file from traces, and says what is wrong with what it was given."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest

from comparison.cli.report import report
from comparison.replay.page import BYTES_MAX
from kernel.errors import ConfigurationError, EnvironmentFault, UserError
from tests.support.commands.called import output_of
from tests.support.runs.seen_runs import write_cut


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cut(tmp_path / "runs")
    return tmp_path / "runs" / "split-brain"


def title(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) <= BYTES_MAX
    return text.partition("<title>Replay: ")[2].partition("<")[0]


def test_a_run_is_replayed_beside_its_traces_and_needs_no_analysis(folder: Path) -> None:
    assert output_of(report, folder / "eager", "--replay") == f"{folder / 'eager' / 'replay.html'}\n"
    assert title(folder / "eager" / "replay.html") == "eager"


def test_runs_of_a_scenario_stand_in_the_order_of_their_designs(folder: Path) -> None:
    output_of(report, folder, "--replay")
    assert title(folder / "replay.html") == "zookeeper, eager"
    output_of(report, folder, "--replay", "--design", "eager", "-o", folder / "one.html")
    assert title(folder / "one.html") == "eager"


def test_runs_that_are_given_stand_in_the_given_order(folder: Path, tmp_path: Path) -> None:
    given = folder / "eager", folder / "zookeeper"
    with pytest.raises(UserError, match="Say with -o where their replay goes"):
        output_of(report, *given, "--replay")
    output_of(report, *given, "--replay", "-o", tmp_path / "both.html")
    assert title(tmp_path / "both.html") == "eager, zookeeper"


def test_a_damaged_trace_is_replayed_as_far_as_it_goes_and_named(folder: Path, capfd: pytest.CaptureFixture) -> None:
    trace = folder / "eager" / "trace" / "m1.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    unheard_of = lines[1].replace(b'"kind":"member_started"', b'"kind":"unheard_of"')
    trace.write_bytes(b"".join([*lines[:-1], unheard_of, lines[-2][:40]]))
    output_of(report, folder / "eager", "--replay")
    text = (folder / "eager" / "replay.html").read_text(encoding="utf-8")
    assert "m1.jsonl: 1 line could not be used (torn)." in text


def test_captions_come_from_a_file(folder: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.json"
    words.write_text('[{"at": 0, "text": "m1 is cut off", "part": "nowhere"}]')
    with pytest.raises(UserError, match="no part 'nowhere'"):
        output_of(report, folder / "eager", "--replay", "--captions", words)
    words.write_text('[{"at": 0, "text": "m1 is cut off", "part": "lanes"}]')
    output_of(report, folder / "eager", "--replay", "--captions", words)


def test_what_cannot_be_replayed_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "zookeeper")
    with pytest.raises(UserError, match="There are runs of eager"):
        output_of(report, folder, "--replay", "--design", "zookeeper")
    with pytest.raises(ConfigurationError, match="unknown design 'nothing'"):
        output_of(report, folder, "--replay", "--design", "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no trace"):
        output_of(report, tmp_path / "empty", "--replay")
    with pytest.raises(EnvironmentFault):
        output_of(report, tmp_path / "nowhere", "--replay")
    with pytest.raises(EnvironmentFault, match="cannot write"):
        output_of(report, folder, "--replay", "-o", "/nowhere/x.html")
    with pytest.raises(click.UsageError, match="--design and --captions are for --replay"):
        output_of(report, folder, "--design", "eager")
