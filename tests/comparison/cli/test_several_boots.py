"""A run whose processes ran on machines that were booted at different times: every command reads it on one clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from comparison.cli.main import cli
from tests.support.runs.seen_runs import write_cut

COMMANDS = (
    ("describe",),
    ("describe", "--group-state", "--at", "4.65"),
    ("diagram", "--list"),
    ("diagram", "--show", "timeline"),
    ("trace", "--to", "jsonl"),
)
#: How long the other machine has been running.
LATER_NS = 882_073_336_000_000


def ran(command: tuple[str, ...], run: Path) -> Result:
    name, *options = command
    return CliRunner().invoke(cli, [name, str(run), *options], catch_exceptions=False)


def booted_before(path: Path, by_ns: int, wall_ns: int | None = None) -> None:
    """Rewrite a trace file as of a process on a machine that had been running longer, and perhaps with another date."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "ns" in line:
            line["ns"] += by_ns
        else:
            line.get("header", line.get("end"))["monotonic_ns"] += by_ns
    header = lines[0]["header"]
    header["boot_id"], header["wall_ns"] = "another", header["wall_ns"] if wall_ns is None else wall_ns
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("design", ["zookeeper", "eager"])
def test_what_is_shown_does_not_depend_on_the_boot(command: tuple[str, ...], design: str, tmp_path: Path) -> None:
    write_cut(tmp_path)
    run = tmp_path / "split-brain" / design
    before = ran(command, run)
    assert before.exit_code == 0, before.output
    booted_before(run / "trace" / "m1.jsonl", LATER_NS)
    after = ran(command, run)
    assert (after.exit_code, after.stderr) == (0, "")
    assert _without_ns(after.stdout) == _without_ns(before.stdout)


def _without_ns(text: str) -> list[object]:
    """Lines; of JSON without the time in its file, which is another."""
    return [
        {key: value for key, value in json.loads(line).items() if key != "ns"} if line.startswith("{") else line
        for line in text.splitlines()
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_file_with_an_impossible_clock_is_left_out_with_a_warning(command: tuple[str, ...], tmp_path: Path) -> None:
    write_cut(tmp_path)
    run = tmp_path / "split-brain" / "eager"
    booted_before(run / "trace" / "m1.jsonl", 2_000_000_000_000_000_000, wall_ns=0)
    done = ran(command, run)
    assert done.exit_code == 0, done.output
    assert "m1.jsonl ignored: its clock is " in done.stderr
