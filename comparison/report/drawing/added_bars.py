"""Where the time went until added partitions were delivered from: a bar for each design, all from 0 on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.chart import Chart, Entry
from comparison.report.drawing.layout import PHASE, Bars, Block, Label, Row
from comparison.report.drawing.phase_bars import millisecond_axis
from comparison.report.drawing.scale import Scale
from comparison.report.summaries.additions import PARTS
from comparison.report.summaries.figures import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.summaries.additions import Addition

_LINE, _BAR = 20, 9


def added_bars(additions: Sequence[Addition]) -> Chart | None:
    """None if no partitions were added."""
    shown = [each for each in additions if each.parts]
    if not shown:
        return None
    longest_ms = max(sum(each.parts.values()) for each in shown)
    scale = Scale(0.0, 0.0, max(1.0, longest_ms) * 1.2)  # with room for the length behind the longest
    block, drawn = Block("bars", _title(shown), as_strokes=True), Bars(scale)
    for each in shown:
        row = Row(block.height + 5, _BAR, each.design, PHASE)
        block.name(each.design, block.height + 14)
        at_ms = 0.0
        for name, ms in each.parts.items():
            drawn.add(at_ms, at_ms + ms, row, f"p-{name}", name)
            at_ms += ms
        lasted = f"{at_ms:,.0f} ms" + ("" if each.total_ms is not None else " at least")
        block.labels.append(Label("mk", scale.unit(at_ms), block.height + 14, lasted, dx=4))
        block.height += _LINE
    drawn.laid_into(block, 10_000)
    used = [name for name in PARTS if any(name in each.parts for each in shown)]
    return Chart(
        kind="bars",
        title="Until the added partitions were read",
        note="From the change until the last new partition was delivered from. Members are in different phases at the "
        "same time; the one that is furthest behind counts, since the group waits for it.",
        block=block,
        axis=millisecond_axis(scale, "Milliseconds since the partitions were added"),
        legend=[Entry(f"{name}: {PARTS[name]}", f"p-{name}", "phase") for name in used],
        headings=("design", "ms in all", *used),
        rows=[
            [each.design, number(each.total_ms, whole=True), *(number(each.parts.get(name)) for name in used)]
            for each in shown
        ],
        is_timed=False,
        length=scale.length_ms,
    )


def _title(shown: Sequence[Addition]) -> str:
    totals = ", ".join(f"{sum(each.parts.values()):,.0f} ms in {each.design}" for each in shown)
    return f"Time until the added partitions were read: {totals}. The table below says the same."
