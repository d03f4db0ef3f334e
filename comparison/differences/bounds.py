"""What a user allows to get worse: `20%` of every figure, `lost=0` of one.

A figure is worse than its bound if it has risen by more, and differs. A percentage is of the median before; from 0
everything is more. The bound of all figures is of those that reports show, without those of which more is not worse
(`Metric.more_is_worse`); one that is named counts in any case.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from comparison.differences.figures import Differs, FigureDifference
from comparison.differences.places import Place  # noqa: TC001  # msgspec reads the annotations
from comparison.results.metrics import METRICS, label_and_name, label_of
from kernel.errors import ConfigurationError
from kernel.suggestions import closest, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: What the bound of all figures is named by.
ALL = ""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """How much a figure may rise: a share of what it was, or so many of its unit."""

    figure: str  #: ALL: of each that has no bound of its own
    share: float | None
    by: float | None
    text: str  #: as given: `20%`

    def is_exceeded(self, found: FigureDifference) -> bool:
        """Whether the median has risen by more."""
        if found.before is None or found.after is None or not found.rises:
            return False
        risen = found.after.median - found.before.median
        if self.by is not None:
            return risen > self.by
        assert self.share is not None
        return risen > self.share * abs(found.before.median)


def bounds_of(given: Iterable[str]) -> list[Bound]:
    """The bounds as given, several in one text with commas; of two of one figure the last.

    Raises `ConfigurationError` for an unknown figure, and for what is no bound.
    """
    found = [_bound(text.strip()) for each in given for text in each.split(",")]
    return list({bound.figure: bound for bound in found}.values())


def _bound(text: str) -> Bound:
    name, equals, value = text.rpartition("=")
    if equals and name not in METRICS:
        raise ConfigurationError(_unknown(name))
    number = value.removesuffix("%")
    try:
        allowed = float(number)
    except ValueError:
        allowed = math.nan
    if not allowed >= 0 or math.isinf(allowed):
        if not equals and value in METRICS:
            raise ConfigurationError(f"{value!r} has no bound. Give {value}=0, or {value}=20%")
        raise ConfigurationError(f"{text!r} is not a bound. Give 20%, FIGURE=20% or FIGURE=0")
    if not equals and number == value:
        raise ConfigurationError(f"{text!r} is of no figure. Give {text}%, or FIGURE={text}")
    is_share = number != value
    return Bound(
        figure=name or ALL, share=allowed / 100 if is_share else None, by=None if is_share else allowed, text=value
    )


def _unknown(name: str) -> str:
    """The complaint about a name that is none; a figure may be meant by what reports call it."""
    called = name.partition("_")[0].lower()
    by_label = (each for each, metric in METRICS.items() if called and metric.label.startswith(called))
    if meant := next(by_label, "") or closest(name, METRICS):
        called = f" Reports call it: {label_of(meant)}" if METRICS[meant].label else ""
        return f"unknown figure {name!r}. Did you mean {meant!r}?{called}"
    return unknown("figure", name, METRICS)


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What is worse than allowed, or cannot be known."""

    place: Place
    what: str  #: a figure's name, a promise, or a check
    label: str = ""  #: of a figure: what reports call it, with its name
    bound: str  #: '' of a promise or check
    why: str = ""  #: it cannot be known; '' if it is worse


def over(
    place: Place, figures: Sequence[FigureDifference], bounds: Sequence[Bound]
) -> tuple[list[Judged], list[Judged]]:
    """Figures that are worse than their bounds; and those of which that cannot be known, with the reason."""
    own = {bound.figure: bound for bound in bounds}
    found = {each.figure: each for each in figures}
    worse: list[Judged] = []
    unsure: list[Judged] = []
    for name, metric in METRICS.items():
        bound = own.get(name) or (own.get(ALL) if metric.label and metric.more_is_worse else None)
        if bound is None:
            continue
        each = found.get(name)
        judged = Judged(place=place, what=name, label=label_and_name(name), bound=bound.text)
        if each is None:
            if bound.figure != ALL:
                unsure.append(msgspec.structs.replace(judged, why="was measured on neither side"))
        elif each.differs is Differs.UNKNOWN:
            side = "before" if each.before is None else "after"
            unsure.append(msgspec.structs.replace(judged, why=f"was not measured {side}"))
        elif bound.is_exceeded(each) and each.differs in (Differs.YES, Differs.FOR_SEED):
            worse.append(judged)
        elif bound.is_exceeded(each) and each.differs is Differs.MAYBE:
            unsure.append(msgspec.structs.replace(judged, why="has risen, but there are too few repeats"))
    return worse, unsure
