"""Every row and column of the figures is explained, and no two of them by the same name."""

from __future__ import annotations

from comparison.report.page import page
from comparison.report.sections.glossary import COUNTED, glossary, of_changes, of_rows
from comparison.report.summaries import restarts, strategies
from comparison.report.summaries.figures import CHANGE_COLUMNS
from comparison.results.metrics import METRICS
from tests.support.runs.results import every_design


def test_every_row_has_an_entry_of_its_own() -> None:
    labels = [entry.label for entry in glossary()]
    assert len(labels) == len(set(labels)) == len([each for each in METRICS.values() if each.label]) + len(of_changes())
    assert "ZooKeeper reads: failed" in labels
    assert all(entry.meaning for entry in glossary())


def test_every_column_of_changes_and_restarts_is_explained() -> None:
    assert of_changes().keys() == {*CHANGE_COLUMNS.values(), COUNTED}
    assert {heading for _, heading in (*restarts.HEADINGS, *strategies.HEADINGS)} <= of_rows().keys()


def test_columns_are_explained_where_they_are_pointed_at() -> None:
    text = page(every_design())
    assert f'title="{of_changes()[COUNTED]}"' in text
    assert text.count("each change: rebalances") == 1
