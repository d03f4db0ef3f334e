"""The generator writes valid traces, in order of time, the same ones for the same seed, with the requested faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.generated.runs import Faults, write_synthetic, write_synthetic_runs
from kernel.trace.reader import Reason, Trace
from tests.support.trace.tracers import read_traces

EVERYTHING = Faults(zombies=0.5, brief=0.3, deaths=0.1, torn=1, foreign=1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("synthetic")
    write_synthetic(folder / "run", events_min=12_000, seed=3, faults=EVERYTHING)
    return {trace.path.stem: trace for trace in read_traces(folder / "run" / "trace")}


def test_synthetic_lines_are_what_a_writer_writes(written: dict[str, Trace]) -> None:
    assert {"runner", "observer", "m0", "m1", "m2", "m3"} < set(written)
    for name, trace in written.items():
        assert trace.header is not None
        assert trace.header["process"] == name
        assert [event["seq"] for event in trace.events] == list(range(len(trace.events)))
        times = [event["ns"] for event in trace.events]
        assert times == sorted(times)


def test_synthetic_files_of_processes_that_end_normally_have_an_end_marker(written: dict[str, Trace]) -> None:
    dead = {event["target"] for event in written["runner"].of("process_ended") if event["how"] == "kill"}
    torn = {name for name, trace in written.items() if trace.quarantined}
    assert dead
    assert {name for name, trace in written.items() if trace.end is None} == dead | torn
    for trace in written.values():
        assert trace.end is None or trace.end.events == len(trace.events)


def test_synthetic_file_may_end_in_a_torn_line(written: dict[str, Trace]) -> None:
    torn = {name: [each.reason for each in trace.quarantined] for name, trace in written.items() if trace.quarantined}
    assert list(torn.values()) == [[Reason.TORN]]
    assert next(iter(torn)).startswith("m0")


def test_synthetic_processes_die_and_others_take_their_place(written: dict[str, Trace]) -> None:
    dead = [event["target"] for event in written["runner"].of("process_ended")]
    assert dead
    assert {f"{name.partition('.')[0]}.{int(name.partition('.')[2] or 1) + 1}" for name in dead} <= set(written)


def test_synthetic_member_on_another_boot_costs_certainty(tmp_path: Path) -> None:
    truths = {
        foreign: write_synthetic(tmp_path / str(foreign), events_min=1_000, faults=Faults(foreign=foreign))
        for foreign in (0, 1)
    }
    found = {run.folder.name: run.tolerance_ns / 1_000_000 for run in find_runs([tmp_path])}
    assert found == {str(foreign): truth.tolerance_ms for foreign, truth in truths.items()} == {"0": 1, "1": 50}


def test_synthetic_run_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    truths = [write_synthetic(tmp_path / name, events_min=3_000, seed=5, faults=EVERYTHING) for name in ("a", "b")]
    assert truths[0] == truths[1]
    files = [
        {path.name: path.read_bytes().split(b"\n", 1)[1] for path in (tmp_path / name / "trace").iterdir()}
        for name in ("a", "b")
    ]
    assert files[0] == files[1]


def test_synthetic_runs_share_the_events(tmp_path: Path) -> None:
    truths = write_synthetic_runs(tmp_path, runs=3, events_min=3_000, members=2, partitions=2)
    assert sum(truth.events for truth in truths) >= 3_000
    assert [run.folder.name for run in find_runs([tmp_path])] == ["run-00000", "run-00001", "run-00002"]
    assert len({truth.duplicates for truth in truths}) > 1


def test_synthetic_run_of_one_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two or more"):
        write_synthetic(tmp_path / "run", events_min=10, members=1)
    assert not (tmp_path / "run").exists()
