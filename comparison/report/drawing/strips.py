"""One strip a design: which share of the partitions was delivered from over time, and what was done to the group.

The curve is the view `delivering` of the table `ownership`: a partition counts while a member delivers from it, from
the first to the last of its polls without a pause of more than a second or a change of its claim in between
(`comparison.ownership.fold`). That is exact to the poll, and unlike `course`, which sums the records of all partitions,
it shows a single partition that stands still. `segments` has the same stretches, counted; the lanes draw these too.
Partitions count from the moment on at which anybody first had them or should have.

A curve has STEPS steps at most, whatever the length of a run: each is the share of its time, over all partitions, in
which they were delivered from. It ends with the last delivery, or with the last moment at which records waited.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from comparison.report.drawing.chart import Chart, Entry, Plot, add_plot, common_scale, in_designs, rows_of_windows
from comparison.report.drawing.course import TICKS_FEW, axis, disturbances_named
from comparison.report.drawing.layout import IDLE, LETTER, Bars, Block, Label, Row, Step
from comparison.report.view.model import joined
from comparison.results.run import MOMENT_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import PartitionView, RunView

    Floats = NDArray[np.float64]

#: Steps of a curve.
STEPS = 240
#: About the width of a strip beside a table on a desktop, and on a phone, by the class of labels that fit only there.
_WIDTHS = {"wide": 480, "narrow": 260}
#: The height of a strip, of the marks below it, and of a line of words above it.
_PLOT, _MARKS, _WORDS = 18, 4, 12
#: The same words closer than so many pixels stand once, above the first strip that has them.
_SAME = 5


def strips(panels: Sequence[Panel]) -> Chart | None:
    """The strips of a scenario's runs, on one axis; None if nothing was delivered."""
    drawn = [(panel, steps) for panel in panels if (steps := list(_steps(panel)))]
    if not drawn:
        return None
    block = Block("strips", f"Share of the partitions delivered from over time, {in_designs(drawn)}")
    marks = Bars(common_scale(panels))
    said: dict[str, set[tuple[str, int]]] = {each: set() for each in _WIDTHS}
    for panel, steps in drawn:
        _words(block, panel, said)
        add_plot(block, panel, (0, 100), [Plot("% delivered from", "area got", steps)], [], _PLOT)
        _marks(block, panel, marks)
    marks.laid_into(block, STEPS * len(drawn))
    return Chart(
        kind="strips",
        title="Partitions delivered from",
        note="",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=list(_legend(panel.view for panel, _ in drawn)),
        headings=["seconds", *(panel.view.design for panel, _ in drawn)],
        rows=rows_of_windows([panel for panel, _ in drawn], _cell),
        is_timed=False,
        length=panels[0].scale.length_ms,
    )


def _legend(views: Iterable[RunView]) -> Iterator[Entry]:
    views = list(views)
    yield Entry("share of the partitions that are delivered from; full height: all", "area got", "area")
    if any((each.healed_ms or view.ended_ms) - each.from_ms > MOMENT_MS for view in views for each in view.faults):
        yield Entry("while a fault lasts", "band", "bar")
    if any(lane.overlaps for view in views for lane in view.partitions):
        yield Entry("below: two deliver the same partition", "both", "bar")
    if any(each.duplicates for view in views for each in view.course):
        yield Entry("below: records are delivered again", "late", "bar")


def _words(block: Block, panel: Panel, said: dict[str, set[tuple[str, int]]]) -> None:
    """What was done to the group, above its strip, unless it stands above an earlier one at the same place."""
    wide, narrow = (list(_fitting(panel, width, said[each])) for each, width in _WIDTHS.items())
    for at_ms, text, is_left in dict.fromkeys((*wide, *narrow)):
        place = at_ms, text, is_left
        kind = "ev" if place in wide and place in narrow else "ev wide" if place in wide else "ev narrow"
        label = Label(kind, panel.scale.unit(at_ms), block.height + _WORDS - 1, text, ends_there=is_left)
        block.labels.append(label)
    if wide or narrow:
        block.height += _WORDS


