"""The lanes of a scenario: the designs below each other, on one axis."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.added_bars import added_bars
from comparison.report.drawing.figure import HEADINGS, figure
from comparison.report.drawing.lane_groups import OTHERS, lane_groups, opposite
from comparison.report.drawing.lanes import lane_heights
from comparison.report.drawing.palette import PHASES, styles
from comparison.report.drawing.scale import scales
from comparison.report.sections.charts import charts
from comparison.report.sections.pairs import RULE, worst_and_best
from comparison.report.sections.raw_events import raw_events
from comparison.report.sections.reasons import reasons
from comparison.report.sections.sequences import lines_for, sequences
from comparison.report.view.naming import names_explained
from comparison.screen.natural_order import natural
from kernel.platform.places import is_uri

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.drawing.chart import Chart
    from comparison.report.drawing.figure import Figure
    from comparison.report.drawing.lane_groups import LaneGroup
    from comparison.report.sections.raw_events import RawEvents
    from comparison.report.sections.reasons import Reasons
    from comparison.report.sections.sequences import Sequences
    from comparison.report.summaries.additions import Addition
    from comparison.report.view.model import PartitionView, RunView
    from comparison.results.run import Run

#: Lanes of a run; a page with hundreds would be metres high.
LANES_MAX = 64
#: Bars that a whole page draws: so many make about two megabytes. A scenario's share is never less than MARKS_MIN.
PAGE_MARKS, MARKS_MIN, MARKS_MAX = 24_000, 200, 4_000


class Column(NamedTuple):
    """A run that may stand opposite another one: the name says which it is, and the anchor is found in addresses."""

    anchor: str
    name: str
    view: RunView


class Lanes(NamedTuple):
    """What the template draws; `members` are names with their classes."""

    anchor: str
    figures: Sequence[tuple[Column, Figure]]  #: the first two are opposite each other, as the `rule` says
    order: Sequence[str]  #: the anchors of all in their own order
    names_of: Mapping[str, str]
    rule: str  #: '' if there are no more than two
    sequences: Mapping[str, Sequences | None]  #: by the same anchor
    events: Mapping[str, RawEvents]
    reasons: Mapping[str, Reasons]
    charts: Sequence[Chart]
    members: Sequence[tuple[str, str]]
    partitions: Sequence[str]
    names: Sequence[str]  #: what the parts of members' names mean, of those that there are
    victims: Sequence[str]  #: those of the n-th in each run, together: `m3` or `m3 / m1`
    phases: Sequence[str]
    length_ms: int
    from_ms: float
    headings: Sequence[str] = HEADINGS

    @property
    def replay(self) -> str:
        """The command that plays the first two event by event; '' for runs in a store."""
        paths = [column.view.path for column, _ in self.figures[:2]]
        if any(is_uri(path) or not path for path in paths):
            return ""
        return f"rebalance-lab report {' '.join(map(shlex.quote, paths))} --replay -o replay.html"


def lanes(
    anchor: str, columns: Sequence[Column], marks_max: int, runs: Sequence[Run], additions: Sequence[Addition] = ()
) -> Lanes | None:
    """The lanes of a scenario's runs, with charts, one of them of added partitions; None if nothing was traced.

    `runs` are those of the columns, in their order.
    """
    traced = [(column, run) for column, run in zip(columns, runs, strict=True) if column.view.partitions]
    if not traced:
        return None
    columns = [column._replace(view=thinned(column.view)) for column, _ in traced]
    drawn = [column.view for column in columns]
    classes = styles(drawn)
    places = sorted({place for view in drawn for place in view.lanes}, key=natural)
    axes = scales(drawn)
    needed = {lane: height for view in drawn for lane, height in lane_heights(view).items()}
    groups = opposite([lane_groups(view) for view in drawn], needed)
    figures = {
        column.anchor: (column, figure(column.view, scale, classes, marks_max, of_run))
        for column, scale, of_run in zip(columns, axes, groups, strict=True)
    }
    _as_high([each for _, each in figures.values()])
    first = [
        column.anchor
        for run in worst_and_best([run for _, run in traced]) or ()
        for column, its in traced
        if its is run
    ]
    by_anchor = [(column.anchor, column.view, scale) for column, scale in zip(columns, axes, strict=True)]
    shares = lines_for(len(drawn), marks_max)
    return Lanes(
        anchor=anchor,
        figures=[figures[each] for each in dict.fromkeys([*first, *figures])],
        order=list(figures),
        names_of={column.anchor: column.name for column in columns},
        rule=RULE if len(figures) > 2 else "",
        sequences={
            name: sequences(name, view, scale, lines)
            for (name, view, scale), lines in zip(by_anchor, shares, strict=True)
        },
        events={name: raw_events(view, scale, marks_max) for name, view, scale in by_anchor},
        reasons={name: reasons(view, scale, marks_max) for name, view, scale in by_anchor},
        charts=[*([bars] if (bars := added_bars(additions)) else []), *charts(drawn, axes, classes, marks_max)],
        members=[(place, classes[place]) for place in places],
        partitions=sorted({lane.name for view in drawn for lane in view.partitions}, key=natural),
        names=names_explained(drawn),
        victims=_victims(groups),
        phases=[each for each in PHASES if each in {phase.phase for view in drawn for phase in view.phases}],
        length_ms=axes[0].length_ms,
        from_ms=axes[0].from_ms,
    )


def _as_high(figures: Sequence[Figure]) -> None:
    """Let what is above the lanes be as high in all runs, and what is below them."""
    for kind in ("course", "phases"):
        blocks = [block for each in figures for block in each.blocks if block.kind == kind]
        for block in blocks:
            block.height = max(other.height for other in blocks)


def _victims(runs: Sequence[Sequence[LaneGroup]]) -> list[str]:
    """The headings of each group of a target: `m3’s`, or `m3’s / m1’s` where it is another one in another run."""
    by_key: dict[str, dict[str, None]] = {}
    for group in (group for groups in runs for group in groups if group.key != OTHERS):
        by_key.setdefault(group.key, {})[group.heading] = None
    return [" / ".join(heading for heading in headings if heading) for headings in by_key.values()]


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
