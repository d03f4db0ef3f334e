"""Scenario files on the command line: printed, planned, refused with every complaint on a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.step_names import STEPS
from tests.support.commands.called import code_of
from tests.support.commands.complaints import place_first


def test_a_printed_scenario_is_planned_as_the_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("scenarios", "crash", "--as-file") == Exit.AS_EXPECTED
    mine = tmp_path / "mine.toml"
    mine.write_text(capsys.readouterr().out.replace('name = "crash"', 'name = "mine"'))
    assert code_of("run", "join", str(mine), "crash", "--dry-run", "--seed", "1") == Exit.AS_EXPECTED
    planned = [line.strip().partition(":")[0] for line in capsys.readouterr().out.splitlines()[4:]]
    designs = ("zookeeper", "eager")
    assert planned == [f"{name} · {design}" for name in ("crash", "join", "mine") for design in designs]


def test_compare_takes_scenarios_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "compared"\n[[steps]]\nstep = "form"\n')
    assert code_of("compare", str(mine), "--design", "eager", "--dry-run") == Exit.AS_EXPECTED
    assert "\n  compared · eager: about " in capsys.readouterr().out


def test_every_complaint_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('name = "wrong"\nbudget = 3\n[[steps]]\nstep = "fork"\n')
    assert code_of("run", str(wrong)) == Exit.USAGE
    first, second = map(place_first, capsys.readouterr().err.splitlines())
    assert first.startswith(f"{wrong}, line 2, column 1: unknown key 'budget'. Did you mean 'budget_s'?")
    assert second.startswith(f"{wrong}, line 4, column 1: unknown step 'fork'. Did you mean 'form'?")


def test_two_files_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        text = f'name = "twin"\nbudget_s = {number}\n[[steps]]\nstep = "form"\n'
        (tmp_path / f"{number}.toml").write_text(text)
    assert code_of("run", str(tmp_path / "1.toml"), str(tmp_path / "2.toml"), "--dry-run") == Exit.USAGE
    assert "both have the name 'twin'. Choose another one" in capsys.readouterr().err


def test_a_file_may_say_the_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'name = "{}"\n[defaults]\nseed = {}\n[[steps]]\nstep = "form"\n'
    for name, seed in (("one", 5), ("two", 6)):
        (tmp_path / f"seeded-{name}.toml").write_text(text.format(f"seeded-{name}", seed))
    one, two = (str(tmp_path / f"seeded-{name}.toml") for name in ("one", "two"))
    assert code_of("run", one, "--dry-run") == Exit.AS_EXPECTED
    assert "seed 5" in capsys.readouterr().out
    assert code_of("run", one, "--dry-run", "--seed", "7") == Exit.AS_EXPECTED
    assert "seed 7" in capsys.readouterr().out
    assert code_of("run", one, two, "--dry-run") == Exit.USAGE
    assert "different seeds (5, 6). Choose one by --seed" in capsys.readouterr().err


def test_everything_that_a_file_can_have_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("scenarios", "--steps") == Exit.AS_EXPECTED
    listed = capsys.readouterr().out
    assert {f"  {name}" for name in (*STEPS, *FAULTS, "settles", "zombie commits")} <= set(listed.splitlines())


def test_a_copy_that_loses_the_variants_of_its_original_causes_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    code_of("scenarios", "stale-view", "--as-file")
    mine.write_text(capsys.readouterr().out.replace('name = "stale-view"', 'name = "my-view"'))
    warning = "warning: my-view runs without the variant of stale-view: to compare with, add stale-view-synced"
    assert code_of("run", str(mine), "--dry-run", "--seed", "1") == Exit.AS_EXPECTED
    assert warning in capsys.readouterr().err
    assert code_of("run", str(mine), "stale-view-synced", "--dry-run", "--seed", "1") == Exit.AS_EXPECTED
    assert warning not in capsys.readouterr().err
    assert code_of("run", "stale-view", "--dry-run", "--seed", "1") == Exit.AS_EXPECTED
    assert "runs without" not in capsys.readouterr().err
