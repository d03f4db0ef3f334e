"""`analyze` of several folders, one of them damaged, and again when one is new; a stand-in does Spark's work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

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
    assert output.startswith("2 of 3 runs as the model says, 1 unknown; ")
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
    assert code_of("analyze", "runs", "--details") == Exit.INTERNAL
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


@pytest.mark.usefixtures("without_spark")
def test_a_screen_comes_first_and_the_rest_when_it_is_asked_for(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(own_folder / "good")
    printed = []
    for more in ((), ("--details",), ("-v",)):
        assert code_of("analyze", "good", "-q", *more) == Exit.AS_EXPECTED
        printed.append(capsys.readouterr().out)
    brief, details, verbose = printed
    assert brief.startswith("the run is as the model says; ")
    assert brief.splitlines()[-1] == "--details: every change, figure and check"
    assert details == verbose
    assert "+ promise: " in details
    assert "+ promise: " not in brief
    assert code_of("analyze", "good", "--details", "--format", "json") == Exit.USAGE
    assert "--details has no effect on --format json" in capsys.readouterr().err


@pytest.mark.usefixtures("without_spark")
def test_verdicts_are_written_for_a_ci_server_also_when_they_are_unknown(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = (run_in(own_folder / "runs" / name) for name in ("good", "bad"))
    change(bad / "trace" / "m1.jsonl", 4, '"last":9', '"last":9223372036854775807')
    for folder, ends, has_errors in ((good, Exit.AS_EXPECTED, False), (bad, Exit.UNKNOWN, True)):
        assert code_of("analyze", folder, "--junit", "verdicts.xml") == ends
        (suite,) = Xml.parse(own_folder / "verdicts.xml").getroot()
        assert (suite.get("name"), suite.get("errors") != "0") == ("pause", has_errors)
    assert code_of("analyze", good, "--junit", "nowhere/verdicts.xml") == Exit.USAGE
    assert "--junit nowhere/verdicts.xml: there is no folder nowhere" in capsys.readouterr().err
