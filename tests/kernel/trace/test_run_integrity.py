"""Integrity of a run: files that are lost, duplicated or foreign, and missing end markers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernel.trace.events import Role
from kernel.trace.integrity import FileIntegrity, ProcessEnd, run_problems
from kernel.trace.listed_file import ListedFile
from kernel.trace.reader import Reason


def file(process: str, role: Role = Role.MEMBER) -> FileIntegrity:
    return FileIntegrity(
        file=f"{process}.jsonl", process=process, role=role, run="r", schema=2, events=7, ended=True, announced=7
    )


#: A run with a restarted member, a killed one and one that was killed because it did not stop in time.
FILES = {
    each.process: each
    for each in (
        file("runner", Role.RUNNER),
        file("proxy", Role.PROXY),
        file("observer", Role.OBSERVER),
        file("observer-offsets", Role.OBSERVER),
        file("broker-1", Role.BROKER),
        file("broker-2", Role.BROKER),
        file("m1"),
        file("m1.2"),
        replace(file("m2"), ended=False, announced=None, quarantined={Reason.TORN: 1}),
        replace(file("m3"), ended=False, announced=None),
    )
}
LISTED = [ListedFile(each.file, each.process, each.role) for each in FILES.values()]
ENDED = {
    "m1": ProcessEnd("leave", 0),
    "m1.2": ProcessEnd("stop", 0),
    "m2": ProcessEnd("kill", -9),
    "m3": ProcessEnd("stop", -9),
    "broker-1": ProcessEnd("stop", 0),
}


def problems(
    *without: str, listed: list[ListedFile] | None = LISTED, ended: dict[str, ProcessEnd] = ENDED, **changed: object
) -> list[str]:
    """The problems of the run without some processes' files, and with `name=changed file`."""
    files = {name: each for name, each in FILES.items() if name not in without} | changed
    return [text for _, text in run_problems(files.values(), listed, ended)]  # type: ignore[arg-type]  # all are files


def test_whole_run_has_no_problem() -> None:
    assert problems() == []
    assert problems(listed=None) == []


def test_deleted_file_is_noticed_when_it_was_listed() -> None:
    assert problems("m1.2") == ["m1.2.jsonl is in the list of run.json, but not in the folder"]
    assert problems("m1.2", listed=None) == []


def test_file_that_is_there_twice_is_noticed_with_and_without_a_list() -> None:
    copy = replace(file("m1"), file="m1-copy.jsonl")
    twice = [
        "m1-copy.jsonl is of the process m1, whose file is m1.jsonl",
        *["m1-copy.jsonl and m1.jsonl are all of the process m1"] * 2,
    ]
    assert problems(copy=copy) == ["m1-copy.jsonl is not in the list of run.json", *twice]
    assert problems(copy=copy, listed=None) == twice
    assert problems("m3", m3=replace(file("m1"), file="m3.jsonl")) == [
        "m3.jsonl is of the member m1, the list of run.json says member m3",
        "m3.jsonl is of the process m1, whose file is m1.jsonl",
        *["m1.jsonl and m3.jsonl are all of the process m1"] * 2,
    ]


def test_file_of_another_run_is_noticed() -> None:
    assert problems(m1=replace(FILES["m1"], run="q")) == ["m1.jsonl is of the run 'q', not 'r'"]
    several = [replace(file(name), run=run) for name, run in (("m1", "q"), ("m2", "r"), ("m3", "r"))]
    assert run_problems(several, None, {}) == (("m1.jsonl", "m1.jsonl is of the run 'q', not 'r'"),)
    assert [each.file for each in run_problems(several, None, {}, run="q")] == ["m2.jsonl", "m3.jsonl"]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (None, "nothing says that its process was killed"),
        (ProcessEnd("stop", 0), "its process was not killed (stop, exit code 0)"),
        (ProcessEnd("leave", 0), "its process was not killed (leave, exit code 0)"),
        (ProcessEnd("itself", 1), "its process was not killed (itself, exit code 1)"),
        (ProcessEnd("itself", 74), "its process was not killed (itself, exit code 74)"),
        (ProcessEnd("stop"), "its process was not killed (stop, exit code None)"),
        (ProcessEnd("kill"), ""),
        (ProcessEnd("kill", -9), ""),
        (ProcessEnd("leave", -9), ""),
        (ProcessEnd("itself", -9), ""),
        (ProcessEnd("itself", -15), ""),
    ],
)
def test_end_marker_may_be_missing_only_when_the_process_was_killed(end: ProcessEnd | None, why: str) -> None:
    m1 = replace(FILES["m1"], ended=False, announced=None)
    ended = {**ENDED} if end is None else {**ENDED, "m1": end}
    if end is None:
        del ended["m1"]
    assert problems(m1=m1, ended=ended) == (
        [f"m1.jsonl has no end marker, though {why}: its tail may be lost"] if why else []
    )
    assert problems(m1=replace(m1, schema=1), ended=ended) == []


@pytest.mark.parametrize("name", ["runner", "proxy", "observer"])
def test_end_marker_is_needed_of_what_the_runner_writes_itself(name: str) -> None:
    lacks = f"{name}.jsonl has no end marker, though nothing says that its process was killed: its tail may be lost"
    lacking: dict[str, Any] = {name: replace(FILES[name], ended=False, announced=None)}
    assert problems(**lacking) == [lacks]


def test_kill_tears_the_last_line_only() -> None:
    assert problems(m2=replace(FILES["m2"], seq_missing=1)) == ["m2.jsonl has 1 torn line"]
    assert problems(m2=replace(FILES["m2"], quarantined={Reason.TORN: 2})) == ["m2.jsonl has 2 torn lines"]
    assert problems(m1=replace(FILES["m1"], quarantined={Reason.TORN: 1})) == ["m1.jsonl has 1 torn line"]


def test_file_that_cannot_be_read_counts_as_present_only() -> None:
    assert problems(m1=FileIntegrity(file="m1.jsonl", problems=("m1.jsonl is empty",))) == []
    assert run_problems([], None, {}) == ()
