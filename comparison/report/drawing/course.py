"""The course of a run above and below its lanes: faults and changes, generations, the members' phases, the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.layout import LETTER, PHASE, REBALANCES, USUAL_WIDTH, Bars, Block, Label, Row
from comparison.report.drawing.panel import disturbances
from comparison.results.run import MOMENT_MS

if TYPE_CHECKING:
    from comparison.report.drawing.panel import Panel
    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

_LINE, _STEP, _PHASE, AXIS = 14, 15, 9, 18
#: Ticks of an axis, and of one without much room: the page's script draws what fits.
TICKS_MAX, TICKS_FEW = 12, 7
#: Labels of faults and changes in so many lines; those that find no room keep their line and hint.
_LINES_MAX = 3


def course(panel: Panel) -> Block:
    """What was done to the group, and its generations."""
    view, scale = panel.view, panel.scale
    block = Block("course", f"Faults, changes and rebalances in {view.design}")
    labels = disturbances_named(view)
    free = [0.0] * _LINES_MAX
    for at_ms, label in labels:
        x = scale.share(at_ms) * USUAL_WIDTH
        is_left = x + LETTER * len(label) > USUAL_WIDTH
        if is_left:
            x -= LETTER * len(label) + 6
        line = next((number for number, end in enumerate(free) if end <= x), None)
        if line is not None:
            free[line] = x + LETTER * len(label) + 8
            y, dx = 11 + _LINE * line, -3 if is_left else 3
            block.labels.append(Label("ev", scale.unit(at_ms), y, label, dx=dx, ends_there=is_left))
    block.height = _LINE * max(1, sum(end > 0 for end in free)) + 2
    block.behind += disturbances(panel)
    block.name("done", 11)
    _steps(block, view, scale)
    return block


def disturbances_named(view: RunView) -> list[tuple[float, str]]:
    """When each fault began and ended and each change was made, in order."""
    found = []
    for fault in view.faults:
        name = f"{fault.fault} {fault.target}".strip()
        found.append((fault.from_ms, name))
        if fault.healed_ms is not None and fault.healed_ms - fault.from_ms > MOMENT_MS:
            name = "heal" if fault.fault == "cut" else f"end of {fault.fault}"
            found.append((fault.healed_ms, f"{name} after {fault.other_length}" if fault.other_length else name))
    return sorted({*found, *((change.at_ms, change.name) for change in view.changes)})


def _steps(block: Block, view: RunView, scale: Scale) -> None:
    """Each rebalance of the group, and the generation that it brought."""
    if not view.rounds:
        return
    numbered = any(each.generation is not None for each in view.rounds)
    block.name(view.numbered_by if numbered else "rebalances", block.height + 11)
    row = Row(block.height + 1, _STEP - 4, "the group", REBALANCES)
    bars = Bars(scale)
    for each in view.rounds:
        until_ms = view.ended_ms if each.until_ms is None else each.until_ms
        bars.add(each.from_ms, until_ms, row, "round", "rebalance", is_labelled=False)
        block.labels.append(Label("step", scale.unit(until_ms), block.height + 10, each.shown, dx=2))
    bars.laid_into(block, 10_000)
    block.rows.append(row)
    block.height += _STEP


def phases(panel: Panel) -> tuple[Block, int]:
    """What each member did in its rebalances; how many phases were too many to be drawn one by one."""
    view = panel.view
    block = Block("phases", f"Phases of the members' rebalances in {view.design}", as_strokes=True)
    block.behind += disturbances(panel)
    bars = Bars(panel.scale)
    rows = {}
    for place in view.lanes:
        rows[place] = Row(block.height + 1, _PHASE, place, PHASE)
        block.name(place, block.height + _PHASE)
        block.height += _PHASE + 2
    block.rows += rows.values()
    for each in view.phases:
        row = rows.get(view.places.get(each.member, each.member))
        if row is not None:
            bars.add(each.from_ms, each.until_ms, row, f"p-{each.phase}", each.phase)
    return block, bars.laid_into(block, panel.marks_max)


def axis(panel: Panel, ticks_max: int = TICKS_MAX) -> Block:
    """Seconds since the first change or fault."""
    block = Block("axis", "Seconds since the first change or fault", height=AXIS)
    block.name("s", 13)
    block.labels += [Label("at", at, 14, text) for at, text in panel.scale.ticks(ticks_max)]
    return block
