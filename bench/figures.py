"""Figures of every run, for tables and a JSON file, and how ours compare with Kafka's."""

from __future__ import annotations

import dataclasses
import json
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

NOT_RUN = "not run"


@dataclass(frozen=True)
class Run:
    """One run of one side. `about` has what was varied, such as {"connections": 100}."""

    measure: str
    side: str
    about: Mapping[str, int]
    figures: Mapping[str, float]


@dataclass
class Figures:
    """All runs of one `make bench`."""

    statements: list[str] = field(default_factory=list)  #: what one must know to read the figures
    left_out: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def add(self, measure: str, side: str, about: Mapping[str, int], figures: Mapping[str, float]) -> None:
        self.runs.append(Run(measure, side, about, figures))

    def values(self, measure: str, side: str, about: Mapping[str, int], name: str) -> list[float]:
        """Values of one figure, in the order of the runs; empty if it was not run."""
        return [
            run.figures[name]
            for run in self.runs
            if (run.measure, run.side, run.about) == (measure, side, about) and name in run.figures
        ]

    def table(self, measure: str, title: str, sides: tuple[str, str], rows: Sequence[Row]) -> Table:
        """Medians and ranges of both `sides`, their ratio, and the target; what ours did not measure is left out."""
        made = table(title, "", *sides, f"{sides[0]} / {sides[1]}", "target", left=(0, 4))
        for row in rows:
            ours, theirs = (self.values(measure, side, row.about, row.name) for side in sides)
            if not ours:
                continue
            verdict = row.target
            if row.met is not None:
                met = row.met(statistics.median(ours), statistics.median(theirs) if theirs else None)
                verdict += {True: ": met", False: ": [bold]not met[/]", None: ": unknown"}[met]
            made.add_row(row.label, spread(ours, row.form), spread(theirs, row.form), ratio(ours, theirs), verdict)
        return made

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A line of a table: one figure, both sides."""

    label: str
    about: Mapping[str, int]
    name: str
    form: str = ",.0f"  #: format of the values
    target: str = ""
    #: Whether (median of ours, of Kafka's or None) meet the target; None: unknown.
    met: Callable[[float, float | None], bool | None] | None = None


def table(title: str, *columns: str, left: Sequence[int] = (0,)) -> Table:
    """An empty table. The columns at the places `left` are texts, the others numbers."""
    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place in left else "right")
    return made


def spread(values: Sequence[float], form: str) -> str:
    """The median and the range of a figure's runs."""
    if not values:
        return NOT_RUN
    median = f"{statistics.median(values):{form}}"
    return f"{median} ({min(values):{form}}-{max(values):{form}})" if len(values) > 1 else median


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Ratio of the medians, and the range of the ratios of neighbouring runs."""
    if not ours or not theirs or 0 in theirs:
        return NOT_RUN
    medians = statistics.median(ours) / statistics.median(theirs)
    single = [mine / other for mine, other in zip(ours, theirs, strict=False)]
    return f"{medians:.2f} ({min(single):.2f}-{max(single):.2f})" if len(single) > 1 else f"{medians:.2f}"


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the others is below; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def at_least(times: float) -> Callable[[float, float | None], bool | None]:
    """Relative to Kafka's."""
    return lambda ours, theirs: None if theirs is None else ours >= times * theirs


def at_most(times: float) -> Callable[[float, float | None], bool | None]:
    """Relative to Kafka's."""
    return lambda ours, theirs: None if theirs is None else ours <= times * theirs


def at_most_absolute(limit: float) -> Callable[[float, float | None], bool | None]:
    return lambda ours, _: ours <= limit
