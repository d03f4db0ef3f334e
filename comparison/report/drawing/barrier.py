"""Who waited for whom: when each member joined a rebalance, who came last, and how long the others waited."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.report.drawing.chart import Chart, Entry, common_scale, rows_max
from comparison.report.drawing.course import TICKS_FEW, axis
from comparison.report.drawing.layout import WAITS, Bars, Block, Curves, Row
from comparison.report.drawing.panel import disturbances

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import Joined, Round

#: A shorter wait is an ordinary rebalance, and a chart without a longer one shows nothing.
WAIT_MS_MIN = 1_000.0
_HEAD, _LINE = 14, 13


def barrier(panels: Sequence[Panel]) -> Chart | None:
    """The designs with a coordinator; None if nobody waited long."""
    drawn = [panel for panel in panels if any(each.waited_ms >= WAIT_MS_MIN for each in panel.view.joined)]
    if not drawn:
        return None
    names = ", ".join(panel.view.design for panel in drawn)
    longest = max(each.waited_ms for panel in drawn for each in panel.view.joined)
    block = Block("barrier", f"Members waiting for each other in {names}, at most {longest / 1000:.1f} s")
    bars = Bars(common_scale(panels))
    for panel in drawn:
        _add(block, bars, panel)
    bars.laid_into(block, len(drawn) * drawn[0].marks_max)
    return Chart(
        kind="barrier",
        title="Who waited for whom",
        note="In a rebalance every member waits until the last one has joined. One lane per member.",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=[Entry("joined, and waits for the last", "wait", "bar"), Entry("the others wait for it", "late", "bar")],
        headings=("design", "rebalance", "began at s", "waited for", "who waited, in s"),
        rows=[row for panel in drawn for row in _rows(panel, rows_max(panels))],
    )


def _rounds(panel: Panel) -> Iterator[tuple[Round, list[Joined]]]:
    together: defaultdict[int, list[Joined]] = defaultdict(list)
    for one in panel.view.joined:
        together[one.number].append(one)
    for each in panel.view.rounds:
        if each.number in together:
            yield each, together[each.number]


def _add(block: Block, bars: Bars, panel: Panel) -> None:
    view, zero_ms = panel.view, panel.scale.zero_ms
    top = block.height
    block.name(view.design, top + 11)
    block.height += _HEAD
    rows: dict[str, Row] = {}
    for place in view.lanes:
        rows[place] = Row(block.height + 1, _LINE - 2, f"{view.design}, {place}", WAITS)
        block.name(place, block.height + 10)
        block.height += _LINE
        block.edges.append(block.height)
    block.rows += rows.values()
    height = block.height - top
    block.curves.append(Curves(view.design, top, height, height, (), list(disturbances(panel))))
    for each, joined in _rounds(panel):
        ends = [one.at_ms + one.waited_ms for one in joined if one.at_ms is not None]
        for one in joined:
            row = rows.get(view.places.get(one.member, one.member))
            if row is None:
                continue
            if one.is_waited_for:
                until_ms = one.at_ms if one.at_ms is not None else max(ends, default=each.from_ms)
                label = "joins last" if one.at_ms is not None else "never joins"
                if until_ms > each.from_ms:
                    bars.add(each.from_ms - zero_ms, until_ms - zero_ms, row, "late", label)
            elif one.at_ms is not None and one.waited_ms > 0:
                from_ms = one.at_ms - zero_ms
                bars.add(from_ms, from_ms + one.waited_ms, row, "wait", f"waits {one.waited_ms / 1000:.1f} s")


def _rows(panel: Panel, most: int) -> Iterator[list[str]]:
    """The rebalances with the longest waits."""
    found = [(each, joined, max(one.waited_ms for one in joined)) for each, joined in _rounds(panel)]
    longest = sorted(found, key=lambda item: -item[2])[:most]
    for each, joined, _ in sorted(longest, key=lambda item: item[0].number):
        last = [
            one.member + ("" if one.at_ms is not None else " (never joined)") for one in joined if one.is_waited_for
        ]
        waited = [f"{one.member} {one.waited_ms / 1000:.2f}" for one in joined if not one.is_waited_for]
        yield [
            panel.view.design,
            each.shown,
            f"{panel.scale.seconds(each.from_ms):.2f}",
            ", ".join(last),
            ", ".join(waited),
        ]
