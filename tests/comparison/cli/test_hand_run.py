"""Run folders that several commands trace into."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from comparison.cli.hand_run import SCENARIO, trace_in
from comparison.pipeline.bronze.runs import find_runs
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.trace.events import Role
from kernel.trace.listed_file import run_file
from kernel.trace.reader import read_trace


def test_broker_and_consumers_trace_into_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for role, design in ((Role.BROKER, ""), (Role.MEMBER, "eager"), (Role.MEMBER, "eager")):
        trace_in(folder, role, design=design).close()
    about = run_file(folder)
    assert about is not None
    assert (about.run, about.scenario, about.design) == (f"mine/{SCENARIO}", SCENARIO, "eager")
    assert about.traces is not None
    assert [(each.process, each.role) for each in about.traces] == [
        ("broker-1", "broker"),
        ("m1", "member"),
        ("m2", "member"),
    ]
    headers = [read_trace(folder / "trace" / each.file).header for each in about.traces]
    assert {header["run"] for header in headers if header} == {about.run}
    (run,) = find_runs([folder])
    assert (run.run_id, run.scenario, run.design, run.problem) == (about.run, SCENARIO, "eager", "")
    assert run.listed == about.traces


def _trace(folder: Path) -> None:
    trace_in(folder, Role.MEMBER, design="eager").close()


def test_commands_that_start_at_the_same_time_get_files_of_their_own(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_trace, args=(tmp_path / "mine",)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 4
    about = run_file(tmp_path / "mine")
    assert about is not None
    assert about.traces is not None
    assert sorted(each.process for each in about.traces) == ["m1", "m2", "m3", "m4"]


@pytest.mark.parametrize(
    ("about", "complaint"),
    [
        ({"run": "r", "scenario": "join", "design": "eager", "traces": []}, "is a run of join"),
        ({"run": "r", "scenario": SCENARIO, "design": "static", "traces": []}, "of the design static, not eager"),
    ],
)
def test_folder_of_another_run_is_refused_and_left_as_it_is(
    tmp_path: Path, about: dict[str, object], complaint: str
) -> None:
    text = json.dumps(about)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ConfigurationError, match=complaint):
        trace_in(tmp_path, Role.MEMBER, design="eager")
    assert (tmp_path / "run.json").read_text() == text
    assert not list((tmp_path / "trace").iterdir())


def test_traces_without_a_run_are_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "m1.jsonl").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"has traces, but no run\.json"):
        trace_in(tmp_path, Role.MEMBER, design="eager")


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="file"):
        trace_in(tmp_path / "file" / "mine", Role.MEMBER, design="eager")
