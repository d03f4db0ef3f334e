"""`analyze` as a user runs it: several folders, one of them damaged, and again when one is new."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from comparison.exits import Exit
from tests.comparison.pipeline.test_bad_runs import change, run_in

TIMEOUT_S = 300


def analysed(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code, and what is on standard error."""
    command = [sys.executable, "-m", "comparison.cli.main", "analyze", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.stdout
    return done.returncode, done.stderr


def test_damaged_run_ends_only_itself_and_only_what_is_new_is_read(tmp_path: Path) -> None:
    run_in(tmp_path / "2026-a" / "good")
    bad = run_in(tmp_path / "2026-b" / "bad")
    change(bad / "trace" / "m1.jsonl", 4, '"last":9', '"last":9223372036854775807')
    code, output = analysed(tmp_path, "2026-*", "--output", "all", "--memory", "600m")
    assert code == Exit.UNKNOWN
    assert output.splitlines()[:2] == [
        "analysing 2 runs",
        f"{bad}/trace/m1.jsonl:4: flawed event (last is out of range)",
    ]
    verdicts = {run["run_id"]: run["verdict"] for run in json.loads((tmp_path / "all/result.json").read_text())["runs"]}
    assert verdicts == {"good": "as expected", "bad": "unknown"}
    run_in(tmp_path / "2027" / "new")
    code, output = analysed(tmp_path, "202*", "--output", "all", "--spark-conf", "spark.ui.enabled=false")
    assert code == Exit.UNKNOWN
    assert output.startswith("analysing 1 new or changed of 3 runs; 2 unchanged since the last analysis\n")
    assert "m1.jsonl:4: flawed event" in output
    assert output.splitlines()[-1] == f"report: {tmp_path / 'all' / 'report.html'}"
    assert (tmp_path / "all" / "report.html").is_file()
