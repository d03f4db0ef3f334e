"""What is done of a sweep, and whether a folder belongs to the plan."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from comparison.pipeline.analysis import compose
from comparison.results.result import formatted
from comparison.screen.progress import about
from comparison.sweep.grid import Grid, axes_from
from comparison.sweep.plan import SweepPlan, SweepRun, planned_sweep
from comparison.sweep.run import current_result, read_plan, read_state, sweep_folder
from comparison.sweep.state import PLAN_FILE, RecordedRun, RunStatus, SweepState, differences, recorded, status_of
from kernel.errors import ConfigurationError, EnvironmentFault
from tests.support.runs import results


def plan_of(*axes: str, **counts: int) -> SweepPlan:
    return planned_sweep(Grid(axes=axes_from(["scenario=join", *axes])).overridden({}, **counts))


def record_of(run: SweepRun, outcome: str, *, seconds: float = 10.0, error: str = "") -> RecordedRun:
    return RecordedRun(
        scenario=run.cell.scenario,
        design=run.cell.design,
        parameters=run.planned.parameters.as_json(),
        outcome=outcome,
        error=error,
        seconds=seconds,
    )


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("complete", RunStatus.COMPLETE),
        ("failed", RunStatus.FAILED),
        ("interrupted", RunStatus.MISSING),
        ("", RunStatus.MISSING),
    ],
)
def test_run_is_done_when_it_has_ended_by_itself(outcome: str, status: RunStatus) -> None:
    (run,) = plan_of("design=eager").runs
    assert status_of(run, record_of(run, outcome)) is status


def test_run_without_a_record_or_with_other_parameters_is_missing() -> None:
    one, other = plan_of("design=eager", "members=2,4").runs
    assert status_of(one, None) is RunStatus.MISSING
    assert status_of(one, record_of(other, "complete")) is RunStatus.MISSING


def test_failures_are_listed_with_their_reasons() -> None:
    plan = plan_of("design=eager", "members=2,4,8")
    records = {
        plan.runs[0].folder: record_of(plan.runs[0], "complete"),
        plan.runs[1].folder: record_of(plan.runs[1], "failed", error="time limit of 60 s reached"),
    }
    state = SweepState(plan, records)
    assert [(run.cell.at["members"], why) for run, why in state.failures] == [(4, "time limit of 60 s reached")]
    assert state.having(RunStatus.MISSING) == [plan.runs[2]]
    state.record(plan.runs[1], record_of(plan.runs[1], "complete"))
    assert state.failures == []


def test_remaining_time_follows_the_measured_pace() -> None:
    plan = plan_of("design=eager", seeds=4)
    first, *left = plan.runs
    estimate = SweepState(plan, {}).remaining_s(left)
    assert estimate == 36.0  # three runs with a budget of 12 s
    slower = SweepState(plan, {first.folder: record_of(first, "complete", seconds=24.0)})
    assert slower.remaining_s(left) == 72.0
    assert slower.remaining_s([]) == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "about 1 s"),
        (8.4, "about 8 s"),
        (44, "about 45 s"),
        (119, "about 120 s"),
        (170, "about 3 minutes"),
        (7000, "about 117 minutes"),
        (12_500, "about 3 h 20 min"),
    ],
)
def test_durations_are_said_in_words(seconds: float, words: str) -> None:
    assert about(seconds) == words


def test_plan_survives_its_file_and_shows_no_difference(tmp_path: Path) -> None:
    plan = plan_of("members=2,4", "rebalance.max.retries=1,2", "time-limit=60", seeds=2)
    record = recorded(plan, ["rebalance-lab", "sweep"], "embedded")
    with sweep_folder(tmp_path / "s", record):
        pass
    stored = read_plan(tmp_path / "s")
    assert differences(stored, record) == []
    assert planned_sweep(stored.grid).runs == plan.runs
    shown_otherwise = msgspec.structs.replace(record, metrics=["lost"])
    assert differences(stored, shown_otherwise) == []
    with sweep_folder(tmp_path / "s", record):
        assert len(read_state(tmp_path / "s", plan).having(RunStatus.MISSING)) == len(plan.runs)


def test_changed_plan_is_refused_with_the_remedy_and_nothing_changes(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with sweep_folder(folder, recorded(plan_of("members=2,4"), [], "embedded")):
        pass
    before = (folder / PLAN_FILE).read_bytes()
    other = recorded(plan_of("members=2,4,8", "rate=300", seeds=3), [], "127.0.0.1:2181")
    with pytest.raises(ConfigurationError) as refused, sweep_folder(folder, other):
        pass
    for part in (
        "members was 2, 4, is 2, 4, 8",
        "rate was not given, is 300",
        "seeds was 1, is 3",
        "zookeeper was embedded, is 127.0.0.1:2181",
        "--output",
        f"rebalance-lab sweep {folder}",
    ):
        assert part in str(refused.value)
    assert (folder / PLAN_FILE).read_bytes() == before


def test_plan_with_other_parameters_comes_from_another_version() -> None:
    record = recorded(plan_of("members=2,4"), [], "embedded")
    older = msgspec.structs.replace(record, runs=record.runs[:-1])
    assert differences(older, record) == ["another version of rebalance-lab planned other parameters"]


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    record = recorded(plan_of("members=2"), [], "embedded")
    with (
        pytest.raises(ConfigurationError, match=r"is not empty and has no sweep-plan.json"),
        sweep_folder(tmp_path, record),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(EnvironmentFault, match="is no sweep's folder"):
        read_plan(tmp_path)


def test_damaged_plan_is_named(tmp_path: Path) -> None:
    (tmp_path / PLAN_FILE).write_text(json.dumps({"schema": 1}))
    with pytest.raises(EnvironmentFault, match=r"sweep-plan.json is damaged .*--output"):
        read_plan(tmp_path)


def test_two_commands_never_use_one_folder(tmp_path: Path) -> None:
    record = recorded(plan_of("members=2"), [], "embedded")
    with (
        sweep_folder(tmp_path, record),
        pytest.raises(EnvironmentFault, match="another sweep is using"),
        sweep_folder(tmp_path, record),
    ):
        pass
    with sweep_folder(tmp_path, record):
        pass


def test_damaged_record_of_a_run_counts_as_missing(tmp_path: Path) -> None:
    plan = plan_of("design=eager", "members=2,4,6,8")
    nested = b'{"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    damaged = (b"", b'{"scenario": "join"', nested, b'{"scenario": "\xff"}')
    for run, content in zip(plan.runs, damaged, strict=True):
        (tmp_path / run.folder).mkdir(parents=True)
        (tmp_path / run.folder / "run.json").write_bytes(content)
    assert len(read_state(tmp_path, plan).having(RunStatus.MISSING)) == 4


def test_result_is_current_while_no_run_was_made_after_it(tmp_path: Path) -> None:
    run_dirs = [tmp_path / "a", tmp_path / "b"]
    for run_dir in run_dirs:
        run_dir.mkdir()
        (run_dir / "run.json").touch()
    path = tmp_path / "result.json"
    assert current_result(path, run_dirs) is None
    result = compose([results.run(path=str(run_dir)) for run_dir in run_dirs])
    path.write_bytes(formatted(result))
    assert current_result(path, run_dirs) == result
    assert current_result(path, run_dirs[:1]) is None
    os.utime(run_dirs[0] / "run.json", ns=(0, path.stat().st_mtime_ns + 1))
    assert current_result(path, run_dirs) is None
    path.write_bytes(b"{")
    assert current_result(path, run_dirs) is None
