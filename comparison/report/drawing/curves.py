"""Curves over time in a block: steps in milliseconds and in the values themselves, so that a page can read them.

A curve is one path in a box as high as its largest value, which is stretched to the height of the plot. Thousands of
values are one element, and the page's script says what each is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.panel import MOMENT_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.drawing.panel import Panel
    from comparison.report.drawing.scale import Scale


class Step(NamedTuple):
    """A value from a moment on the run's clock until another one."""

    from_ms: float
    until_ms: float
    value: int


class Curve(NamedTuple):
    """One line; `name` says what its values are, `base` is added to each to have them."""

    name: str
    classes: str
    d: str
    base: int


class Curves(NamedTuple):
    """The curves of one design in a block, with the place of their box in it; values above `top` are cut off."""

    design: str
    y: int
    height: int
    top: int
    curves: Sequence[Curve]
    behind: Sequence[tuple[str, str]]  #: classes and path of what is behind them


def marks_behind(panel: Panel, top: int) -> list[tuple[str, str]]:
    """The faults and changes of a run, as `comparison.report.drawing.panel` has them, in few paths."""
    view, scale = panel.view, panel.scale
    found: dict[str, list[str]] = {"band": [], "begin": [], "heal": [], "change": []}
    for fault in view.faults:
        begin = scale.unit(fault.from_ms)
        until_ms = view.ended_ms if fault.healed_ms is None else fault.healed_ms
        if until_ms - fault.from_ms > MOMENT_MS:
            found["band"].append(f"M{begin} 0H{scale.unit(until_ms)}V{top}H{begin}z")
            if fault.healed_ms is not None:
                found["heal"].append(f"M{scale.unit(until_ms)} 0V{top}")
        found["begin"].append(f"M{begin} 0V{top}")
    found["change"] = [f"M{scale.unit(change.at_ms)} 0V{top}" for change in view.changes]
    return [(classes, "".join(dict.fromkeys(places))) for classes, places in found.items() if places]


def curve(name: str, classes: str, steps: Iterable[Step], scale: Scale, top: int, *, base: int = 0) -> Curve:
    """Steps in order; where nothing is known, the curve has a gap. Filled down to `base` by classes with `area`."""
    is_area = "area" in classes.split()
    found: list[str] = []
    at, y = -1, top
    for step in steps:
        from_, until = scale.unit(step.from_ms), scale.unit(step.until_ms)
        if until <= from_:
            continue
        height = top - (step.value - base)
        if from_ != at:
            found.append(_closed(top, found, is_area=is_area) + f"M{from_} {top if is_area else height}")
            y = top if is_area else height
        if height != y:
            found.append(f"v{height - y}")
        found.append(f"h{until - from_}")
        at, y = until, height
    return Curve(name, classes, "".join(_joined(found)) + _closed(top, found, is_area=is_area), base)


def _closed(top: int, found: Sequence[str], *, is_area: bool) -> str:
    return f"V{top}z" if is_area and found else ""


def _joined(commands: Iterable[str]) -> list[str]:
    """Neighbouring moves to the right as one."""
    found: list[str] = []
    for each in commands:
        if each.startswith("h") and found and found[-1].startswith("h"):
            found[-1] = f"h{int(found[-1][1:]) + int(each[1:])}"
        else:
            found.append(each)
    return found
