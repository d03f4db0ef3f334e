"""The table that a report begins with: what a scenario cost in each design, and where a design is clearly worse.

A cell is shaded if it is clearly worse than the best of its row, and more so the closer it is to the worst. What is
clear depends on what the figure is (`summaries.figures.compared`):

- a count that follows from the changes made, or a median of several repeats: more than CLEARLY of the best, and of
  medians, ranges that do not touch
- a time of one run of each design, which is one draw of the phases of its timers: more than DRAWN of the best, and more
  than DRAWN_S later. Six seeds each of crash, pause and rolling-restart in seven designs never lie that far apart
- never: sums of such draws over partitions or records (those seeds lie up to nineteen times apart), totals of runs of
  different length, and what depends on timers that differ

A harm (`Glance.HARM`) is marked wherever it is not 0, because none is always better than some.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.summaries import strategies
from comparison.report.summaries.figures import Compared, compared, number, spread_of, unseen
from comparison.report.summaries.repeats import RunOfRepeats
from comparison.results.meanings import Glance, Of
from comparison.results.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.results.run import Run

#: Below these multiples of the best, and below so many seconds more, a cell counts as being as good.
CLEARLY, DRAWN, DRAWN_S = 1.25, 2.0, 1.0
#: The rule in words, for who reads the table.
RULE = (
    "A figure counts as being as good as the best of its row within a quarter of it, and while ranges of repeats "
    "touch. A time of a single run is one draw of its timers' phases: it counts as being as good up to twice the best "
    "or one second more. Not compared at all: what one run draws over many partitions or records, totals of runs of "
    "different length, and under different timers anything but counts of what was stopped and moved."
)
#: Shades of a cell that is clearly worse.
SHADES = 3
#: The same figure, if faults ended: since their end.
_HEALED = {"converge_ms": "converge_healed_ms"}


class Sign(StrEnum):
    """What is written beside or instead of a figure, so that nothing is said by shades alone."""

    NONE = ""
    WORST = "▼"
    HARM = "!"
    UNKNOWN = "?"


class Cell(NamedTuple):
    """One figure of one design; `shade` is 0 to SHADES."""

    text: str
    spread: str
    shade: int
    sign: Sign


class Row(NamedTuple):
    """One figure of all designs; `not_compared` says why none of it is shaded, '' if it could be."""

    name: str
    label: str
    unit: str
    meaning: str
    cells: Sequence[Cell]
    not_compared: str


class Glanced(NamedTuple):
    """The table of a scenario, and which of its figures are 0, or unknown, in every design."""

    rows: Sequence[Row]
    zero: Sequence[str]
    unknown: Sequence[str]


def glanced(runs: Sequence[Run]) -> Glanced:
    """The table of a scenario's runs, one a design, in their order."""
    rows, zero, unknown = [], [], []
    for name, values in _shown(runs):
        label, _ = labelled(name)
        if not any(values) and None not in values:
            zero.append(
                f"{label} ({unseen(max(runs, key=lambda run: run.duration_s))} s)" if name == "standstill_s" else label
            )
        elif any(value is not None for value in values):
            rows.append(_row(name, runs, values))
        elif METRICS[name].is_always_shown:
            unknown.append(label)
    return Glanced(rows, zero, unknown)


def cells(name: str, runs: Sequence[Run]) -> Sequence[Cell]:
    """One figure of a scenario's runs, also where it is 0, or unknown, in every design."""
    return _row(name, runs, [_of(run, name) for run in runs]).cells


def labelled(name: str) -> tuple[str, str]:
    """What a figure is called, and its unit; times are in seconds."""
    metric = METRICS[name]
    label, _, unit = metric.label.partition(", ")
    return label, "s" if metric.unit == "ms" else unit or metric.unit


