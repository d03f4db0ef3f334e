"""What every row and every column of the figures means: at the end of the page, and where they are pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.metrics import METRICS
from comparison.report.figures import CHANGE_COLUMNS, ROWS

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
    for name, label in ROWS:
        is_part = label.startswith(" ")
        whole = whole if is_part else label
        if name in METRICS:
            shown = f"{whole.partition(',')[0]}: {label.strip()}" if is_part else label
            found.append(Entry(shown, METRICS[name].meaning, METRICS[name].unit))
    return [*found, *(Entry(f"each change: {heading}", meaning) for heading, meaning in of_changes().items())]


def of_changes() -> Mapping[str, str]:
    """The meaning of each column of the table of changes, by heading."""
    known = {heading: METRICS[name].meaning for name, heading in CHANGE_COLUMNS if name in METRICS}
    return {**known, COUNTED: _COUNTED}


def of_rows() -> Mapping[str, str]:
    """The meaning of each row, by its label."""
    return {label.strip(): METRICS[name].meaning for name, label in ROWS if name in METRICS}
