"""`fuzz --simulated`: what it finds is repeated to the byte by others that know only its scenario file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.fuzzing.drawing import draw
from comparison.scenarios.plan.scenario_text import as_file
from kernel.designs import CONSUMER, EAGER
from tests.support.commands.called import code_of

ONE_RUN = "tests.support.runs.one_simulated_run"
SEED = 1


def events(folder: Path) -> dict[str, list[str]]:
    """The lines of each trace file after its header, which names the run."""
    files = sorted((folder / "trace").glob("*.jsonl"))
    return {file.name: file.read_text(encoding="utf-8").splitlines()[1:] for file in files}


def test_a_scenario_file_repeats_a_schedule_of_the_fuzzer_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run is made after another one was, in a process that keeps what is loaded; the repeat is not."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    options = ("--simulated", "--design", f"{EAGER},{CONSUMER}", "--seed", str(SEED), "--schedules", "2", "--keep")
    assert code_of("fuzz", *options, "--format", "json", "--output", str(tmp_path)) == Exit.AS_EXPECTED
    said = json.loads(capsys.readouterr().out)
    assert (said["outcome"], len(said["schedules"])) == ("held", 2)
    assert said["to_go_on"].endswith("--keep --simulated")
    (folder,) = tmp_path.glob(f"*-fuzz/00001/{CONSUMER}")

    schedule = draw(SEED, 1, CONSUMER, simulated=True)
    file = tmp_path / "again.toml"
    file.write_text(as_file(schedule.scenario()), encoding="utf-8")
    given = [str(tmp_path / "again"), str(file), CONSUMER, str(schedule.run_seed), schedule.links]
    command = [sys.executable, "-m", ONE_RUN, *given]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "5"}, check=True, capture_output=True)

    assert len(events(folder)) > 7
    assert events(tmp_path / "again") == events(folder)
