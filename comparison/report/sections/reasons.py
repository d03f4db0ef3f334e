"""Why stretches of a run's lanes are hatched, red or idle, as rows of a table; the page's script finds them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from comparison.report.view.naming import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

#: Rows of a run, fewer where fewer bars are drawn: the longest stretches.
ROWS_MIN, ROWS_MAX, MARKS_A_ROW = 3, 30, 30


class Row(NamedTuple):
    """A stretch of some partitions; `place` is JSON: their names, its ends and its events' times on the axis in ms."""

    partitions: str
    when: str
    text: str
    place: str


class Reasons(NamedTuple):
    """The rows in the order of time."""

    rows: Sequence[Row]
    left_out: int  #: shorter ones


def reasons(view: RunView, scale: Scale, marks_max: int) -> Reasons:
    """Of the partitions that are drawn."""
    drawn = {lane.name for lane in view.partitions}
    there = [each for each in view.reasons if drawn & set(each.partitions)]
    most = max(ROWS_MIN, min(ROWS_MAX, marks_max // MARKS_A_ROW))
    kept = sorted(there, key=lambda each: -each.length_ms)[:most]
    rows = [
        Row(
            listed(each.partitions),
            f"{scale.seconds(each.from_ms):.2f}…{scale.seconds(each.until_ms):.2f}",
            each.text,
            msgspec.json.encode(
                {
                    "lanes": [name for name in each.partitions if name in drawn],
                    "from": scale.unit(each.from_ms),
                    "until": scale.unit(each.until_ms),
                    "at": list(dict.fromkeys(scale.unit(moment.at_ms) for moment in each.moments)),
                }
            ).decode(),
        )
        for each in sorted(kept, key=lambda each: each.from_ms)
    ]
    return Reasons(rows, len(there) - len(rows))
