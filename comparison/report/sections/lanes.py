"""The lanes of a scenario: the designs below each other, on one axis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.added_bars import added_bars
from comparison.report.drawing.figure import HEADINGS, figure
from comparison.report.drawing.palette import PHASES, styles
from comparison.report.drawing.scale import scales
from comparison.report.sections.charts import charts
from comparison.report.sections.evidence import anchor_of
from comparison.report.sections.raw_events import raw_events
from comparison.report.sections.sequences import lines_for, sequences
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.drawing.chart import Chart
    from comparison.report.drawing.figure import Figure
    from comparison.report.sections.raw_events import RawEvents
    from comparison.report.sections.sequences import Sequences
    from comparison.report.summaries.additions import Addition
    from comparison.report.view.model import PartitionView, RunView

#: Lanes of a run; a page with hundreds would be metres high.
LANES_MAX = 64
#: Bars that a whole page draws: so many make about two megabytes. A scenario's share is never less than MARKS_MIN.
PAGE_MARKS, MARKS_MIN, MARKS_MAX = 24_000, 200, 4_000


class Lanes(NamedTuple):
    """What the template draws; `members` are names with their classes."""

    anchor: str
    figures: Sequence[tuple[str, Figure]]  #: each with its anchor
    sequences: Mapping[str, Sequences | None]  #: by the same anchor
    events: Mapping[str, RawEvents]
    charts: Sequence[Chart]
    members: Sequence[tuple[str, str]]
    partitions: Sequence[str]
    phases: Sequence[str]
    length_ms: int
    from_ms: float
    headings: Sequence[str] = HEADINGS


def lanes(scenario: str, views: Sequence[RunView], marks_max: int, additions: Sequence[Addition] = ()) -> Lanes | None:
    """The lanes of a scenario's runs, with charts, one of them of added partitions; None if nothing was traced."""
    drawn = [thinned(view) for view in views if view.partitions]
    if not drawn:
        return None
    classes = styles(drawn)
    places = sorted({place for view in drawn for place in view.lanes}, key=natural)
    axes = scales(drawn)
    anchors = [anchor_of(scenario, view.design) for view in drawn]
    used = {each.phase for view in drawn for each in view.phases}
    return Lanes(
        anchor=anchor_of(scenario),
        figures=[
            (anchor, figure(view, scale, classes, marks_max))
            for anchor, view, scale in zip(anchors, drawn, axes, strict=True)
        ],
        sequences={
            anchor: sequences(anchor, view, scale, lines)
            for anchor, view, scale, lines in zip(anchors, drawn, axes, lines_for(len(drawn), marks_max), strict=True)
        },
        events={
            anchor: raw_events(view, scale, marks_max) for anchor, view, scale in zip(anchors, drawn, axes, strict=True)
        },
        charts=[*([bars] if (bars := added_bars(additions)) else []), *charts(drawn, axes, classes, marks_max)],
        members=[(place, classes[place]) for place in places],
        partitions=sorted({lane.name for view in drawn for lane in view.partitions}, key=natural),
        phases=[each for each in PHASES if each in used],
        length_ms=axes[0].length_ms,
        from_ms=axes[0].from_ms,
    )


def thinned(view: RunView) -> RunView:
    """With LANES_MAX partitions at most: those to look at first, and some of the others, evenly."""
    lanes = view.partitions
    if len(lanes) <= LANES_MAX:
        return view
    worst = sorted(lanes, key=_to_look_at, reverse=True)[: LANES_MAX // 2]
    others = [lane for lane in lanes if lane not in worst]
    step = len(others) / (LANES_MAX - len(worst))
    kept = {lane.name for lane in worst} | {others[int(n * step)].name for n in range(LANES_MAX - len(worst))}
    left_out = {**view.left_out, "partitions": len(lanes) - len(kept)}
    return replace(view, partitions=tuple(lane for lane in lanes if lane.name in kept), left_out=left_out)


def _to_look_at(lane: PartitionView) -> tuple[int, int, float]:
    """The more, the rather: overlaps, commits that were refused or moved the offset back, the longest gap."""
    odd = sum(not each.is_accepted or each.moved_back_by > 0 for each in lane.commits)
    gaps = [*lane.unnamed, *lane.unclaimed]
    return len(lane.overlaps), odd, max((each.length_ms for each in gaps), default=0.0)


def marks_for(count: int) -> int:
    """How many bars a block may have when a page draws `count` runs."""
    return max(MARKS_MIN, min(MARKS_MAX, PAGE_MARKS // max(1, count)))
