"""Ctrl-C during an analysis: it ends quietly, and the tables are those of the analysis before it, or the new ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.pipeline import published
from comparison.pipeline.bronze.tables import write_table
from comparison.pipeline.generated.runs import write_synthetic
from comparison.pipeline.written import RUNS_SCHEMA
from kernel.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
#: The line of ^C ends first.
QUIET = "\nrebalance-lab: interrupted\n"
ANALYZE = ("analyze", "run", "--format", "json", "--master", "local[1]")
#: The command, which interrupts itself as it puts the tables in place: before what is named is renamed, or after it.
#: By then Spark has done its work, for which its stand-in is enough.
PUBLISHING = """
import contextlib, os, pathlib, signal, sys, types
from comparison.cli import analysis
from comparison.cli.entry import main
from tests.support.runs.inline_spark import InlineSpark

session = types.SimpleNamespace(session=lambda: InlineSpark(1))
analysis.session_of_command = lambda *_, **__: contextlib.nullcontext(session)

name, when = sys.argv.pop(1), sys.argv.pop(1)
rename = pathlib.Path.rename

def interrupted(path, target):
    if path.name == name and when == "before":
        os.kill(os.getpid(), signal.SIGINT)
    renamed = rename(path, target)
    if path.name == name and when == "after":
        os.kill(os.getpid(), signal.SIGINT)
    return renamed

pathlib.Path.rename = interrupted
main()
"""

#: The command, held just before it puts its tables in place, so that even a late signal comes before that.
HELD = """
import threading
from comparison.pipeline import published
from comparison.cli.entry import main
published.publish = lambda folder, staged: threading.Event().wait(300)
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run, with what an earlier analysis left."""
    write_synthetic(tmp_path / "run", events_min=1_000, members=4, partitions=8, seed=1)
    (tmp_path / "run" / "run.json").write_text("{}")
    (tmp_path / "run" / "tables" / "runs").mkdir(parents=True)
    (tmp_path / "run" / "tables" / "runs" / "part-00000.parquet").write_text("earlier")
    return tmp_path


def remains(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir() if path.name.startswith(".") or path.suffix in (".html", ".tmp"))


def is_earlier(tables: Path) -> bool:
    files = [path for path in tables.rglob("*") if path.is_file()]
    return [path.read_bytes() for path in files] == [b"earlier"]


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A command as a terminal starts it: Ctrl-C is for the whole group."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        process_group=0,
    )


@pytest.mark.parametrize(
    "is_there",
    [
        pytest.param(lambda run: (run / ".tables-in-progress").exists(), id="early", marks=pytest.mark.long),
        pytest.param(lambda run: list(run.glob(".tables-in-progress/events/*/*")), id="in the middle"),
        pytest.param(lambda run: list(run.glob(".tables-in-progress/ownership/*")), id="late", marks=pytest.mark.long),
    ],
)
def test_ctrl_c_in_an_analysis_leaves_the_tables_before_it(folder: Path, is_there: Callable[[Path], object]) -> None:
    with started(folder, "-c", HELD, *ANALYZE) as command:
        wait_until(lambda: is_there(folder / "run") or command.poll() is not None, 120, "the analysis to get there")
        os.killpg(command.pid, signal.SIGINT)
        output, _ = command.communicate(timeout=120)
    assert (command.returncode, output) == (Exit.INTERRUPTED, f"analysing the run\n{QUIET}")
    assert is_earlier(folder / "run" / "tables")
    assert remains(folder / "run") == []
    assert not (folder / "run" / "result.json").exists()


@pytest.mark.parametrize(
    ("name", "when", "is_new"), [("tables", "after", False), (".tables-in-progress", "after", True)]
)
def test_ctrl_c_as_the_tables_are_put_in_place_leaves_one_of_both(
    folder: Path, name: str, when: str, is_new: bool
) -> None:
    with started(folder, "-c", PUBLISHING, name, when, *ANALYZE) as command:
        output, _ = command.communicate(timeout=180)
    assert (command.returncode, output) == (Exit.INTERRUPTED, f"analysing the run\n{QUIET}")
    tables = folder / "run" / "tables"
    assert is_earlier(tables) is not is_new
    if is_new:
        assert {"events", "ownership", "runs.parquet"} <= {path.name for path in tables.iterdir()}
        assert not list(tables.rglob("*.writing"))
    assert remains(folder / "run") == []


def test_what_a_killed_analysis_left_is_put_right_by_the_next_one(tmp_path: Path) -> None:
    """Killed between two renamings, it leaves the tables before it under another name."""
    (tmp_path / ".tables-replaced").mkdir()
    (tmp_path / ".tables-replaced" / "runs.parquet").write_text("earlier")
    (tmp_path / ".tables-in-progress").mkdir()
    staged = published.staging(tmp_path)
    assert list(staged.iterdir()) == []
    assert (tmp_path / "tables" / "runs.parquet").read_text() == "earlier"
    published.publish(tmp_path, staged)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables"]
    assert list((tmp_path / "tables").iterdir()) == []


def test_task_of_a_broken_off_analysis_cannot_bring_its_folder_back(tmp_path: Path) -> None:
    staged = published.staging(tmp_path)
    published.discard(tmp_path)
    with pytest.raises(FileNotFoundError):
        write_table(staged / "ownership" / "part-00000.parquet", RUNS_SCHEMA.empty_table())
    assert list(tmp_path.iterdir()) == []
