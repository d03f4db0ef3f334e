"""`docs/large-groups.md` beside its records: complete, and drawn from them."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.catalogue import scenario_named
from comparison.sweep.grid import Grid, axes_from, complete
from comparison.sweep.large import Method, figures_of
from comparison.sweep.plan import planned_sweep
from docs.generators.large_page import CHARTS, PAGE
from docs.generators.large_records import SWEEPS, read_records


def test_the_page_shows_every_picture() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in CHARTS if f"(diagrams/figures/{name}.svg)" not in text] == []


@pytest.mark.parametrize("name", SWEEPS)
def test_each_combination_of_a_sweep_is_recorded_for_all_its_seeds(name: str) -> None:
    axes, seeds, full_stack_max = SWEEPS[name]
    grid = complete(Grid(axes=axes_from(axes, simulated=True)))
    recorded = read_records()[name]
    assert {cell.design for cell in recorded} == set(grid.axes["design"])
    assert {cell.at["members"] for cell in recorded} == set(grid.axes["members"])
    for cell in recorded:
        assert {spread.n for spread in cell.figures.values()} == {seeds}
        assert isinstance(cell.at["members"], int)
        assert (cell.by == Method.FULL_STACK) == (cell.at["members"] <= full_stack_max)


@pytest.mark.parametrize("members", [10, 100])
def test_formula_gives_the_requests_that_whole_runs_of_zookeeper_measured(members: int) -> None:
    axes = axes_from(
        ["scenario=join", "design=zookeeper", f"members={members}", "partitions=2*members"], simulated=True
    )
    (run,) = planned_sweep(Grid(axes=axes), simulated=True, full_stack_max=1).runs
    (whole,) = (
        cell for cell in read_records()["zookeeper"] if cell.scenario == "join" and cell.at["members"] == members
    )
    assert (run.cell.by, whole.by) == (Method.FORMULA, Method.FULL_STACK)
    formula = figures_of(scenario_named("join"), "zookeeper", run.planned.parameters)
    assert formula["join.authority_requests"] == whole.figures["join.authority_requests"].median
