"""Run folders are never overwritten, `latest` points to the newest one, and a failed write is reported."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.run_folder import RunRecord, commit_of, new_bundle, provenance, run_dir_of, run_dirs_in, write_json
from kernel.errors import EnvironmentFault, UserError
from kernel.trace.events import Role
from kernel.trace.listed_file import ListedFile, run_file


def test_two_runs_in_one_second_get_different_folders(tmp_path: Path) -> None:
    first, second = new_bundle(tmp_path, "compare"), new_bundle(tmp_path, "compare")
    assert first != second
    assert (tmp_path / "latest").resolve() == second


def test_runs_are_found_in_a_bundle_a_scenario_and_their_own_folder(tmp_path: Path) -> None:
    bundle = new_bundle(tmp_path, "run")
    runs = [run_dir_of(bundle, "crash", design) for design in ("eager", "zookeeper")]
    for run in runs:
        write_json(run / "run.json", {"run": run.name})
    assert run_dirs_in(bundle) == runs
    assert run_dirs_in(bundle / "crash") == runs
    assert run_dirs_in(runs[0]) == [runs[0]]


def test_run_that_has_lost_its_run_json_is_found_by_its_traces(tmp_path: Path) -> None:
    bundle = new_bundle(tmp_path, "run")
    lost, good = (run_dir_of(bundle, "crash", design) for design in ("eager", "zookeeper"))
    run_dir_of(bundle, "crash", "static")  # not one file: it never began
    write_json(good / "run.json", {"run": "good"})
    (lost / "trace" / "m1.jsonl").touch()
    assert run_dirs_in(bundle) == [lost, good]
    assert run_dirs_in(lost) == [lost]


def test_a_run_never_replaces_another(tmp_path: Path) -> None:
    run_dir_of(tmp_path, "crash", "eager")
    with pytest.raises(EnvironmentFault, match="cannot write the run folder"):
        run_dir_of(tmp_path, "crash", "eager")


@pytest.mark.parametrize(("name", "complaint"), [("missing", "no such file or folder "), ("", "no run in ")])
def test_a_folder_without_runs_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(EnvironmentFault, match=complaint):
        run_dirs_in(tmp_path / name)


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(EnvironmentFault, match="Choose another with --output"):
        new_bundle(tmp_path / "runs", "run")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"kept": True})
    program = (
        "import signal, sys; from pathlib import Path\n"
        "from comparison.run_folder import write_json\n"
        "from kernel.errors import EnvironmentFault\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try:\n    write_json(Path(sys.argv[1]), {'long': 'x' * 10000})\n"
        "except EnvironmentFault as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-B", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert "File too large" in result.stdout
    assert json.loads(path.read_text()) == {"kept": True}
    assert list(tmp_path.iterdir()) == [path]


def test_provenance_names_command_versions_and_machine() -> None:
    about = provenance(["rebalance-lab", "compare"])
    assert about["command"] == ["rebalance-lab", "compare"]
    assert set(about["versions"]) >= {"python", "pyspark", "kazoo", "rebalance-lab"}  # type: ignore[call-overload]  # a plain JSON object
    assert about["machine"]["cores"] >= 1  # type: ignore[index]  # a plain JSON object


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_commit_is_that_of_the_checkout_with_a_mark_if_files_were_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert commit_of(tmp_path) == {}
    git("init")
    assert commit_of(tmp_path) == {}
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    commit = git("rev-parse", "--short=12", "HEAD")
    assert commit_of(tmp_path) == {"commit": commit}
    (tmp_path / "file").write_text("two")
    assert commit_of(tmp_path) == {"commit": f"{commit}-dirty"}


def listed_traces(run_dir: Path) -> tuple[ListedFile, ...] | None:
    found = run_file(run_dir)
    return None if found is None else found.traces


def test_trace_files_are_listed_as_soon_as_they_are_added(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, {"run": "r"})
    assert listed_traces(tmp_path) == ()
    record.add_traces(Role.RUNNER, ["runner"])
    record.add_traces(Role.MEMBER, ["m1", "m1.2"])
    expected = (
        ListedFile("runner.jsonl", "runner", "runner"),
        ListedFile("m1.jsonl", "m1", "member"),
        ListedFile("m1.2.jsonl", "m1.2", "member"),
    )
    assert listed_traces(tmp_path) == expected
    record.end({"outcome": "complete"})
    assert listed_traces(tmp_path) == expected
    assert json.loads((tmp_path / "run.json").read_text()) == {
        "run": "r",
        "traces": [each._asdict() for each in expected],
        "outcome": "complete",
    }
    assert list(tmp_path.iterdir()) == [tmp_path / "run.json"]


def test_nothing_is_known_of_a_run_without_a_list(tmp_path: Path) -> None:
    assert listed_traces(tmp_path) is None
    (tmp_path / "run.json").write_text('{"schema": 1, "outcome": "complete"}')
    assert listed_traces(tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", '{"traces": [{"file": 1}]}', '{"traces": 5}', "[" * 10_000])
def test_a_damaged_list_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UserError, match=r"run\.json is damaged: "):
        listed_traces(tmp_path)
