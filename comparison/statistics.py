"""How a figure grows with a number: least squares on logarithms, with an interval from Student's distribution.

Pure functions. An exponent of 2 says that twice the members cost four times as much; a fit of a sum such as
`N^2 + 20 N` lies between its terms' exponents and depends on the range of N, which the interval shows as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import atan, cos, exp, fsum, log, pi, sin, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
_BISECTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFit:
    """A power through a point; `low` and `high` are the exponent's interval, None with two points only.

    A factor instead of the point could be beyond what a float holds.
    """

    exponent: float
    through_x: float  #: the geometric means of the points
    through_y: float
    low: float | None
    high: float | None
    n: int

    def at(self, x: float) -> float:
        return self.through_y * exp(self.exponent * log(x / self.through_x))


def why_unfit(points: Sequence[tuple[float, float]]) -> str:
    """Why no power can be fitted; '' if one can."""
    if len({x for x, _ in points}) < 2:
        return "fewer than two values of the axis were measured"
    not_positive = sum(y <= 0 for _, y in points)
    if not_positive:
        return f"{not_positive} of {len(points)} figures are 0"
    return "a value of the axis is 0" if any(x <= 0 for x, _ in points) else ""


def fitted_power(points: Sequence[tuple[float, float]]) -> PowerFit:
    """The power that fits best, by least squares on the logarithms. `why_unfit` must be ''."""
    assert not why_unfit(points)
    xs, ys = [log(x) for x, _ in points], [log(y) for _, y in points]
    n = len(points)
    mean_x, mean_y = fsum(xs) / n, fsum(ys) / n
    spread_x = fsum((x - mean_x) ** 2 for x in xs)
    slope = fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread_x
    half = None
    if n > 2:
        rest = fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
        half = t_quantile((1 + CONFIDENCE) / 2, n - 2) * sqrt(rest / (n - 2) / spread_x)
    return PowerFit(
        exponent=slope,
        through_x=exp(mean_x),
        through_y=exp(mean_y),
        low=None if half is None else slope - half,
        high=None if half is None else slope + half,
        n=n,
    )


def t_probability(t: float, freedom: int) -> float:
    """P(T <= t) of Student's distribution: Abramowitz and Stegun 26.7.3 and 26.7.4, finite sums for whole degrees."""
    angle = atan(t / sqrt(freedom))
    squared = cos(angle) ** 2
    odd = freedom % 2
    # Odd degrees: 1 + (2/3) cos^2 + (2*4)/(3*5) cos^4 + ...; even ones: 1 + (1/2) cos^2 + (1*3)/(2*4) cos^4 + ...
    terms, term = [1.0], 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= squared * (k - 1) / k
        terms.append(term)
    if odd:
        inside = angle + (sin(angle) * cos(angle) * fsum(terms) if freedom > 1 else 0.0)
        between = 2 / pi * inside
    else:
        between = sin(angle) * fsum(terms)
    return min(1.0, max(0.0, (1 + between) / 2))


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """The t with P(T <= t) = probability, for probabilities from 0.5 and at least one degree of freedom."""
    assert 0.5 <= probability < 1
    assert freedom >= 1
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high
