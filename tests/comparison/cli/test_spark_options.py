"""A wrong master and options that cannot work end a command in one line, soon, with code 254."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.pipeline.generated.runs import write_synthetic
from kernel.platform.ports import free_ports
from tests.support.commands.called import code_of
from tests.support.commands.terminals import Terminals

#: The promise is 20 s; a session's start alone takes longer while other tests run.
SOON_S = 90


def analyzed(folder: Path, *options: str) -> tuple[int, str]:
    """The exit code of an analysis that must fail, and the only line that says why."""
    write_synthetic(folder, events_min=100)
    (folder / "run.json").write_text("{}")
    began = time.monotonic()
    done = Terminals(folder).run("analyze", str(folder), *options)
    assert time.monotonic() - began < SOON_S
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line != "analysing the run"]
    return done.returncode, line


def test_master_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    code, line = analyzed(tmp_path, "--master", f"spark://127.0.0.1:{port}")
    assert code == Exit.INTERNAL
    assert f"no Spark master at spark://127.0.0.1:{port} (127.0.0.1:{port}: Connection refused). Start it" in line


def test_listener_that_is_no_master_is_named_with_the_remedy(tmp_path: Path, taken_port: int) -> None:
    code, line = analyzed(tmp_path, "--master", f"spark://127.0.0.1:{taken_port}")
    assert code == Exit.USAGE
    assert f"spark://127.0.0.1:{taken_port} is no Spark master, or not of version 4.3.0" in line
    assert line.endswith("Correct --master.")


def test_setting_that_spark_itself_finds_wrong_is_named(tmp_path: Path) -> None:
    code, line = analyzed(tmp_path, "--spark-conf", "spark.serializer=no.such.Class")
    assert code == Exit.USAGE
    assert "Spark does not start with the master local[*]: " in line
    assert "no.such.Class" in line


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--master", "mesos://h:1"), "is not supported. Use local[*]"),
        (("--memory", "1"), "--memory '1' is not a size. Give a number with a unit"),
        (("--spark-conf", "spark.master=local"), "spark.master cannot be set: use --master"),
        (("--spark-conf", "spark"), "'spark' is not a setting. Use key=value"),
    ],
)
def test_option_that_cannot_work_is_refused(
    own_folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], complaint: str
) -> None:
    (own_folder / "run.json").write_text("{}")
    assert code_of("analyze", own_folder, *options) == Exit.USAGE
    output, errors = capsys.readouterr()
    assert output == ""
    (line,) = [line for line in errors.splitlines() if line != "analysing the run"]
    assert complaint in line


def test_run_refuses_a_wrong_setting_before_it_starts_anything(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("run", "join", "--spark-conf", "spark.remote=x") == Exit.USAGE
    assert capsys.readouterr().err == "Error: spark.remote cannot be set: use --master sc://HOST:PORT.\n"
    assert not list(own_folder.iterdir())
