"""`analyze` of several folders, one of them damaged, and again when one is new; a stand-in does Spark's work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from comparison.cli import analysis
from comparison.exits import Exit
from comparison.results.result import read_result
from tests.comparison.pipeline.test_bad_runs import change, run_in
from tests.support.commands.called import code_of


@pytest.mark.usefixtures("without_spark")
def test_damaged_run_ends_only_itself_and_only_what_is_new_is_read(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(own_folder / "2026-a" / "good")
    bad = run_in(own_folder / "2026-b" / "bad")
    change(bad / "trace" / "m1.jsonl", 4, '"last":9', '"last":9223372036854775807')
    assert code_of("analyze", "2026-*", "--output", "all") == Exit.UNKNOWN
    output, errors = capsys.readouterr()
    assert output
    assert errors.splitlines()[:2] == [
        "analysing 2 runs",
        f"{bad}/trace/m1.jsonl:4: flawed event (last is out of range)",
    ]
    verdicts = {
        run["run_id"]: run["verdict"] for run in json.loads((own_folder / "all/result.json").read_text())["runs"]
    }
    assert verdicts == {"good": "as expected", "bad": "unknown"}
    run_in(own_folder / "2027" / "new")
    assert code_of("analyze", "202*", "--output", "all") == Exit.UNKNOWN
    output, errors = capsys.readouterr()
    assert output
    assert errors.startswith("analysing 1 new or changed of 3 runs; 2 unchanged since the last analysis\n")
    assert "m1.jsonl:4: flawed event" in errors
    assert errors.splitlines()[-1] == f"report: {own_folder / 'all' / 'report.html'}"
    assert (own_folder / "all" / "report.html").is_file()


@pytest.mark.usefixtures("without_spark")
def test_run_that_cannot_be_shown_is_named_and_the_others_are_there(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(own_folder / "runs" / "good")
    bad = run_in(own_folder / "runs" / "bad")
    change(bad / "trace" / "runner.jsonl", 2, '"parameters":{', '"parameters":{"warnings":5,')
    change(bad / "trace" / "runner.jsonl", 1, '"scenario":"pause"', '"scenario":"other"')
    assert code_of("analyze", "runs") == Exit.INTERNAL
    output, errors = capsys.readouterr()
    assert re.findall(r"^(pause|other)  [+] as expected", output, re.MULTILINE) == ["pause"]
    assert errors.count(f"Error: internal error: {bad} is missing in the report: TypeError") == 1
    result = read_result(own_folder / "runs" / "result.json")
    assert {Path(run.path).name: run.verdict for run in result.runs} == {"good": "as expected", "bad": "as expected"}
    page = (own_folder / "runs" / "report.html").read_text(encoding="utf-8")
    assert ('id="pause-zookeeper-lanes"' in page, 'id="other-zookeeper-lanes"' in page) == (True, False)


@pytest.mark.usefixtures("without_spark")
def test_result_is_there_whatever_becomes_of_its_report(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_in(own_folder / "good")

    def fail(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(analysis, "write_report", fail)
    with pytest.raises(LookupError):
        code_of("analyze", folder)
    assert [run.path for run in read_result(folder / "result.json").runs] == [str(folder)]
