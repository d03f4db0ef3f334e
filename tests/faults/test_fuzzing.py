"""The fuzzer on a coordinator without its fence: it finds the bug, shrinks it, and writes what `run` can repeat."""

from __future__ import annotations

import json
import re
import shlex
import sys
from itertools import count
from pathlib import Path

import psutil
import pytest

from comparison.exits import Exit
from comparison.fuzzing.drawing import draw
from comparison.own_scenarios import why_not_judged
from comparison.scenarios.plan.scenario_file import read_scenario
from comparison.scenarios.plan.vocabulary import FreezeOwner
from comparison.scenarios.testbed import testbed
from kernel.designs import EAGER
from kernel.trace.listed_file import run_file
from tests.faults.planted_broker import PLANTED
from tests.support.commands.called import code_of
from tests.support.planted.bugs import BUGS
from tests.support.planted.schedules import SHRUNK

UNFENCED = "unfenced commit"
ROOT = Path(__file__).resolve().parents[2]
SEED = 1
STEPS_MAX, DRAWN_MAX = 5, 7
#: A schedule takes half a minute on a busy machine; the seed's third one is the first that shows the bug.
SEARCHED_MAX = 20


def freezes(number: int) -> bool:
    """Whether a member is frozen beyond its session, in a schedule that does not take long to shrink."""
    drawn = draw(SEED, number, EAGER)
    return any(isinstance(step, FreezeOwner) for step in drawn.steps) and len(drawn.steps) <= DRAWN_MAX


#: Whatever faults the table has: more of them change what a number draws.
NUMBER = next(number for number in count(1) if freezes(number))


def plant_in_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real processes of brokers accept what they should refuse."""
    monkeypatch.setattr(testbed, "BROKER_MODULE", "tests.faults.planted_broker")
    monkeypatch.setenv(PLANTED, UNFENCED)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # no process finds what is in its folder


def assert_found_and_shrunk(said: str, folder: Path) -> None:
    """The missing fence is what was found, few steps are left, and their run is kept."""
    assert re.search("no stale write|no offset moved back", said)
    (file,) = folder.glob("*-fuzz/counterexample-*.toml")
    shortest = read_scenario(file, why_not_judged).scenario
    assert len(shortest.steps) <= STEPS_MAX, said
    kept = re.search("; the run: (.*)", said)
    assert kept is not None
    run_folder = next(path for path in folder.glob("*-fuzz/*/*") if str(path) == kept[1])
    assert run_file(run_folder) is not None


@pytest.mark.faults
@pytest.mark.long  # four minutes, and more where schedules that race hold
@pytest.mark.timeout(1_500)
def test_a_missing_fence_is_found_among_a_seeds_first_schedules_and_shrunk_to_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody selects a schedule: they come as `fuzz --seed 1` draws them, one at a time to stop at the first find."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    plant_in_brokers(monkeypatch)
    given = ("--design", "eager", "--seed", str(SEED), "--schedules", "1", "--tries", "2")
    for number in range(1, SEARCHED_MAX + 1):
        folder = tmp_path / str(number)
        ended = code_of("fuzz", *given, "--first", str(number), "--output", str(folder))
        said = capsys.readouterr().out
        if ended == Exit.NOT_AS_EXPECTED:
            assert_found_and_shrunk(said, folder)
            return
    pytest.fail(f"not found by the first {SEARCHED_MAX} schedules of seed {SEED}")


@pytest.mark.faults
@pytest.mark.long  # some ten runs
def test_a_coordinator_without_its_fence_is_found_and_shrunk_to_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    plant_in_brokers(monkeypatch)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    given = ("--design", "eager", "--seed", str(SEED), "--first", str(NUMBER), "--schedules", "1", "--tries", "2")
    assert code_of("fuzz", *given, "--output", str(tmp_path)) == Exit.NOT_AS_EXPECTED
    assert not {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert_found_and_shrunk(capsys.readouterr().out, tmp_path)


@pytest.mark.faults
@pytest.mark.long
def test_what_a_simulated_search_found_breaks_the_same_promise_by_the_command_for_real_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    BUGS[UNFENCED].plant(monkeypatch.setattr)
    number = str(SHRUNK[UNFENCED].number)
    search = ("--simulated", "--design", "eager", "--seed", str(SEED), "--first", number, "--schedules", "1")
    assert code_of("fuzz", *search, "--format", "json", "--output", str(tmp_path)) == Exit.NOT_AS_EXPECTED
    (found,) = json.loads(capsys.readouterr().out)["counterexamples"]

    plant_in_brokers(monkeypatch)
    _, *command = shlex.split(found["to_repeat_live"])
    assert code_of(*command, "--format", "json", "--output", str(tmp_path)) == Exit.NOT_AS_EXPECTED
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    broken = {each["check"] for each in run["verdicts"] if each["outcome"] == "not as expected"}
    assert broken & BUGS[UNFENCED].breaks
    assert "simulated" not in run["parameters"]


@pytest.mark.faults
@pytest.mark.long
def test_the_coordinator_with_its_fence_keeps_every_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    given = ("--design", "eager,zookeeper", "--seed", str(SEED), "--first", str(NUMBER), "--schedules", "2")
    assert code_of("fuzz", *given, "--output", str(tmp_path)) == Exit.AS_EXPECTED
    (lines,) = tmp_path.glob("*-fuzz/schedules.jsonl")
    assert len(lines.read_text().splitlines()) == 2
