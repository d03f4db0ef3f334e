"""Assignment strategies side by side: what each gave the members, and what it moved."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from comparison.pipeline.analysis import compose
from comparison.report.page import page
from comparison.report.summaries.strategies import TITLE, table
from comparison.report.terminal import render
from comparison.results.result import Result
from comparison.results.run import Change
from tests.support.runs.results import change, run


def tried(strategy: str, **given: Any) -> list[Change]:
    return [
        change(f"{strategy} join", members=5, balance=3, rounds=1, **{"moved": 9, "moved_minimum": 3, **given}),
        change(f"{strategy} leave", members=4, balance=1, rounds=1, **{"moved": 8, "moved_minimum": 4, **given}),
    ]


def result() -> Result:
    changes = [*tried("range"), change("form"), *tried("cooperative-sticky", moved=3, stopped=0)]
    return compose([run("strategies", "eager", changes=changes)])


def test_each_strategy_has_one_row_in_the_order_in_which_they_were_tried() -> None:
    found = table(result().runs)
    assert found is not None
    rows = [(strategy, *cells[:4]) for strategy, cells in found.rows]
    assert rows == [("range", "3", "17", "7", "24"), ("cooperative-sticky", "3", "6", "7", "0")]


def test_what_one_change_does_not_show_is_not_added_up() -> None:
    found = table([run("strategies", "eager", changes=tried("range", moved=None))])
    assert found is not None
    ((_, cells),) = found.rows
    assert cells[1:3] == ["-", "7"]


def test_other_scenarios_have_no_strategies() -> None:
    assert table([run("join", "eager", changes=tried("range"))]) is None


def test_terminal_and_page_show_strategies_side_by_side() -> None:
    text = render(result(), Console(width=80))
    assert TITLE[:40] in text
    rows = [line.split() for line in text.splitlines() if line.split()[:1] == ["cooperative-sticky"]]
    assert rows[-1] == ["cooperative-sticky", "3", "6", "7", "0", "2", "300"]
    assert "Partitions taken from members" not in page(result()), "a sum over strategies says nothing"
    assert '<th scope="row">cooperative-sticky</th><td>3</td><td>6</td><td>7</td>' in page(result())
