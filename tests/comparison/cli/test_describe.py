"""`rebalance-lab describe` of a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comparison.cli.describe import describe
from kernel.errors import UserError
from tests.support.commands.called import output_of
from tests.support.runs.seen_runs import ATTACK, write_cut, write_hostile


def described(*arguments: object) -> list[str]:
    return output_of(describe, *arguments).splitlines()


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    write_cut(tmp_path)
    return tmp_path / "split-brain"


def test_all_tables_are_shown_at_the_end_unless_some_are_asked_for(cut: Path) -> None:
    lines = described(cut / "eager")
    assert lines[0] == "split-brain in eager, 10.000 s of 10.500 s, generation 2"
    headings = [line.split()[1] for line in lines if line.startswith("GROUP")]
    assert headings == ["COORDINATOR", "CONSUMER-ID", "TOPIC"]
    (state,) = [line for line in described(cut / "eager", "--group-state", "--at", "4.65s") if line.startswith("g ")]
    assert state.split() == ["g", "broker-1", "-", "PreparingRebalance", "0"]


def test_offsets_in_zookeeper_have_the_columns_of_its_era(cut: Path) -> None:
    lines = described(cut / "zookeeper", "--offsets", "--at", "3")
    assert lines[2].split() == ["Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner"]
    assert lines[3].split() == ["g", "t", "0", "8", "unknown", "unknown", "g_host-1-aa-0"]


def test_json_has_everything(cut: Path) -> None:
    found = json.loads("\n".join(described(cut / "eager", "--format", "json", "--at", "9")))
    assert found["at_s"] == 9
    assert [group["generation"] for group in found["groups"]] == [2]


@pytest.mark.parametrize(("at", "complaint"), [("soon", "such as 12.4s"), ("11", "from 0 to 10.500 s"), ("-1", "0 to")])
def test_impossible_moment_is_refused(cut: Path, at: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        described(cut / "eager", f"--at={at}")


def test_folder_with_several_runs_names_them(cut: Path) -> None:
    with pytest.raises(UserError, match="2 runs in"):
        described(cut)


def test_names_from_a_trace_stay_text(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    shown = "".join(described(tmp_path, "--at", "9"))
    assert ATTACK not in shown
    assert shown.isprintable()
