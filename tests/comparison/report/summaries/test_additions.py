"""How the report tells what the time went to until added partitions were read."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.figures.additions import BEHIND, DELIVER, GROW, NOTICE
from comparison.report.drawing.added_bars import added_bars
from comparison.report.summaries.additions import PARTS, additions, sentence
from comparison.results.run import Added, Run
from tests.support.runs.results import change, run


def runs(**given: Any) -> list[Run]:
    usual: dict[str, Any] = {"partitions": 900, "owned": 900, "delivered": 900, "delivered_ms": 103_000.0}
    parts = {"grow": 200.0, "notice": 100_000.0, "hear": 2_500.0, "join": 100.0, "claim": 50.0, "deliver": 150.0}
    added = Added(**{**usual, "parts": parts, **given})
    return [run("add-partitions", "eager", changes=[change(), change("partition-increase", added=added)])]


def test_every_part_has_words() -> None:
    assert list(PARTS) == [GROW, NOTICE, "hear", *(name for name in BEHIND if name != "hear"), DELIVER]


def test_phases_are_one_column_and_everything_else_has_its_own() -> None:
    (addition,) = additions(runs())
    assert addition.cells() == ["103,000", "200", "100,000", "2,500", "150", "150"]


def test_addition_that_was_not_read_says_how_much_was() -> None:
    (addition,) = additions(runs(delivered=7, delivered_ms=None))
    assert addition.cells()[0] == "-"
    assert sentence(addition) == "7 of 900 added partitions were delivered from."
    chart = added_bars([addition])
    assert chart is not None
    assert [label.text for label in chart.block.labels] == ["103,000 ms at least"]


def test_bars_have_a_table_with_every_part() -> None:
    chart = added_bars(additions(runs()))
    assert chart is not None
    assert chart.headings == ("design", "ms in all", "grow", "notice", "hear", "join", "claim", "deliver")
    assert chart.rows == [["eager", "103,000", "200", "100,000", "2,500", "100", "50", "150"]]
    assert added_bars([]) is None
