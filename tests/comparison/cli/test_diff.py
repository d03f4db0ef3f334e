"""`diff` compares two results on the terminal and for programs, and its exit code is for CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from comparison.cli.diff import diff
from comparison.exits import Exit
from comparison.pipeline.analysis import compose
from comparison.run_folder import write_json
from kernel.errors import UserError
from tests.support.commands.called import code_of, output_of
from tests.support.runs.results import run


def kept(
    folder: Path, *, converge_ms: float = 300.0, repeats: int = 3, designs: tuple[str, ...] = ("eager",), **given: Any
) -> Path:
    """A result with repeats of `join`, which settled after about this time."""
    runs = [
        run(
            "join",
            design,
            path=str(folder / "join" / design / f"seed-{seed}"),
            seed=seed,
            converge_ms=converge_ms + seed,
            **given,
        )
        for design in designs
        for seed in range(1, repeats + 1)
    ]
    for each in runs:
        Path(each.path).mkdir(parents=True)
    write_json(folder / "result.json", compose(runs))
    return folder


@pytest.fixture
def slower(tmp_path: Path) -> tuple[Path, Path]:
    return kept(tmp_path / "a"), kept(tmp_path / "b", converge_ms=600.0)


def test_what_differs_is_shown_and_the_rest_is_counted(slower: tuple[Path, Path]) -> None:
    text = output_of(diff, *slower)
    assert "settled after, ms (worst)       302       602     +99%   worse" in text
    assert "lost" not in text
    assert "not shown: " in text
    assert "records delivered: lost" in output_of(diff, *slower, "--details")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_it_fits_the_terminal(slower: tuple[Path, Path], columns: int) -> None:
    lines = output_of(diff, *slower, "--details", "--worse-than", "20%", code=1, columns=columns).splitlines()
    paths = {str(folder) for folder in slower}
    assert [line for line in lines if len(line) > columns and not any(path in line for path in paths)] == []


@pytest.mark.parametrize(
    ("bounds", "code", "last"),
    [
        (
            ["20%"],
            Exit.NOT_AS_EXPECTED,
            "worse than allowed: join in eager: settled after, ms (worst; converge_ms) +99% (302 to 602; 20% allowed)",
        ),
        (["converge_ms=500"], Exit.AS_EXPECTED, "nothing is worse than allowed (converge_ms=500)"),
        (["lost=0"], Exit.AS_EXPECTED, "nothing is worse than allowed (lost=0)"),
        (["20%", "converge_ms=100%"], Exit.AS_EXPECTED, "nothing is worse than allowed (20%, converge_ms=100%)"),
        (
            ["bystander_get_during_p50_ms=0"],
            Exit.UNKNOWN,
            "cannot be known: join in eager: bystander's get during, ms (bystander_get_during_p50_ms) was measured on "
            "neither side",
        ),
    ],
)
def test_exit_code_and_last_line_say_whether_a_bound_is_kept(
    slower: tuple[Path, Path], bounds: list[str], code: Exit, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for bound in bounds for word in ("--worse-than", bound)]
    assert output_of(diff, *slower, *options, code=code, columns=200).splitlines()[-1] == last
    assert code_of("diff", *slower, *options, "--format", "json") == code
    output = capsys.readouterr()
    assert output.err.strip() == last
    document = json.loads(output.out)
    assert bool(document["worse"]) is (code == Exit.NOT_AS_EXPECTED)
    assert document["pairs"][0]["place"] == {"scenario": "join", "design": "eager"}


def test_of_single_runs_a_rise_cannot_be_known(tmp_path: Path) -> None:
    one, other = kept(tmp_path / "a", repeats=1), kept(tmp_path / "b", repeats=1, converge_ms=600.0)
    text = output_of(diff, one, other, "--worse-than", "20%", code=Exit.UNKNOWN, columns=200)
    assert "one run of each: figures that depend on chance, marked with ?, may differ by chance" in text
    assert "worse?" in text
    assert "has risen, but there are too few repeats (301 to 601)" in text.splitlines()[-1]
    assert output_of(diff, one, other)


@pytest.mark.parametrize(("bound", "code"), [("20%", Exit.NOT_AS_EXPECTED), ("converge_ms=500", Exit.AS_EXPECTED)])
def test_single_simulated_runs_of_the_same_seed_are_judged_for_this_seed(
    tmp_path: Path, bound: str, code: Exit
) -> None:
    simulated: dict[str, Any] = {"repeats": 1, "parameters": {"simulated": True}}
    one, other = kept(tmp_path / "a", **simulated), kept(tmp_path / "b", converge_ms=600.0, **simulated)
    text = output_of(diff, one, other, "--worse-than", bound, code=code, columns=200)
    assert "what differs comes from what was changed alone, for this seed" in text
    assert "by chance" not in text
    assert "for this seed" in text.splitlines()[-1]


def test_what_cannot_be_known_is_told_by_reason(tmp_path: Path) -> None:
    both = kept(tmp_path / "a", repeats=1, designs=("eager", "static", "cooperative"))
    one = kept(tmp_path / "b", repeats=1, converge_ms=600.0)
    last = output_of(diff, both, one, "--worse-than", "20%", code=Exit.UNKNOWN, columns=400).splitlines()[-1]
    assert last == (
        "cannot be known: join in static was not run after, and 1 more; join in eager: settled after, ms (worst; "
        "converge_ms) has risen, but there are too few repeats (301 to 601)"
    )


def test_what_only_one_has_is_listed(tmp_path: Path) -> None:
    both, one = kept(tmp_path / "a", designs=("eager", "static")), kept(tmp_path / "b")
    assert "only before: join in static" in output_of(diff, both, one)
    assert "only after: join in static" in output_of(diff, one, both)
    last = output_of(diff, both, one, "--worse-than", "20%", code=Exit.UNKNOWN).splitlines()[-1]
    assert last == "cannot be known: join in static was not run after"


def test_sides_have_the_names_that_are_given(slower: tuple[Path, Path]) -> None:
    assert " 0.1 " in output_of(diff, *slower, "--names", "0.1,0.2")
    for names in ("a", "a,a", "a,b,c", ",b"):
        assert code_of("diff", *slower, "--names", names) == Exit.USAGE


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    parameters = {"member_settings": {"x\x1b[2J": "1"}}
    text = output_of(diff, kept(tmp_path / "a"), kept(tmp_path / "b", parameters=parameters))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


@pytest.mark.parametrize("damaged", [[], {"versions": [1], "machine": 2, "command": {}}, {"command": [None, 3]}])
def test_a_damaged_record_of_the_command_is_no_obstacle(slower: tuple[Path, Path], damaged: object) -> None:
    for folder in slower:
        write_json(folder / "command.json", damaged)
    assert "settled after" in output_of(diff, *slower)


def test_what_cannot_be_compared_is_refused_with_the_remedy(tmp_path: Path) -> None:
    one = kept(tmp_path / "a", designs=("eager", "static"))
    with pytest.raises(UserError, match=r"is in both\. Give two results of different runs"):
        output_of(diff, one, one / "join" / "eager")
    with pytest.raises(UserError, match=r"nothing to compare: .* has join in eager, .* has join in static\. Give two"):
        output_of(diff, one / "join" / "eager", one / "join" / "static")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no result.json with a run in .*\. Give a folder that `run`"):
        output_of(diff, one, tmp_path / "empty")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "latest").symlink_to(one)
    with pytest.raises(UserError, match=r"Did you mean .*/runs/latest\?"):
        output_of(diff, one, tmp_path / "runs")
