"""The command `sweep` up to its first run: plans, folders and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.exits import Exit
from tests.support.commands.called import code_of

GRID = """
[grid]
scenario = "join"
design = "zookeeper"
rebalance.max.retries = [1, 4]
"""


pytestmark = pytest.mark.usefixtures("own_folder")


def test_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--grid", "scenario=split-brain,join", "--grid", "design=eager", "--grid", "members=4,16", "--dry-run")
    assert code_of("sweep", *given) == Exit.AS_EXPECTED
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "would make 3 runs of 3 combinations with seed 1, in about 75 s",
        "results: runs/sweep-split-brain-join-59a5a498",
        "ZooKeeper: embedded",
        "runs:",
        "  split-brain/eager/members-4/seed-1: about 25 s",
        "  join/eager/members-4/seed-1: about 10 s",
        "  join/eager/members-16/seed-1: about 10 s",
        "left out:",
        "  split-brain · eager · members 16: split-brain in eager: the member to be cut off must own a "
        "partition, but 16 members share 12 partitions. Use --partitions 16 or more, or fewer members",
    ]
    assert said.err == ""
    assert list(tmp_path.iterdir()) == []


def test_simulated_sweep_is_planned_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--grid", "scenario=join", "--grid", "design=eager", "--seeds", "4", "--simulated", "--master", "local[2]")
    assert code_of("sweep", *given, "--dry-run") == Exit.AS_EXPECTED
    said = capsys.readouterr().out
    assert "4 runs of 1 combination with seeds 1 to 4, in about 40 s" in said  # two at a time
    assert "ZooKeeper: modelled\nclock: simulated\n" in said


def test_file_names_the_folder_and_the_command_line_replaces_its_axes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "retries.toml").write_text(GRID)
    assert code_of("sweep", "retries.toml", "--grid", "rebalance.max.retries=2..8*2", "--seeds", "2", "--dry-run") == 0
    said = capsys.readouterr()
    assert "6 runs of 3 combinations with seeds 1 to 2" in said.out
    assert "results: runs/sweep-retries" in said.out
    assert "join/zookeeper/rebalance.max.retries-8/seed-2" in said.out


def test_warnings_of_settings_are_given_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "retries.toml").write_text(GRID.replace("[1, 4]", "[1, 2, 3]"))
    assert code_of("sweep", "retries.toml", "--dry-run") == 0
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if "gives up" in line]
    assert warning.startswith("note: zookeeper: rebalance.max.retries x rebalance.backoff.ms is 1000 ms")
    assert warning.endswith("(and 2 similar)")


def test_same_command_has_the_same_folder(capsys: pytest.CaptureFixture[str]) -> None:
    def folder(*arguments: str) -> str:
        assert code_of("sweep", "--grid", "scenario=join", *arguments, "--dry-run") == 0
        return capsys.readouterr().out.splitlines()[1]

    assert folder("--seeds", "2") == folder("--seeds", "2")
    assert folder("--seeds", "2") != folder("--seeds", "3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the grid has no scenario. Add --grid scenario=join"),
        (("--grid", "scenario=joyn"), "unknown scenario 'joyn'"),
        (("--grid", "scenario=join", "--seeds", "0"), "seeds is 0: must be a whole number between 1 and 200"),
        (("--grid", "scenario=join", "--metric", "lag"), "unknown metric 'lag'"),
        (("absent.toml",), "no such file or folder 'absent.toml'"),
        ((".",), "is no sweep's folder"),
        ((".", "--grid", "members=2", "--seed", "0"), "--grid and --seed cannot be combined with a sweep's folder"),
        (("--grid", "scenario=join", "--analyse-only", "-o", "new"), "new is no sweep's folder"),
        (("--grid", "scenario=split-brain", "--zookeeper", "127.0.0.1:1"), "needs a ZooKeeper of its own"),
        (("--grid", "scenario=join", "--simulated", "--zookeeper", "docker"), "leave out --zookeeper docker"),
        (("--grid", "scenario=join", "--simulated", "--repeats", "2"), "is the same run. Use --seeds 2"),
    ],
)
def test_mistake_ends_with_its_remedy(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("sweep", *arguments) == Exit.USAGE
    assert message in " ".join(capsys.readouterr().err.split())
