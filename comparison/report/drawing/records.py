"""Charts of a run's course: records delivered, delivered again, and the lag, as curves over time."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.chart import Chart, Entry, Plot, add_plot, common_scale, in_designs, rows_of_windows
from comparison.report.drawing.course import TICKS_FEW, axis
from comparison.report.drawing.layout import IDLE, Bars, Block, Label, Row, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.view.model import Interval

#: Steps of a curve: a share of the bars that a block may have.
STEPS_MIN, STEPS_MAX, MARKS_A_STEP = 40, 300, 2
#: The rush after a stall may exceed the scale, because otherwise the rest would be invisible.
_CUT_ABOVE, _USUAL = 4, 2
#: A pause that one notices, and one with room for its length.
IDLE_MS_MIN, _LABELLED_SHARE = 500.0, 0.045
_STRIP = 8


class Span(NamedTuple):
    """Some intervals of a run's course together; `lag` and `undelivered` are the largest."""

    from_ms: float
    until_ms: float
    delivered: int
    duplicates: int
    undelivered: int
    lag: int

    def a_second(self, records: int) -> int:
        return round(1000 * records / (self.until_ms - self.from_ms))


def together(intervals: Sequence[Interval]) -> Span:
    return Span(
        intervals[0].from_ms,
        intervals[-1].until_ms,
        sum(each.delivered for each in intervals),
        sum(each.duplicates for each in intervals),
        max(each.undelivered or 0 for each in intervals),
        max(each.lag or 0 for each in intervals),
    )


