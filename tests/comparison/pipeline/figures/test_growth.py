"""How counts grow with the group: points by size, the model beside them, and the exponent with its interval."""

from __future__ import annotations

import pytest

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.growth import growths
from comparison.results.result import Growth
from tests.support.runs.results import HERD_SIZES, change, joins, waited


def of(found: list[Growth], figure: str, design: str = "zookeeper") -> Growth:
    (one,) = [each for each in found if (each.figure, each.design) == (figure, design)]
    return one


def test_operations_are_those_of_the_model_and_grow_by_their_exponent() -> None:
    found = growths([joins()])
    operations = of(found, "operations")
    assert [(each.members, each.median, each.model) for each in operations.points] == [
        (n, n * n, n * n) for n in HERD_SIZES
    ]
    assert (operations.change, operations.n, operations.reason) == ("join", 4, "")
    assert (operations.exponent, operations.low, operations.high) == pytest.approx((2.0, 2.0, 2.0))
    notifications = of(found, "notifications")
    assert [(point.median, point.model) for point in notifications.points] == [(n - 1, n - 1) for n in HERD_SIZES]
    assert notifications.low is not None
    assert notifications.high is not None
    assert notifications.low < notifications.exponent < notifications.high  # type: ignore[operator]  # it is fitted


def test_figures_that_are_0_have_points_and_a_reason_instead_of_an_exponent() -> None:
    notifications = of(growths([joins("eager")]), "notifications", "eager")
    assert [point.median for point in notifications.points] == [0, 0, 0, 0]
    assert (notifications.exponent, notifications.reason) == (None, "4 of 4 figures are 0")
    assert of(growths([joins("eager")]), "operations", "eager").exponent == pytest.approx(1.0)


def test_two_sizes_have_an_exponent_without_an_interval_and_one_is_no_growth() -> None:
    operations = of(growths([joins(sizes=(3, 6))]), "operations")
    assert (operations.exponent, operations.low, operations.high) == (pytest.approx(2.0), None, None)
    assert growths([joins(sizes=(3,))]) == []


def test_repeats_are_points_of_their_own_with_a_range() -> None:
    found = growths([joins(seed=1, path="a"), joins(seed=2, path="b", more=4)])
    operations = of(found, "operations")
    assert (operations.n, operations.runs) == (8, [0, 1])
    first = operations.points[0]
    assert (first.n, first.low, first.median, first.high, first.model) == (2, 9, 11, 13, 9)


def test_runs_that_are_incomplete_or_no_repeats_of_each_other_do_not_count() -> None:
    assert growths([joins(outcome="failed")]) == []
    found = growths([joins(path="a"), joins(path="b", seed=2, outcome="interrupted")])
    assert {tuple(each.runs) for each in found} == {(0,)}
    assert growths([joins(path="a"), joins(path="b", parameters={"members": 9})]) == []


def test_change_that_the_model_does_not_cover_is_no_point() -> None:
    one = joins()
    one.changes.append(change("grow", round=9, members=30))
    assert {each.change for each in growths([one])} == {"join"}
    assert [point.members for point in of(growths([one]), "operations").points] == list(HERD_SIZES)


def test_bystanders_of_repeats_have_the_medians_of_their_percentiles() -> None:
    made = [joins(seed=seed, path=str(seed), bystanders=[waited(ms)]) for seed, ms in ((1, 1.0), (2, 9.0), (3, 2.0))]
    made.append(joins(seed=4, path="4", bystanders=[waited(None, answered=0)]))
    (repeated,) = compose(made).repeated
    (together,) = repeated.bystanders
    assert (together.p50_ms, together.max_ms, together.answered, together.failed) == (2.0, 180.0, 150, 4)
