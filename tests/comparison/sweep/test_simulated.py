"""Simulated sweeps: the tasks make the runs of the plan, and equal runs write equal traces wherever they are."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from comparison.screen.progress import RunProgress
from comparison.sweep.plan import planned_sweep
from comparison.sweep.run import read_state, sweep_folder
from comparison.sweep.simulated import SimulatedSweepRunner
from comparison.sweep.state import RunStatus, differences, recorded
from tests.support.runs.inline_spark import InlineSpark
from tests.support.runs.sweeps import plan_of


def made(folder: Path, seeds: int) -> str:
    """Make what is missing of a simulated sweep in the folder; what was said."""
    plan = planned_sweep(
        plan_of("scenario=join", "design=eager", "members=2").grid.overridden({}, seeds=seeds), simulated=True
    )
    record = recorded(plan, ["rebalance-lab", "sweep"], "embedded", simulated=True)
    said = StringIO()
    with sweep_folder(folder, record), RunProgress(len(plan.runs), Console(file=said, width=200)) as progress:
        state = read_state(folder, plan)
        runner = SimulatedSweepRunner(folder, plan, state, record.command)
        missing = state.having(RunStatus.MISSING)
        assert runner.perform(missing, InlineSpark(2), progress) == []  # type: ignore[arg-type]  # in place of a session
        assert state.having(RunStatus.COMPLETE) == list(plan.runs)
    return said.getvalue()


def traces(folder: Path, seed: int) -> dict[str, bytes]:
    run = folder / "join" / "eager" / "members-2" / f"seed-{seed}"
    return {path.name: path.read_bytes() for path in sorted((run / "trace").iterdir())}


def test_tasks_make_the_missing_runs_with_the_same_bytes(tmp_path: Path) -> None:
    folder, other = tmp_path / "one", tmp_path / "another-name"

    assert made(folder, 2).splitlines() == [
        "[1/2] join · eager · seed 1: complete",
        "[2/2] join · eager · seed 2: complete",
    ]
    assert made(other, 1).splitlines() == ["[1/1] join · eager · seed 1: complete"]

    assert b'"clock":"simulated"' in traces(folder, 1)["runner.jsonl"].partition(b"\n")[0]
    assert traces(folder, 1) == traces(other, 1)
    assert traces(folder, 1) != traces(folder, 2)


def test_live_sweep_is_another_plan_than_a_simulated_one() -> None:
    plan = plan_of("scenario=join", "members=2")
    live, simulated = (recorded(plan, [], "embedded", simulated=each) for each in (False, True))
    assert differences(live, simulated) == ["simulated was False, is True"]
