"""Fits and their intervals, against values from tables and worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comparison.statistics import fitted_power, t_probability, t_quantile, why_unfit


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Two-sided 95 percent, from any table of Student's distribution.
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (6, 2.4469), (10, 2.2281), (29, 2.0452),
     (30, 2.0423), (120, 1.9799), (1000, 1.9623)],
)  # fmt: skip
def test_quantiles_are_those_of_the_table(freedom: int, quantile: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-5)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 63.6567), (2, 9.9248), (5, 4.0321), (20, 2.8453)])
def test_quantiles_of_99_percent_are_those_of_the_table(freedom: int, quantile: float) -> None:
    assert t_quantile(0.995, freedom) == pytest.approx(quantile, abs=5e-5)


def test_one_and_two_degrees_have_closed_forms() -> None:
    for t in (0.0, 0.3, 1.0, 7.5):
        assert t_probability(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi)
        assert t_probability(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)))


@given(st.floats(-50, 50), st.integers(1, 200))
def test_probability_is_symmetric_and_within_bounds(t: float, freedom: int) -> None:
    assert 0 <= t_probability(t, freedom) <= 1
    assert t_probability(t, freedom) + t_probability(-t, freedom) == pytest.approx(1)


def test_exact_power_has_an_interval_of_no_width() -> None:
    fit = fitted_power([(x, 3 * x**2) for x in (2, 4, 8, 16)])
    assert (fit.exponent, fit.at(1), fit.n) == (pytest.approx(2), pytest.approx(3), 4)
    assert fit.low == pytest.approx(2)
    assert fit.high == pytest.approx(2)
    assert fit.at(10) == pytest.approx(300)


def test_fit_worked_by_hand() -> None:
    # Logarithms to base 2 (the slope does not depend on the base): (0, 0), (1, 1), (2, 1).
    # Slope 1/2, intercept 1/6, residuals -1/6, 1/3, -1/6; their squares sum to 1/6; one degree of freedom.
    # Standard error of the slope: sqrt((1/6) / 1 / 2) = 0.288675; times 12.7062 = 3.66796.
    fit = fitted_power([(1, 1), (2, 2), (4, 2)])
    assert fit.exponent == pytest.approx(0.5)
    assert fit.at(1) == pytest.approx(2 ** (1 / 6))
    assert fit.low == pytest.approx(0.5 - 3.66796, abs=1e-4)
    assert fit.high == pytest.approx(0.5 + 3.66796, abs=1e-4)


def test_two_points_have_an_exponent_and_no_interval() -> None:
    fit = fitted_power([(2, 5), (8, 10)])
    assert fit.exponent == pytest.approx(0.5)
    assert (fit.low, fit.high) == (None, None)


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "fewer than two values"),
        ([(2, 1), (2, 3)], "fewer than two values"),
        ([(2, 0), (4, 3), (8, 0)], "2 of 3 figures are 0"),
        ([(0, 1), (4, 3)], "a value of the axis is 0"),
    ],
)
def test_points_without_a_power_say_why(points: list[tuple[float, float]], reason: str) -> None:
    assert reason in why_unfit(points)


POINTS = st.lists(st.tuples(st.integers(1, 200), st.floats(0.001, 1e6)), min_size=3, max_size=30)


@given(POINTS)
def test_fit_is_that_of_numpy(points: list[tuple[int, float]]) -> None:
    assume(len({x for x, _ in points}) > 1)
    fit = fitted_power(points)
    logs = np.log(np.array(points, dtype=float))
    design = np.column_stack([logs[:, 0], np.ones(len(points))])
    (slope, intercept), *_ = np.linalg.lstsq(design, logs[:, 1], rcond=None)
    assert fit.exponent == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for x, _ in points:
        assert fit.at(x) == pytest.approx(math.exp(intercept + slope * math.log(x)), rel=1e-5)
    rest = logs[:, 1] - design @ [slope, intercept]
    error = math.sqrt(rest @ rest / (len(points) - 2) / ((logs[:, 0] - logs[:, 0].mean()) ** 2).sum())
    assert fit.low is not None
    assert fit.high is not None
    assert (fit.high - fit.low) / 2 == pytest.approx(t_quantile(0.975, len(points) - 2) * error, rel=1e-6, abs=1e-6)


@given(POINTS, st.floats(0.01, 100), st.floats(0.01, 100))
def test_units_change_neither_exponent_nor_interval(points: list[tuple[int, float]], of_x: float, of_y: float) -> None:
    assume(len({x for x, _ in points}) > 1)
    fit, scaled = fitted_power(points), fitted_power([(x * of_x, y * of_y) for x, y in points])
    for name in ("exponent", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(getattr(fit, name), rel=1e-6, abs=1e-6)


def test_steep_fit_between_neighbours_does_not_overflow() -> None:
    fit = fitted_power([(40, 1.0), (41, 1e6), (41, 1e6)])
    assert fit.exponent > 500
    assert fit.at(41) == pytest.approx(1e6)


def test_interval_covers_the_true_exponent_about_95_times_in_100() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(1000):
        points = [(x, float(5 * x**1.5 * np.exp(random.normal(0, 0.3)))) for x in (2, 4, 8, 16) for _ in range(2)]
        fit = fitted_power(points)
        assert fit.low is not None
        assert fit.high is not None
        covered += fit.low <= 1.5 <= fit.high
    assert 930 <= covered <= 970