def _fitting(panel: Panel, width: int, said: set[tuple[str, int]]) -> Iterator[tuple[float, str, bool]]:
    """The words that fit into a width: when, what, and whether they end there."""
    free = 0.0
    for at_ms, text in _at_once(panel, width):
        x = panel.scale.share(at_ms) * width
        if any(text == other and abs(x - at) < _SAME for other, at in said):
            continue
        is_left = x + LETTER * len(text) > width
        begins = x - LETTER * len(text) if is_left else x
        if begins >= free:
            said.add((text, round(x)))
            yield at_ms, text, is_left
            free = begins + LETTER * (len(text) + 1)


def _at_once(panel: Panel, width: int) -> Iterator[tuple[float, str]]:
    """Faults and changes; what came at about the same moment together."""
    together: dict[int, tuple[float, list[str]]] = {}
    for at_ms, text in disturbances_named(panel.view):
        place = round(panel.scale.share(at_ms) * width / _SAME)
        together.setdefault(place, (at_ms, []))[1].append(text)
    for at_ms, texts in together.values():
        yield at_ms, ", ".join(sorted(set(texts)))


def _marks(block: Block, panel: Panel, marks: Bars) -> None:
    """Below a strip: while two deliver a partition, and while records are delivered again."""
    view, zero_ms = panel.view, panel.scale.zero_ms
    two = joined([(each.from_ms, each.until_ms) for lane in view.partitions for each in lane.overlaps])
    again = joined([(each.from_ms, each.until_ms) for each in view.course if each.duplicates])
    for stretches, classes, label in ((two, "both", "two deliver"), (again, "late", "delivered again")):
        if stretches:
            row = Row(block.height - 1, _MARKS, view.design, IDLE)
            for from_ms, until_ms in stretches:
                marks.add(from_ms - zero_ms, until_ms - zero_ms, row, classes, label, is_labelled=False)
            block.height += _MARKS + 1


# -- shares ------------------------------------------------------------------------------------------------------------


def _steps(panel: Panel) -> Iterator[Step]:
    """In percent, on the run's clock; empty if nothing was delivered."""
    ends_ms = _ends_ms(panel.view)
    if ends_ms is None:
        return
    scale = panel.scale
    edges = scale.zero_ms + scale.from_ms + np.linspace(0, scale.length_ms, STEPS + 1)
    edges = np.append(edges[edges < ends_ms], ends_ms)
    for (low, high), share in zip(pairwise(edges), shares(panel.view, edges), strict=True):
        if not np.isnan(share):
            yield Step(low, high, round(100 * share))


def _ends_ms(view: RunView) -> float | None:
    """When the last record was delivered, or still waited; None if none was delivered."""
    last_ms = max((each.until_ms for lane in view.partitions for each in lane.delivering), default=None)
    waited_ms = max((each.until_ms for each in view.course if each.undelivered), default=0.0)
    return None if last_ms is None else max(last_ms, waited_ms)


def shares(view: RunView, edges_ms: Floats) -> Floats:
    """Of each stretch between two edges, the share over all partitions in which they were delivered from.

    Not a number where there was no partition yet.
    """
    counted, delivered = np.zeros(len(edges_ms) - 1), np.zeros(len(edges_ms) - 1)
    for lane in view.partitions:
        begin_ms = _begin_ms(lane)
        counted += np.diff(np.maximum(edges_ms, begin_ms))
        stretches = joined((each.from_ms, each.until_ms) for each in lane.delivering)
        if stretches:
            places = np.array(stretches).ravel()  # begin, end, begin, ...
            lengths = np.diff(places)
            lengths[1::2] = 0  # between two of them
            delivered += np.diff(np.interp(edges_ms, places, np.append(0.0, np.cumsum(lengths))))
    with np.errstate(invalid="ignore"):
        return delivered / np.where(counted > 0, counted, np.nan)


def _begin_ms(lane: PartitionView) -> float:
    """When anybody first had the partition, or should have."""
    stretches = (*lane.named[:1], *lane.delivering[:1], *lane.unnamed[:1], *lane.unclaimed[:1])
    return min((each.from_ms for each in stretches), default=0.0)


def _cell(panel: Panel, low: int, high: int) -> str:
    zero_ms, ends_ms = panel.scale.zero_ms, _ends_ms(panel.view) or 0.0
    edges = np.array([low + zero_ms, min(high + zero_ms, ends_ms)])
    share = shares(panel.view, edges)[0] if edges[1] > edges[0] else np.nan
    return "" if np.isnan(share) else f"{100 * share:.0f}%"
