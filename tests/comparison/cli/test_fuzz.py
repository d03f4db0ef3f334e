"""The command `fuzz` up to its first run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from comparison.cli.fuzz import going_on
from comparison.exits import Exit
from comparison.fuzzing.drawing import draw
from comparison.fuzzing.fuzzer import Wanted
from comparison.fuzzing.judging import Outcome
from comparison.fuzzing.summary import Summary
from comparison.run_folder import new_bundle
from comparison.scenarios.plan.scenario_text import as_file
from kernel.designs import COORDINATED, DESIGN_NAMES
from tests.support.commands.called import code_of
from tests.support.planted.bugs import BUGS
from tests.support.planted.schedules import worlds_of

pytestmark = pytest.mark.usefixtures("own_folder")


def test_dry_run_prints_the_same_schedules_again_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--seed", "7", "--first", "3", "--schedules", "8", "--dry-run")
    assert code_of("fuzz", *given) == Exit.AS_EXPECTED
    first = capsys.readouterr()
    assert first.err == ""
    what, where, _, *lines = first.out.splitlines()
    assert what == "would run schedules of seed 7 for 5 minutes, at most 8"
    assert where == "results: runs/<time>-fuzz"
    titles = [line.strip().partition(":")[0] for line in lines]
    assert titles == [f"{number} {design}" for number in (3, 4) for design in COORDINATED][:8]
    assert all(": form · " in line for line in lines)
    code_of("fuzz", *given)
    assert capsys.readouterr().out == first.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--design", "lazy"), "unknown design 'lazy'"),
        (("--minutes", "0"), "--minutes"),
        (("--seed", "-1"), "--seed"),
        (("--tries", "0"), "--tries"),
        (("--simulated", "--tries", "5"), "--tries has no effect with --simulated"),
        (("--first", "0"), "--first"),
        (("--first", "x:eager"), "--first"),
        (("--first", "3:egaer"), "Did you mean 'eager'?"),
    ],
)
def test_what_is_refused(given: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("fuzz", *given) == Exit.USAGE
    assert why in capsys.readouterr().err


DESIGNS = ("server", "eager", "static")


@pytest.mark.parametrize(
    ("given", "last", "expected"),
    [
        ({}, None, "--first 1"),
        ({}, (4, "static"), "--first 5"),
        ({}, (4, "eager"), "--first 4:static"),
        ({"first": 3, "first_design": "eager"}, None, "--first 3:eager"),
        ({"seconds": 5400.0, "tries": 5}, (4, "static"), "--first 5 --minutes 90 --tries 5"),
        ({"schedules": 10, "keep": True}, (4, "static"), "--first 5 --schedules 9 --keep"),
        ({"simulated": True, "keep": True}, (4, "eager"), "--first 4:static --keep --simulated"),
        ({"schedules": 1, "shrink_seconds": 60.0}, (1, "server"), "--first 1:eager --schedules 1 --shrink-minutes 1"),
    ],
)
def test_command_to_go_on_repeats_nothing_and_leaves_nothing_out(
    given: dict[str, Any], last: tuple[int, str] | None, expected: str
) -> None:
    wanted = Wanted(**{"designs": DESIGNS, "seed": 7, "seconds": 300.0, "shrink_seconds": 600.0, **given})
    summary = Summary()
    if last is not None:
        summary.last, summary.last_design = last
        summary.by_design = {last[1]: Counter({Outcome.HELD: 1})}
    command = going_on(wanted, summary, Path("runs"))
    assert " ".join(command) == f"rebalance-lab fuzz --design server,eager,static --seed 7 {expected}"
    assert going_on(wanted, summary, Path("/tmp/x"))[-2:] == ["--output", "/tmp/x"] or wanted.keep


def test_command_to_go_on_is_accepted_and_draws_what_was_left(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--design", "server,eager,static", "--seed", "7", "--first", "4:eager", "--schedules", "5", "--dry-run")
    assert code_of("fuzz", *given, "--format", "json") == Exit.AS_EXPECTED
    schedules = json.loads(capsys.readouterr().out)["schedules"]
    titles = [f"{each['number']} {each['design']}" for each in schedules]
    assert titles == ["4 eager", "4 static", "5 server", "5 eager", "5 static"]


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_command_to_repeat_a_counterexample_is_accepted_without_a_warning(
    design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(1, 4):
        schedule = draw(7, number, design)
        path = tmp_path / f"counterexample-{number}-{design}.toml"
        path.write_text(as_file(schedule.scenario()))
        assert code_of("run", path, "--design", design, "--seed", schedule.run_seed, "--dry-run") == Exit.AS_EXPECTED
        output = capsys.readouterr()
        assert output.err == ""
        assert f"  {schedule.name} · {design}: about " in output.out


@pytest.mark.usefixtures("without_spark")
def test_run_says_of_a_counterexample_what_the_fuzzer_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing but the fuzzer's judgement knows of this promise."""
    BUGS["claims kept"].plant(monkeypatch.setattr)
    for schedule in worlds_of("claims kept"):
        path = tmp_path / "counterexample.toml"
        path.write_text(as_file(schedule.scenario()))
        repeat = ("--design", schedule.design, "--seed", schedule.run_seed, "--simulated", "--details")
        ended, output = code_of("run", path, *repeat, "--link", schedule.links), capsys.readouterr().out
        if ended == Exit.NOT_AS_EXPECTED:
            break
    assert ended == Exit.NOT_AS_EXPECTED
    assert "promise: failed claims given up (not as expected)" in " ".join(output.split())
    assert "+ promise: settles: everything that the run waited for came" in " ".join(output.split())


def test_what_a_command_without_runs_left_is_not_said_to_be_analysable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fuzzer that finds nothing keeps no run, and `runs/latest` is its folder."""
    new_bundle(tmp_path / "runs", "fuzz")
    for command in ("analyze", "report", "describe", "diagram", "trace"):
        assert code_of(command, "runs/latest") == Exit.USAGE
        told = capsys.readouterr().err
        assert "rebalance-lab analyze" not in told
        assert "Give the folder of a run" in told or "Give a folder that `run` or `compare` created" in told