def _shown(runs: Sequence[Run]) -> Iterator[tuple[str, list[float | None]]]:
    # Sums over several strategies, and over the time between two of them, say nothing about any.
    is_sum = strategies.table(runs) is not None
    for name, metric in METRICS.items():
        if metric.glance is Glance.NEVER or not any(name in run.metrics for run in runs):
            continue
        if is_sum and metric.of is not Of.RUN:
            continue
        if name in _HEALED and any(_of(run, _HEALED[name]) is not None for run in runs):
            continue
        values = [_of(run, name) for run in runs]
        if name not in _HEALED.values() or any(value is not None for value in values):
            yield name, values


def _of(run: Run, name: str) -> float | None:
    value: float | None = run.metrics.get(name)
    return value


def _row(name: str, runs: Sequence[Run], values: Sequence[float | None]) -> Row:
    label, unit = labelled(name)
    metric = METRICS[name]
    how = compared(name, runs)
    if metric.glance is Glance.HARM:
        why, shades = "", [SHADES if value else 0 for value in values]
    elif how in (Compared.OTHER_TIMERS, Compared.OTHER_LENGTH) or (how is Compared.ONE_DRAW and unit != "s"):
        why, shades = how.value, [0] * len(runs)
    else:
        why, shades = "", _shades(name, runs, values, is_draw=how is Compared.ONE_DRAW)
    texts = [_texts(name, run, value) for run, value in zip(runs, values, strict=True)]
    _, worst = max(
        ((value, text) for value, (text, _) in zip(values, texts, strict=True) if value is not None), default=(0, "")
    )
    return Row(
        name,
        label,
        unit,
        metric.meaning,
        [
            Cell(*shown, shade, _sign(shown[0], shade, worst, metric.glance))
            for shown, shade in zip(texts, shades, strict=True)
        ],
        why,
    )


def _sign(text: str, shade: int, worst: str, glance: Glance) -> Sign:
    """Figures that are shown alike are marked alike."""
    if not text:
        return Sign.UNKNOWN
    if not shade:
        return Sign.NONE
    return Sign.HARM if glance is Glance.HARM else Sign.WORST if text == worst else Sign.NONE


def _shades(name: str, runs: Sequence[Run], values: Sequence[float | None], *, is_draw: bool) -> list[int]:
    known = [value for value in values if value is not None]
    if not known:
        return [0] * len(values)
    best, worst = min(known), max(known)
    best_run = runs[values.index(best)]
    second = 1000.0 if METRICS[name].unit == "ms" else 1.0

    def is_clear(run: Run, value: float) -> bool:
        if is_draw:
            return value > DRAWN * best and value - best > DRAWN_S * second
        return value > CLEARLY * best and not _touch(name, best_run, run)

    return [
        0
        if value is None or not is_clear(run, value)
        else min(SHADES, 1 + int(SHADES * (value - best) / (worst - best)))
        for run, value in zip(runs, values, strict=True)
    ]


def _touch(name: str, best: Run, other: Run) -> bool:
    """Whether the ranges of two designs' repeats touch; those of exact counts of one run never do."""
    if not (isinstance(best, RunOfRepeats) and isinstance(other, RunOfRepeats)):
        return False
    of_best, of_other = best.spreads.get(name), other.spreads.get(name)
    return of_best is not None and of_other is not None and of_other.low <= of_best.high


def _texts(name: str, run: Run, value: float | None) -> tuple[str, str]:
    """The figure and its range. Seconds have one decimal place: more of them differ by chance."""
    if value is None:
        return "", ""
    unit = METRICS[name].unit
    if unit not in ("s", "ms"):
        return number(value), spread_of(run, name)
    if name == "standstill_s" and not value:
        return unseen(run), ""
    factor = 1000.0 if unit == "ms" else 1.0
    spread = run.spreads.get(name) if isinstance(run, RunOfRepeats) else None
    low, high = (seconds(each / factor) for each in (spread.low, spread.high)) if spread else ("", "")
    return seconds(value / factor), "" if low == high else f"{low}-{high}"


def seconds(value: float) -> str:
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if value else "0"
