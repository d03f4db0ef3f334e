"""How the cells of a sweep are laid out, and how a terminal shows them."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from comparison.report.sweep.panels import Layout, Panel
from comparison.report.sweep.terminal import render_sweep
from comparison.results.run import Run
from comparison.sweep.plan import SweepRun
from tests.support.runs.sweeps import data_of, plan_of, result_of


def measured(run: SweepRun) -> Run:
    """The same in all designs: 10 ms a member, and a millisecond more with every seed."""
    return result_of({"converge_ms": 10 * run.planned.parameters.members + run.seed - 1})


def laid_out(*axes: str, **counts: int) -> list[Panel]:
    return list(Layout(data_of(plan_of(*axes, **counts), measured)).panels("converge_ms"))


def medians(panel: Panel) -> Sequence[Sequence[float | None]]:
    return [[cell and cell.median for cell in row] for row in panel.cells]


def test_designs_stand_beside_each_other_along_one_axis() -> None:
    (panel,) = laid_out("scenario=join", "members=2,4,8", "rate=100")
    assert (panel.title, panel.row_axis, panel.column_axis) == ("join", "members", "design")
    assert (list(panel.rows), list(panel.columns)) == ([2, 4, 8], ["zookeeper", "eager"])
    assert medians(panel) == [[20, 20], [40, 40], [80, 80]]
    assert [(each.design, each.exponent) for each in panel.exponents] == [("zookeeper", 1), ("eager", 1)]


def test_two_axes_are_rows_and_columns_for_each_design() -> None:
    first, second = laid_out("scenario=join", "members=2,4", "rate=100,200,300")
    assert (first.title, second.title) == ("join · zookeeper", "join · eager")
    assert (first.row_axis, first.column_axis, first.numeric) == ("members", "rate", True)
    assert medians(first) == [[20, 20, 20], [40, 40, 40]]
    assert {(each.design, each.axis) for each in first.exponents} == {("zookeeper", "members"), ("zookeeper", "rate")}


def test_further_axes_are_in_the_titles() -> None:
    found = laid_out("scenario=join", "design=eager", "members=2,4", "rate=100,200", "topics=1,2")
    assert [(panel.title, panel.row_axis, panel.column_axis) for panel in found] == [
        ("join · eager · members 2", "topics", "rate"),
        ("join · eager · members 4", "topics", "rate"),
    ]


def test_design_without_one_of_the_axes_has_a_panel_of_its_own() -> None:
    crossed, alone = laid_out("scenario=join", "members=2,4", "rebalance.max.retries=2,8")
    assert (crossed.title, crossed.column_axis) == ("join · zookeeper", "rebalance.max.retries")
    assert (alone.row_axis, list(alone.columns)) == ("members", ["eager"])


def test_sweep_of_designs_alone_has_one_row() -> None:
    (panel,) = laid_out("scenario=join", "design=zookeeper,eager,static")
    assert (panel.row_axis, list(panel.rows), len(panel.columns)) == ("", [None], 3)
    assert panel.exponents == []


def test_cell_that_was_left_out_is_empty() -> None:
    (panel,) = laid_out("scenario=split-brain", "design=eager", "members=4,16", "partitions=12,24")
    assert medians(panel) == [[40, 40], [None, 160]]


def rendered(*axes: str, **counts: int) -> str:
    data = data_of(plan_of(*axes, **counts), measured)
    out = io.StringIO()
    render_sweep(data, Console(file=out, width=100))
    return out.getvalue()


def test_terminal_shows_medians_ranges_and_growth() -> None:
    text = rendered("scenario=join", "members=2,4,8", seeds=3)
    assert "converge_ms (ms): longest time from a change until every partition had one owner" in text
    assert "4        41 (40-42)  41 (40-42)" in text
    assert "eager: 2.0 times per doubling of members (members^0.97; 95%: 0.93 to 1.02; 9 runs)" in text


def test_terminal_says_which_design_broke_a_promise_in_how_many_runs() -> None:
    plan = plan_of("scenario=join", "design=zookeeper,eager", "members=2,4", seeds=2)
    data = data_of(plan, lambda run: result_of({"lost": run.planned.design == "eager"}))
    out = io.StringIO()
    render_sweep(data, Console(file=out, width=100))
    assert "broken: every record is delivered: eager in 4 runs\n" in out.getvalue()


def test_terminal_names_both_axes_of_a_crossed_table() -> None:
    text = rendered("scenario=join", "design=zookeeper", "members=2,4", "rate=100,200")
    assert "join · zookeeper; rows: members, columns: rate" in text
    assert "100  200" in text
    assert "rate 100: 2.0 times per doubling of members (members^1.00; 2 runs: no interval)" in text
