"""How long each member stood still in each rebalance, and in which phase: bars from 0, all designs on one scale."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.chart import Chart, Entry, round_of
from comparison.report.drawing.course import AXIS
from comparison.report.drawing.layout import PHASE, Bars, Block, Label, Row
from comparison.report.drawing.scale import Scale
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import Phase, Rebalance

#: Bars of a design, fewer where there are many designs or few bars may be drawn; the others are shorter.
BARS_MAX, BARS_MIN, MARKS_A_BAR = 16, 4, 18
_HEAD, _LINE, _TICKS = 14, 12, 8


class Bar(NamedTuple):
    """One member's rebalance; `number` is the group's, `place` its place in the order of those."""

    place: int
    number: str
    rebalance: Rebalance
    phases: Sequence[Phase]


def phase_bars(panels: Sequence[Panel]) -> Chart | None:
    """None if no member had a rebalance."""
    most = max(BARS_MIN, min(BARS_MAX, 3 * BARS_MAX // len(panels), panels[0].marks_max // MARKS_A_BAR))
    found = [(panel, bars_of(panel)) for panel in panels]
    shown = [(panel, _longest(bars, most)) for panel, bars in found if bars]
    if not shown:
        return None
    longest_ms = max(bar.rebalance.length_ms for _, bars in shown for bar in bars)
    scale = Scale(0.0, 0.0, max(1.0, longest_ms) * 1.2)  # with room for the length behind the longest
    left_out = [f"{len(bars) - most:,} in {panel.view.design}" for panel, bars in found if len(bars) > most]
    block, drawn = Block("bars", _title(shown), as_strokes=True), Bars(scale)
    for panel, bars in shown:
        _add(block, drawn, panel.view.design, bars, scale)
    drawn.laid_into(block, 10_000)
    return Chart(
        kind="bars",
        title="Phases of each rebalance",
        note="One bar per member and rebalance (its number stands before the member), from the first change or fault "
        "on; gaps are waits between two attempts.",
        block=block,
        axis=millisecond_axis(scale, "Milliseconds since the start of each rebalance"),
        legend=[Entry(name, f"p-{name}", "phase") for name in _used(shown)],
        headings=("design", "rebalance", "member", "ms in all", "ms by phase"),
        rows=[row for panel, bars in shown for row in _rows(panel, bars)],
        remarks=[f"Shorter ones left out: {', '.join(left_out)}."] if left_out else [],
        is_timed=False,
        length=scale.length_ms,
    )


def _title(shown: Sequence[tuple[Panel, Sequence[Bar]]]) -> str:
    longest = [
        f"{bar.rebalance.length_ms:,.0f} ms in {panel.view.design}"
        for panel, bars in shown
        for bar in [max(bars, key=lambda each: each.rebalance.length_ms)]
    ]
    return f"Rebalances of members by phase. The longest: {', '.join(longest)}. The table below says the same."


def _used(shown: Sequence[tuple[Panel, Sequence[Bar]]]) -> Iterable[str]:
    """The phases that are drawn, in their order."""
    return dict.fromkeys(each.phase for _, bars in shown for bar in bars for each in bar.phases)


def bars_of(panel: Panel) -> list[Bar]:
    """The rebalances since the first change or fault, or all if there were none since, in the group's order."""
    view = panel.view
    phases: defaultdict[str, list[Phase]] = defaultdict(list)
    for phase in view.phases:
        phases[phase.member].append(phase)
    found = []
    for each in [each for each in view.rebalances if each.until_ms >= view.zero_ms] or view.rebalances:
        inside = [one for one in phases[each.member] if each.from_ms <= one.from_ms and one.until_ms <= each.until_ms]
        found.append(Bar(*round_of(view, each), each, inside))
    return sorted(found, key=lambda bar: (bar.place, natural(bar.rebalance.member), bar.rebalance.from_ms))


def _longest(bars: Sequence[Bar], most: int) -> list[Bar]:
    kept = sorted(bars, key=lambda bar: -bar.rebalance.length_ms)[:most]
    return [bar for bar in bars if bar in kept]


def _add(block: Block, drawn: Bars, design: str, bars: Sequence[Bar], scale: Scale) -> None:
    block.name(design, block.height + 11)
    block.height += _HEAD
    for bar in bars:
        row = Row(block.height + 1, _LINE - 3, bar.rebalance.member, PHASE)
        block.name(f"{bar.number}: {bar.rebalance.member}", block.height + 10)
        start = bar.rebalance.from_ms
        for each in bar.phases:
            drawn.add(each.from_ms - start, each.until_ms - start, row, f"p-{each.phase}", each.phase)
        length_ms = bar.rebalance.length_ms
        block.labels.append(Label("mk", scale.unit(length_ms), block.height + 10, f"{length_ms:,.0f} ms", dx=4))
        block.height += _LINE


def millisecond_axis(scale: Scale, title: str) -> Block:
    """An axis of its own below bars that begin at 0."""
    block = Block("axis", title, height=AXIS)
    block.name("ms", 13)
    block.labels += [Label("at", at, 14, f"{1000 * float(text):,.0f}") for at, text in scale.ticks(_TICKS)]
    return block


def _rows(panel: Panel, bars: Iterable[Bar]) -> Iterator[list[str]]:
    for bar in bars:
        sums: defaultdict[str, float] = defaultdict(float)
        for each in bar.phases:
            sums[each.phase] += each.length_ms
        by_phase = ", ".join(f"{phase} {ms:,.0f}" for phase, ms in sums.items())
        yield [
            panel.view.design,
            bar.number,
            bar.rebalance.member,
            f"{bar.rebalance.length_ms:,.0f}",
            by_phase,
        ]