def spans(panel: Panel) -> list[Span]:
    """The course in as many steps as may be drawn."""
    course = panel.view.course
    most = max(STEPS_MIN, min(STEPS_MAX, panel.marks_max // MARKS_A_STEP))
    size = -(-len(course) // most) or 1
    return [together(course[start : start + size]) for start in range(0, len(course), size)]


def delivered(panels: Sequence[Panel]) -> Chart | None:
    """Records a second, of the whole group; where nothing is delivered, the whole group stands still."""
    drawn = [(panel, spans(panel)) for panel in panels if any(each.delivered for each in panel.view.course)]
    if not drawn:
        return None
    rates = [each.a_second(each.delivered) for _, of_run in drawn for each in of_run if each.delivered]
    usual = max(1, round(_USUAL * median(rates)))
    top = usual if max(rates) > _CUT_ABOVE / _USUAL * usual else max(rates)
    block = Block("records", f"Records per second delivered by the whole group, {in_designs(drawn)}")
    idle_bars = Bars(common_scale(panels))
    for panel, of_run in drawn:
        steps = [Step(each.from_ms, each.until_ms, each.a_second(each.delivered)) for each in of_run]
        add_plot(block, panel, (0, top), [Plot("delivered a second", "area got", steps)], [f"0 to {top:,}"])
        _idle(block, panel, idle_bars)
    idle_bars.laid_into(block, panels[0].marks_max)
    cut = " Higher values are cut off." if max(rates) > top else ""
    return Chart(
        kind="records",
        title="Records over time",
        note=f"Records per second delivered by the whole group; {_step(drawn)}.{cut}",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=[
            Entry("delivered", "area got", "area"),
            Entry("nothing, though records waited", "idle", "bar"),
            Entry("while a fault lasts", "band", "bar"),
        ],
        headings=_headings(panels),
        rows=_rows(panels, lambda span: f"{span.a_second(span.delivered):,}"),
    )


def again(panels: Sequence[Panel]) -> Chart | None:
    """Duplicates a second; None if there were none."""
    drawn = [(panel, spans(panel)) for panel in panels if panel.view.course]
    rates = [each.a_second(each.duplicates) for _, of_run in drawn for each in of_run]
    if not any(rates):
        return None
    top = max(rates)
    block = Block("duplicates", f"Records per second delivered again, {in_designs(drawn)}")
    for panel, of_run in drawn:
        total = sum(each.duplicates for each in of_run)
        steps = [Step(each.from_ms, each.until_ms, each.a_second(each.duplicates)) for each in of_run]
        plot = Plot("again a second", "area again", steps if total else ())
        add_plot(block, panel, (0, top), [plot], [f"0 to {top:,}", f"{total:,} in all"])
    return Chart(
        kind="duplicates",
        title="Duplicates over time",
        note=f"Records per second delivered again, by any member; {_step(drawn)}.",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=[Entry("delivered again", "area again", "area")],
        headings=_headings(panels),
        rows=_rows(panels, lambda span: f"{span.duplicates:,}"),
    )


def lag(panels: Sequence[Panel]) -> Chart | None:
    """What was acknowledged and not committed, and of it, what nobody had been handed yet."""
    drawn = [(panel, spans(panel)) for panel in panels if any(each.lag for each in panel.view.course)]
    if not drawn:
        return None
    top = max(each.lag for _, of_run in drawn for each in of_run)
    block = Block("lag", f"Lag: records that were acknowledged and not yet committed, {in_designs(drawn)}")
    for panel, of_run in drawn:
        behind = Plot("lag", "area lag", [Step(each.from_ms, each.until_ms, each.lag) for each in of_run])
        waiting = [Step(each.from_ms, each.until_ms, each.undelivered) for each in of_run]
        add_plot(block, panel, (0, top), [behind, Plot("not delivered", "area left", waiting)], [f"0 to {top:,}"])
    return Chart(
        kind="lag",
        title="Lag over time",
        note=f"Records behind the ends of the logs, the largest of each step; {_step(drawn)}.",
        block=block,
        axis=axis(panels[0], TICKS_FEW),
        legend=[Entry("not committed", "area lag", "area"), Entry("not delivered to anybody", "area left", "area")],
        headings=_headings(panels),
        rows=_rows(panels, lambda span: f"{span.lag:,}; {span.undelivered:,} not delivered" if span.lag else "0"),
    )


def _step(drawn: Sequence[tuple[Panel, Sequence[Span]]]) -> str:
    lengths = [of_run[0].until_ms - of_run[0].from_ms for _, of_run in drawn]
    return (
        f"a step is {max(lengths):,.0f} ms"
        if min(lengths) == max(lengths)
        else f"steps are up to {max(lengths):,.0f} ms"
    )


def _idle(block: Block, panel: Panel, bars: Bars) -> None:
    """A strip below the curve while nothing is delivered though records wait."""
    row = Row(block.height - 2, _STRIP - 1, panel.view.design, IDLE)
    for from_ms, until_ms in idle(panel.view.course):
        lasted = f"nothing for {(until_ms - from_ms) / 1000:.1f} s"
        zero_ms = panel.scale.zero_ms
        bars.add(from_ms - zero_ms, until_ms - zero_ms, row, "idle", lasted, is_labelled=False)
        if panel.scale.share(until_ms) - panel.scale.share(from_ms) >= _LABELLED_SHARE:
            block.labels.append(Label("mk", panel.scale.unit(from_ms), block.height - 6, lasted, dx=3))
    block.rows.append(row)
    block.height += _STRIP


def idle(course: Sequence[Interval]) -> Iterator[tuple[float, float]]:
    """Stretches of at least IDLE_MS_MIN in which nothing was delivered though records waited."""
    since: float | None = None
    last = max((place for place, each in enumerate(course) if each.delivered), default=-1)
    for place, each in enumerate(course):
        waits = each.undelivered > 0 if each.undelivered is not None else place < last
        if not each.delivered and waits:
            since = each.from_ms if since is None else since
            until_ms = each.until_ms
        elif since is not None:
            if until_ms - since >= IDLE_MS_MIN:
                yield since, until_ms
            since = None
    if since is not None and until_ms - since >= IDLE_MS_MIN:
        yield since, until_ms


def _headings(panels: Sequence[Panel]) -> list[str]:
    return ["seconds", *(panel.view.design for panel in panels)]


def _rows(panels: Sequence[Panel], text: Callable[[Span], str]) -> list[list[str]]:
    def cell(panel: Panel, low: int, high: int) -> str:
        inside = [each for each in panel.view.course if low <= each.from_ms - panel.scale.zero_ms < high]
        return text(together(inside)) if inside else ""

    return rows_of_windows(panels, cell)
