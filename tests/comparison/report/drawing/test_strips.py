"""Strips show which share of the partitions was delivered from, in few steps, with what was done in words."""

from __future__ import annotations

import numpy as np
import pytest

from comparison.report.drawing.chart import Chart
from comparison.report.drawing.strips import STEPS, shares, strips
from comparison.report.view.model import Change, Fault, Holding, Overlap, PartitionView, RunView
from tests.comparison.report.drawing.test_charts import intervals, panels
from tests.comparison.report.drawing.test_lanes import lane
from tests.comparison.report.sections.run_views import empty_view


def delivered(*stretches: tuple[float, float], **given: object) -> PartitionView:
    return lane(delivering=tuple(Holding(from_ms, until_ms, "m1") for from_ms, until_ms in stretches), **given)


def drawn(*views: RunView) -> Chart:
    chart = strips(panels(*views))
    assert chart is not None
    return chart


def told(chart: Chart, width: str = "wide") -> list[str]:
    """The words over the strips of a desktop, or of a phone: `narrow`."""
    return [label.text for label in chart.block.labels if label.kind in ("ev", f"ev {width}")]


def test_share_is_of_the_time_of_all_partitions_and_two_at_once_count_once() -> None:
    view = empty_view(
        partitions=(delivered((0, 1_000), (500, 2_000)), delivered((1_500, 2_000), named=(Holding(0, 2_000, "m1"),)))
    )
    assert shares(view, np.array([0.0, 1_000.0, 2_000.0, 3_000.0])) == pytest.approx([0.5, 0.75, 0.0])


def test_partition_counts_from_when_anybody_had_it_or_should_have() -> None:
    view = empty_view(
        partitions=(delivered((0, 4_000)), delivered((3_000, 4_000), named=(Holding(2_000, 4_000, "m1"),)))
    )
    found = shares(view, np.array([-1_000.0, 0.0, 2_000.0, 3_000.0, 4_000.0]))
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([1.0, 0.5, 1.0])


def test_strip_has_few_steps_and_ends_with_the_last_delivery_or_the_last_record_that_waited() -> None:
    often = [(100.0 * n, 100.0 * n + 50) for n in range(80)]
    view = empty_view(partitions=(delivered(*often),))
    (curve,) = drawn(view).block.curves[0].curves
    assert len(curve.steps) <= STEPS + 1
    assert {step.value for step in curve.steps} <= set(range(101))
    assert curve.steps[-1].until_ms == 7_950
    waited = empty_view(partitions=view.partitions, course=intervals(*[0] * 90, left=3))
    assert drawn(waited).block.curves[0].curves[0].steps[-1].until_ms == 9_000


def test_what_was_done_stands_in_words_once_where_designs_agree() -> None:
    faults = (Fault("freeze", "m3", 2_000, 7_000),)
    one = empty_view(partitions=(delivered((0, 9_000)),), faults=faults, changes=(Change("join", 2_000),))
    other = empty_view(
        design="static", partitions=(delivered((0, 9_000)),), faults=(Fault("freeze", "m3", 2_000, 8_000),)
    )
    assert told(drawn(one, other)) == ["freeze m3, join", "end of freeze", "freeze m3", "end of freeze"]
    assert told(drawn(one, one)) == ["freeze m3, join", "end of freeze"]


def test_on_a_phone_stand_the_words_that_fit_there() -> None:
    restarts = tuple(Change(f"restart {number}", 2_000 * number) for number in range(1, 5))
    chart = drawn(empty_view(partitions=(delivered((0, 9_000)),), changes=restarts))
    assert told(chart) == [f"restart {number}" for number in range(1, 5)]
    assert told(chart, "narrow") == ["restart 1", "restart 3"]
    assert {each.y for each in chart.block.labels} == {11}, "in one line"


def test_two_deliverers_and_repeats_are_marked_below() -> None:
    two = delivered((0, 9_000), overlaps=(Overlap(1_000, 2_000, ("m1", "m2")), Overlap(1_500, 3_000, ("m1", "m2"))))
    chart = drawn(empty_view(partitions=(two,), course=intervals(1, 1, again=1)))
    assert [(bar.from_, bar.until, bar.classes) for bar in chart.block.bars] == [
        (1_000, 3_000, "both"),
        (0, 200, "late"),
    ]
    assert [entry.classes for entry in chart.legend] == ["area got", "both", "late"]


def test_table_says_the_same() -> None:
    chart = drawn(empty_view(partitions=(delivered((0, 500)),), course=intervals(*[1] * 10)))
    assert chart.headings == ["seconds", "eager"]
    assert [row[1] for row in chart.rows][:6] == ["100%"] * 5 + [""]


def test_nothing_is_drawn_where_nothing_was_delivered() -> None:
    assert strips(panels(empty_view(partitions=(lane(),)))) is None
