"""The trace of a child, which can stop its process at an event."""

from __future__ import annotations

from pathlib import Path

from comparison.scenarios.processes.child_trace import Halt


def test_of_several_processes_only_the_first_one_at_the_point_stops(tmp_path: Path) -> None:
    halts = [Halt(kind="phase_entered", field="phase", value="stop", first=str(tmp_path / "first")) for _ in range(2)]
    assert [halt.matches("phase_entered", {"phase": "stop"}) and halt.is_ours() for halt in halts] == [True, False]


def test_a_process_that_comes_to_the_point_after_the_step_goes_on(tmp_path: Path) -> None:
    assert not Halt(kind="phase_entered", field="phase", value="stop", first=str(tmp_path / "gone" / "first")).is_ours()


def test_a_process_that_is_the_only_one_to_stop_does_so() -> None:
    assert Halt(kind="rebalance_ended", field="outcome", value="ok").is_ours()
