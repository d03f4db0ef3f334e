"""`doctor` names what is missing, and the remedy."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from comparison.cli import doctor
from kernel.errors import EnvironmentFault


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    "check", [doctor.check_java, doctor.check_ports, doctor.check_open_files, doctor.check_clock, doctor.check_disk]
)
def test_this_machine_needs_no_remedy(check: object) -> None:
    finding = check()  # type: ignore[operator]  # a check of the table
    assert finding.remedy == ""
    assert finding.found


def test_a_server_is_started_for_real() -> None:
    assert doctor.check_zookeeper().found.startswith("started in ")


def test_no_java_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise EnvironmentFault("no Java of version 17 or later")

    monkeypatch.setattr(doctor, "find_java", none)
    finding = doctor.check_java()
    assert finding.found == "no Java of version 17 or later"
    assert "JAVA_HOME" in finding.remedy


def test_a_full_disk_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=1024))
    assert "choose a folder on another disk with --output" in doctor.check_disk().remedy


def test_a_low_limit_of_open_files_is_named_with_the_command() -> None:
    program = "from comparison.cli.doctor import check_open_files; print(check_open_files().remedy)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    )
    assert result.stdout.strip() == "ulimit -n 1024"


def test_something_missing_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = doctor.Finding("java", "none", "install one")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: bad, lambda: doctor.Finding("disk", str(tmp_path))))
    assert doctor.doctor.callback("text", None, reset=False) == 1  # type: ignore[misc]  # click's commands have one
    assert capsys.readouterr().out.splitlines() == [
        "BAD java: none",
        "    remedy: install one",
        f"ok  disk: {tmp_path}",
    ]
