"""The structure of result.json is published, and its figures are those that the pipeline measures."""

from __future__ import annotations

import json

import msgspec

from comparison.results.metrics import CHANGE_METRICS, METRICS
from comparison.results.result import SCHEMA_PATH, schema
from tests.support.runs.results import change


def test_published_schema_is_up_to_date() -> None:
    assert json.loads(SCHEMA_PATH.read_text()) == json.loads(msgspec.json.encode(schema())), (
        "run: python -m comparison.results.result"
    )


def test_every_figure_of_a_change_is_an_attribute_of_one() -> None:
    assert [name for name in CHANGE_METRICS if not hasattr(change(), name)] == []


def test_a_row_is_part_of_a_row_that_is_shown_as_well() -> None:
    labelled = [metric for metric in METRICS.values() if metric.label]
    assert not labelled[0].is_part
    assert all(metric.label for metric in METRICS.values() if metric.is_part)
