"""The records that a group delivers over time; at zero, the whole group has stopped.

Drawn as a line of letters for the terminal, and as a picture with one time axis for all designs.
"""

from __future__ import annotations

from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from comparison.report.figures import number
from comparison.report.markup import Shape, drawing, line, path, rect, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

SLOW = "slow-member"
_FAULT = "slow"
#: From few to many; an empty bin has its own letter.
_LETTERS = "▁▂▃▄▅▆▇█"
_NOTHING = "_"
#: The top of the scale, as a multiple of the median.
_USUAL = 2
#: A wait shorter than this is an ordinary round.
_WAIT_MS_MIN = 1_000.0

WIDTH, GUTTER, RIGHT = 1000, 92, 16
TOP, LANE, PLOT, FOOT = 40, 74, 52, 40
_BEFORE_S = 1.0  #: shown before the first change
_TICKS_MAX = 12
_BAR_COLOUR, _NOTHING_COLOUR, _FAULT_COLOUR, _MARK_COLOUR = "#0072B2", "#D55E00", "#F0E442", "#CC0000"


def sparkline(run: Mapping[str, Any], letters: int) -> tuple[str, float] | None:
    """The group's records since a member slowed down, in at most `letters` letters, and the ms per letter."""
    delivery = run["delivery"]
    slow = next((change for change in run["changes"] if change["change"] == _FAULT), None)
    if delivery is None or slow is None:
        return None
    first = max(0, int((slow["from_ms"] - delivery["from_ms"]) // delivery["bin_ms"]))
    records = delivery["records"][first:]
    if not records:
        return None
    together = -(-len(records) // letters)
    sums = [sum(records[start : start + together]) for start in range(0, len(records), together)]
    most = _top([sums])
    line = "".join(
        _NOTHING if not each else _LETTERS[min(len(_LETTERS) - 1, each * len(_LETTERS) // (most + 1))] for each in sums
    )
    return line, together * delivery["bin_ms"]


def _top(lines: Sequence[Sequence[int]]) -> int:
    """The top of the scale; the rush after a stall may exceed it, because otherwise the rest would be invisible."""
    delivered = [count for line in lines for count in line if count]
    return max(1, round(_USUAL * median(delivered))) if delivered else 1


def describe_waits(run: Mapping[str, Any]) -> str:
    """Say who waited for whom, and how long nothing was delivered."""
    slow = next((change for change in run["changes"] if change["change"] == _FAULT), None)
    stalled = f"nothing delivered for {number(run['metrics']['stalled_s'])} s"
    if slow is None:
        return f"no member was slowed down; {stalled}"
    waits = [
        f"{each['waiting']} members waited {each['longest_ms'] / 1000:.1f} s for {each['waited_for']}"
        f"{' (which never joined)' if each['gone'] else ''}"
        for each in run["waits"]
        if each["from_ms"] >= slow["from_ms"] and each["longest_ms"] >= _WAIT_MS_MIN
    ]
    return f"{slow['target']} is slow; {', '.join(waits) or 'no member waited'}; {stalled}"


def chart(runs: Sequence[Mapping[str, Any]]) -> Markup | None:
    """An SVG picture: a lane for each design, aligned at its first change; None when nothing was delivered."""
    lanes = [_Lane(run) for run in runs if run["delivery"] is not None]
    if not lanes:
        return None
    end_s = max(lane.end_s for lane in lanes)
    most = _top([lane.records for lane in lanes])
    height = TOP + LANE * len(lanes) + FOOT
    what = "Records that the whole group delivered in each 100 ms"
    scale = f"{what} (scale: 0 to {most}; higher bars are cut off). Seconds since the first change or fault."
    parts = [
        text(scale, GUTTER, 14, class_="legend"),
        rect(GUTTER, 21, 10, 10, fill=_NOTHING_COLOUR),
        text("nothing delivered", GUTTER + 15, 30, class_="legend"),
        rect(GUTTER + 125, 21, 10, 10, fill=_FAULT_COLOUR, fill_opacity="0.45"),
        text("while a fault lasts", GUTTER + 140, 30, class_="legend"),
    ]
    parts += _axis(end_s, height)
    for place, lane in enumerate(lanes):
        parts += lane.drawn(TOP + LANE * place, end_s, most)
    return drawing(what, parts, (WIDTH, height), class_="chart")


class _Lane:
    """One run's records, in seconds since its first change."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        delivery = run["delivery"]
        self._run = run
        self._bin_s = delivery["bin_ms"] / 1000
        self._zero_ms = min((change["from_ms"] for change in _shown(run)), default=delivery["from_ms"])
        skipped = max(0, ceil((self._zero_ms - delivery["from_ms"]) / delivery["bin_ms"] - _BEFORE_S / self._bin_s))
        self.records = delivery["records"][skipped:] or [0]
        self._begin_s = (delivery["from_ms"] - self._zero_ms) / 1000 + skipped * self._bin_s
        self.end_s = self._begin_s + len(self.records) * self._bin_s

    def drawn(self, y: int, end_s: float, most: int) -> list[Shape]:
        bottom = y + PLOT + 16
        parts = [text(self._run["design"], GUTTER - 8, bottom - 20, text_anchor="end", class_="lane")]
        parts += self._faults(y + 16, bottom, end_s)
        parts += self._nothing(y + 16, end_s)
        bars = "".join(
            f"M{_x(self._begin_s + place * self._bin_s, end_s):.1f} {bottom}v-{PLOT * min(1.0, count / most):.1f}"
            for place, count in enumerate(self.records)
            if count
        )
        width = max(1.0, _x(self._bin_s, end_s) - _x(0.0, end_s) - 0.3)
        parts.append(path(bars, stroke=_BAR_COLOUR, stroke_width=width, fill="none"))
        parts.append(line(GUTTER, bottom, WIDTH - RIGHT, bottom, class_="base"))
        return [*parts, *self._marks(y + 16, bottom, end_s)]

    def _nothing(self, top: int, end_s: float) -> list[Shape]:
        """A strip for consecutive empty bins, from the first change on."""
        parts: list[Shape] = []
        place = max(0, ceil(-self._begin_s / self._bin_s))
        while place < len(self.records):
            if self.records[place]:
                place += 1
                continue
            start = place
            while place < len(self.records) and not self.records[place]:
                place += 1
            from_s, until_s = (self._begin_s + each * self._bin_s for each in (start, place))
            x, end = _x(from_s, end_s), _x(until_s, end_s)
            lasted = f"{until_s - from_s:.1f} s"
            hint = f"nothing delivered for {lasted}"
            parts.append(rect(x, top + PLOT - 7, end - x, 7, fill=_NOTHING_COLOUR, hint=hint))
            if end - x > 40:
                parts.append(text(lasted, (x + end) / 2, top + PLOT - 12, text_anchor="middle", class_="mark"))
        return parts

    def _faults(self, top: int, bottom: int, end_s: float) -> list[Shape]:
        parts = []
        for change in self._run["changes"]:
            if change["healed_ms"] is not None:
                from_s = (change["from_ms"] - self._zero_ms) / 1000
                x, end = (_x(min(each, end_s), end_s) for each in (from_s, from_s + change["healed_ms"] / 1000))
                width, hint = max(1.0, end - x), change["change"]
                parts.append(rect(x, top, width, bottom - top, fill=_FAULT_COLOUR, fill_opacity="0.45", hint=hint))
        return parts

    def _marks(self, top: int, bottom: int, end_s: float) -> list[Shape]:
        """The starts of changes; of those close together only the first is labelled."""
        parts: list[Shape] = []
        free = 0.0
        for change in _shown(self._run):
            x = _x(min((change["from_ms"] - self._zero_ms) / 1000, end_s), end_s)
            name = change["change"] if change["round"] == 1 else f"{change['change']} {change['round']}"
            parts.append(line(x, top - 4, x, bottom, stroke=_MARK_COLOUR, stroke_dasharray="3 2", hint=name))
            if x >= free:
                parts.append(text(name, x + 3, top - 1, class_="mark"))
                free = x + 10 + 6.2 * len(name)
        return parts


def _shown(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [change for change in run["changes"] if change["change"] != "form"]


def _x(seconds: float, end_s: float) -> float:
    return GUTTER + (WIDTH - GUTTER - RIGHT) * (seconds + _BEFORE_S) / (end_s + _BEFORE_S)


def _axis(end_s: float, height: int) -> list[Shape]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if end_s / step <= _TICKS_MAX)
    parts = []
    for second in range(0, int(end_s) + 1, step):
        x = _x(second, end_s)
        parts.append(line(x, TOP, x, height - FOOT, class_="grid"))
        parts.append(text(f"{second}", x, height - FOOT + 16, text_anchor="middle", class_="legend"))
    return parts
