"""The command `fuzz` up to its first run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from comparison.cli.main import main
from comparison.exits import Exit
from kernel.designs import COORDINATED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_dry_run_prints_the_same_schedules_again_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--seed", "7", "--first", "3", "--schedules", "2", "--dry-run")
    assert code_of(*given) == Exit.AS_EXPECTED
    first = capsys.readouterr()
    assert first.err == "seed 7\n"
    titles = [line.partition(":")[0] for line in first.out.splitlines()]
    assert titles == [f"{number} {design}" for number in (3, 4) for design in COORDINATED]
    assert all(": form · " in line for line in first.out.splitlines())
    code_of(*given)
    assert capsys.readouterr().out == first.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--design", "lazy"), "unknown design 'lazy'"),
        (("--minutes", "0"), "--minutes"),
        (("--seed", "-1"), "--seed"),
        (("--tries", "0"), "--tries"),
    ],
)
def test_what_is_refused(given: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*given) == Exit.USAGE
    assert why in capsys.readouterr().err
