"""The kept table is that of its grid, and its figures are what the same runs give when they are made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.choosing.advice import left_out
from comparison.choosing.costs import (
    GRID,
    MEASURES,
    ROLLING_RESTART,
    Bounds,
    CostCell,
    condensed,
    kept_costs,
    why_unusable,
)
from comparison.own_scenarios import own_scenario
from comparison.results.run import Run
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.membership_vocabulary import RestartEach
from comparison.sweep.data import sweep_data
from comparison.sweep.grid_file import scenario_or_grid
from comparison.sweep.plan import SweepPlan, planned_sweep
from tests.support.runs.simulations import Simulations
from tests.support.runs.sweeps import data_of, plan_of, result_of

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def plan() -> SweepPlan:
    return planned_sweep(scenario_or_grid(ROOT / GRID, simulated=True), simulated=True)


def test_kept_table_has_the_cells_the_seeds_and_the_figures_of_its_grid(plan: SweepPlan) -> None:
    kept = kept_costs()
    planned = [(each.scenario, each.design, each.at["members"], each.at["partitions"]) for each in plan.cells]
    assert [(each.scenario, each.design, each.members, each.partitions) for each in kept.cells] == planned
    assert kept.command == ["rebalance-lab", "sweep", GRID, "--simulated"]
    assert kept.seeds == [*range(plan.grid.seed, plan.grid.seed + plan.grid.seeds)]
    assert kept.simulated
    assert {kept.rate} == {run.planned.parameters.rate for run in plan.runs}
    for each in kept.cells:
        assert (each.runs, each.failed) == (plan.grid.factor, 0), each
        assert each.figures.keys() == {measure.metric for measure in MEASURES}, each


@pytest.fixture(scope="module")
def simulations() -> Iterator[Simulations]:
    slow = own_scenario((ROOT / GRID).parent / "slow-record-1s.toml").scenario
    made = Simulations({**CATALOGUE, slow.name: slow})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("scenario", "design"), [("crash", "eager"), ("slow-record-1s", "consumer"), ("leave", "static")]
)
def test_kept_figures_are_those_of_the_same_runs_made_again(
    plan: SweepPlan, simulations: Simulations, scenario: str, design: str, tmp_path: Path
) -> None:
    at = {"members": 3, "partitions": 24}
    (cell,) = (each for each in plan.cells if (each.scenario, each.design, each.at) == (scenario, design, at))
    runs: dict[str, Run] = {}
    for run in plan.runs:
        if run.cell == cell:
            given = {"members": 3, "partitions": 24, "seed": run.seed}
            runs[run.folder] = simulations.run(tmp_path / str(run.seed), scenario, design, **given).run
    (again,) = (each for each in condensed(sweep_data(plan, runs, (), name="again", command=[])).cells if each.runs)
    (kept,) = (each for each in kept_costs().cells if _place(each) == _place(again))
    assert again == kept


def test_process_is_away_for_a_second_in_a_deploy_as_the_answer_says() -> None:
    (deploy,) = (step for step in CATALOGUE[ROLLING_RESTART].steps if isinstance(step, RestartEach))
    assert deploy.away_ms == 1000
    assert sum("a process is back a second after it has left" in each for each in left_out(kept_costs())) == 1


def _place(cell: CostCell) -> tuple[object, ...]:
    return cell.scenario, cell.design, cell.members, cell.partitions


def test_condensed_table_has_what_is_known_of_every_run() -> None:
    data = data_of(
        plan_of("scenario=crash,herd", "design=eager", "members=2,4", "partitions=8*members", seeds=2, simulated=True),
        lambda run: result_of({"standstill_s": 2.0 + run.seed, "duplicates": None if run.seed == 2 else 5}),
    )
    found = condensed(data).cells
    assert [(each.scenario, each.members, each.partitions) for each in found] == [("crash", 2, 16), ("crash", 4, 32)]
    assert [each.figures for each in found] == [{"standstill_s": Bounds(3, 3.5, 4)}] * 2


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        (("scenario=crash", "members=2,4", "partitions=12"), ""),
        (("scenario=crash", "members=2,4"), "has no runs to choose by. Sweep rolling-restart, crash,"),
        (("scenario=herd", "partitions=12", "members=2"), "has no runs to choose by. Sweep rolling-restart, crash,"),
        (
            ("scenario=crash", "members=2", "partitions=12", "rate=10,20", "session-timeout=3000,6000"),
            "varies rate, session-timeout as well. Choose by a sweep with one value of each",
        ),
    ],
)
def test_sweep_that_has_no_use_says_why(axes: tuple[str, ...], why: str) -> None:
    found = why_unusable(data_of(plan_of("design=eager", *axes), lambda _: result_of({"duplicates": 1})))
    assert found.startswith(why) if why else found == ""
