"""Cells of the first table are shaded where a design is clearly worse, and never where figures do not compare."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.analysis import compose
from comparison.report.summaries.glance import Row, Sign, cells, glanced
from comparison.report.summaries.repeats import columns_of
from comparison.report.summaries.strategies import SCENARIO
from comparison.results.run import Run
from tests.support.runs.results import change, run

DESIGNS = ("zookeeper", "eager", "static")


def rows(runs: list[Run]) -> dict[str, Row]:
    result = compose(runs)
    return {row.name: row for row in glanced(columns_of(result.scenarios[0], result)).rows}


def of(name: str, *values: float | None, seeds: tuple[int, ...] = (0,), **given: Any) -> Row:
    """The row of a figure that has these values in three designs; with several seeds, also 10% more and less."""
    made = [
        run("join", design, seed=seed, **{name: value and value * (1 + 0.1 * seed)}, **given)
        for design, value in zip(DESIGNS, values, strict=True)
        for seed in seeds
    ]
    return rows(made)[name]


def shades(row: Row) -> list[int]:
    return [cell.shade for cell in row.cells]


@pytest.mark.parametrize(
    ("name", "values", "shaded"),
    [
        ("stopped", (12.0, 0.0, 4.0), [3, 0, 2]),
        ("stopped", (10.0, 12.0, 11.0), [0, 0, 0]),
        ("standstill_s", (3.1, 6.7, 3.6), [0, 3, 0]),
        ("standstill_s", (0.2, 1.1, 0.2), [0, 0, 0]),
        ("standstill_s", (3.1, 6.1, 3.1), [0, 0, 0]),
        ("converge_ms", (100.0, 1_050.0, 4_000.0), [0, 0, 3]),
    ],
)
def test_what_is_clearly_worse_is_shaded_and_what_one_draw_may_be_is_not(
    name: str, values: tuple[float, ...], shaded: list[int]
) -> None:
    assert shades(of(name, *values)) == shaded


def test_cells_of_one_figure_are_there_also_where_no_design_has_it_or_it_is_0() -> None:
    runs = [run("join", design, standstill_s=None, stopped=0.0) for design in DESIGNS]
    assert [cell.sign for cell in cells("standstill_s", runs)] == [Sign.UNKNOWN] * 3
    assert [(cell.text, cell.shade) for cell in cells("stopped", runs)] == [("0", 0)] * 3


def test_figures_that_are_shown_alike_are_marked_alike() -> None:
    signs = [(cell.text, cell.sign) for cell in of("converge_ms", 100.0, 1_960.0, 2_010.0).cells]
    assert signs == [("0.1", Sign.NONE), ("2.0", Sign.WORST), ("2.0", Sign.WORST)]


def test_repeats_are_shaded_where_their_ranges_do_not_touch() -> None:
    assert shades(of("duplicates", 50.0, 80.0, 100.0, seeds=(-1, 0, 1))) == [0, 2, 3]
    assert shades(of("duplicates", 50.0, 64.0, 100.0, seeds=(-2, 0, 2))) == [0, 0, 3]
    row = of("standstill_s", 3.0, 3.0, 6.0, seeds=(-1, 0, 1))
    assert [(cell.text, cell.spread) for cell in row.cells] == [("3.0", "2.7-3.3")] * 2 + [("6.0", "5.4-6.6")]


@pytest.mark.parametrize("name", ["duplicates", "unowned_partition_s", "authority_requests"])
def test_figures_that_do_not_compare_have_a_reason_and_no_shade(name: str) -> None:
    row = of(name, 1.0, 1_000.0, 10.0)
    assert shades(row) == [0, 0, 0]
    assert row.not_compared
    assert {cell.sign for cell in row.cells} == {Sign.NONE}


def test_other_timers_compare_counts_only() -> None:
    made = [
        run("join", design, parameters={"timers": {"session_ms": ms}}, standstill_s=ms / 1000, stopped=ms)
        for design, ms in (("zookeeper", 6_000.0), ("eager", 45_000.0))
    ]
    found = rows(made)
    assert (shades(found["standstill_s"]), found["standstill_s"].not_compared) == (
        [0, 0],
        "the designs had different timers",
    )
    assert shades(found["stopped"]) == [0, 3]


def test_harm_is_marked_wherever_it_is_not_0_and_the_unknown_is_neither_0_nor_shaded() -> None:
    row = of("lost", 7.0, 0.0, None)
    assert [(cell.text, cell.sign) for cell in row.cells] == [("7", Sign.HARM), ("0", Sign.NONE), ("", Sign.UNKNOWN)]
    assert shades(row) == [3, 0, 0]
    assert {cell.sign for cell in of("moved_back", 3.0, 3.0, 3.0).cells} == {Sign.HARM}


def test_the_worst_of_a_row_is_marked() -> None:
    assert [cell.sign for cell in of("stopped", 12.0, 0.0, 4.0).cells] == [Sign.WORST, Sign.NONE, Sign.NONE]


def test_what_is_0_or_unknown_in_every_design_is_told_in_one_line() -> None:
    found = glanced([run("join", design, lost=None) for design in DESIGNS])
    assert "partitions moved" in found.zero
    assert found.unknown == ["lost"]
    assert {"moved", "lost"}.isdisjoint(row.name for row in found.rows)


def test_time_of_a_fault_counts_from_its_end() -> None:
    healed = [run("pause", design, converge_ms=6_700.0, converge_healed_ms=1_700.0) for design in DESIGNS]
    (settled, *_) = rows(healed).values()
    assert (settled.label, settled.unit, settled.cells[0].text) == ("settled after the heal", "s", "1.7")
    assert "converge_ms" not in rows(healed)
    not_healed = [run("crash", design, converge_ms=6_700.0, converge_healed_ms=None) for design in DESIGNS]
    assert [row.cells[0].text for row in rows(not_healed).values() if row.label.startswith("settled")] == ["6.7"]


def test_no_standstill_is_none_that_is_longer_than_an_interval_of_the_course() -> None:
    short, long = (
        run("join", design, standstill_s=0.0, duration_s=s) for design, s in (("eager", 9.0), ("static", 90.0))
    )
    unknown = run("join", "server", standstill_s=None)
    row = rows([short, long, unknown])["standstill_s"]
    assert sorted(cell.text for cell in row.cells) == ["", "<0.1", "<0.2"]
    assert "longest standstill (<0.1 s)" in glanced([short]).zero


def test_sums_over_strategies_are_no_prices() -> None:
    tried = run(SCENARIO, "eager", changes=[change("range join"), change("range leave")], stopped=5.0, lost=1.0)
    assert list(rows([tried])) == ["duplicates", "lost"]
