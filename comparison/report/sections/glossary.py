"""What every row and every column of the figures means: at the end of the page, and where they are pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.results.metrics import CHANGE_METRICS, METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The last column of the table of changes, and what it has.
COUNTED = "counted (model)"
_COUNTED = "exact counts; in brackets what the model of the design predicts, = where it is the same"


class Entry(NamedTuple):
    """A row's label, under that of the row that it is a part of."""

    label: str
    meaning: str
    unit: str = ""


def glossary() -> list[Entry]:
    """Every row of the figures, and every column of the table of changes."""
    found, whole = [], ""
    for metric in METRICS.values():
        whole = whole if metric.is_part else metric.label
        if metric.label:
            shown = f"{whole.partition(',')[0]}: {metric.label}" if metric.is_part else metric.label
            found.append(Entry(shown, metric.meaning, metric.unit))
    return [*found, *(Entry(f"each change: {heading}", meaning) for heading, meaning in of_changes().items())]


def of_changes() -> Mapping[str, str]:
    """The meaning of each column of the table of changes, by heading."""
    known = {metric.heading: metric.meaning for metric in CHANGE_METRICS.values() if metric.heading}
    return {**known, COUNTED: _COUNTED}


def of_rows() -> Mapping[str, str]:
    """The meaning of each row, by its label."""
    return {metric.label: metric.meaning for metric in METRICS.values() if metric.label}
