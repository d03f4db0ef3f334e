"""A run's raw events for the page's script, which shows those around a moment that the reader pinned.

They are compressed: as text they would take more room than all drawings. Without the script there are none to pin.
"""

from __future__ import annotations

import base64
import gzip
import shlex
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

#: Events of one run, for so many bars of its lanes.
EVENTS_PER_MARK, EVENTS_MAX = 0.5, 2_000


class RawEvents(NamedTuple):
    """`packed` is base64 of gzip of JSON: [milliseconds from the left end, who, partitions, text] for each event."""

    packed: str
    path: str  #: of the run, as a command has it


def raw_events(view: RunView, scale: Scale, marks_max: int) -> RawEvents:
    """Of too many, those that say most, and of these the first."""
    most = min(EVENTS_MAX, int(marks_max * EVENTS_PER_MARK))
    kept = sorted(sorted(view.events, key=lambda each: (each.rank, each.at_ms))[:most], key=lambda each: each.at_ms)
    rows = [
        (round(each.at_ms - scale.zero_ms - scale.from_ms, 3), each.who, each.partitions, each.text) for each in kept
    ]
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(rows), mtime=0)).decode()
    return RawEvents(packed, shlex.quote(view.path))
