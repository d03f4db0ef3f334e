"""Raw events on a page: compressed, and bounded."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from comparison.report.drawing.scale import Scale
from comparison.report.sections.raw_events import EVENTS_PER_MARK, raw_events
from comparison.report.view.model import RawEvent
from tests.comparison.report.sections.run_views import empty_view


def unpacked(packed: str) -> list[Any]:
    found: list[Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def test_events_are_on_the_axis_of_the_lanes() -> None:
    view = empty_view(events=(RawEvent(2_500.25, "m1", ("t-0",), "zk_op op=create", 2),))
    assert unpacked(raw_events(view, Scale(2_000.0, -2_000.0, 8_000.0), 100).packed) == [
        [2500.25, "m1", ["t-0"], "zk_op op=create"]
    ]


def test_of_too_many_the_ones_that_say_most_are_kept_in_order() -> None:
    events = tuple(RawEvent(float(n), "m1", (), f"event {n}", 2 - n % 3) for n in range(9))
    kept = raw_events(empty_view(events=events), Scale(0.0, 0.0, 10.0), int(4 / EVENTS_PER_MARK))
    assert [text for _, _, _, text in unpacked(kept.packed)] == ["event 1", "event 2", "event 5", "event 8"]


def test_same_events_are_the_same_bytes() -> None:
    view = empty_view(events=(RawEvent(1.0, "m1", (), "x", 1),))
    assert len({raw_events(view, Scale(0.0, 0.0, 10.0), 100).packed for _ in range(3)}) == 1
