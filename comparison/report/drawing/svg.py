"""Paints a layout as the still SVG picture, for a plot of the usual width; `painter.js` does the same as it zooms.

Bars, curves and marks are stretched as a whole: thousands of them in a few elements, because a class is one path. Texts
stand at shares of the width and keep their form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from comparison.report.drawing.layout import HEADING, LETTER, OVERLAP, USUAL_WIDTH
from comparison.report.markup import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.report.drawing.layout import Area, Bar, Block, Curve, Curves, Label, Strip

#: On a plot narrower than this many pixels, names that would not fit are hidden.
NARROW_WIDTH = 380
#: The height of a tick of a commit, and of one of the axis.
_TICK, _AXIS_TICK = 6, 4
_LINES = ("begin", "heal", "change")


class Painted(NamedTuple):
    """A block as the templates have it: the texts beside it, and the layers of its plot."""

    block: Block
    length: int
    names: Sequence[Shape]  #: never stretched
    under: Sequence[Shape]
    curves: Sequence[tuple[Curves, Sequence[Shape]]]
    bars: Sequence[Shape]
    labels: Sequence[Shape]
    narrow: Sequence[Shape]  #: labels that do not fit on a narrow screen
    over: Sequence[Shape]
    data: Markup  #: for the page's painter, in an attribute with single quotes


def painted(block: Block, length: int) -> Painted:
    """A block whose axis has so many milliseconds."""
    labels, narrow = _labels(block, length)
    data = json.dumps(block.as_data(), ensure_ascii=False, separators=(",", ":"))
    return Painted(
        block=block,
        length=length,
        names=[
            *(
                Shape("text", {**({"class": kind} if kind else {}), "x": "100%", "y": y}, t)
                for kind, _, y, t, *_ in block.names
            ),
            *(Shape("text", {"class": "group", "x": "100%", "y": y + HEADING - 4}, text) for text, y in block.groups),
        ],
        under=[_behind(each, length) for each in block.behind],
        curves=[(of, [*_behind_curves(of), *(_curve(each, of.top) for each in of.curves)]) for of in block.curves],
        bars=[*_strokes(block, length), *_bars(block)],
        labels=labels,
        narrow=narrow,
        over=[*_texts(block.labels, length), *_overlaps(block.overlaps, length)],
        data=Markup(data.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;")),
    )


def painter() -> str:
    """The page's painter, as a JavaScript module, with the measures that it shares with this one."""
    text = Path(__file__).with_name("painter.js").read_text(encoding="utf-8")
    return f"export const LETTER = {LETTER};\nexport const OVERLAP = {OVERLAP};\n{text}"


def _share(at: float, length: int) -> str:
    return f"{100 * at / length:.3f}".rstrip("0").rstrip(".") + "%"


def _behind(each: Area, length: int) -> Shape:
    x = _share(each.from_, length)
    if each.kind in _LINES:
        return Shape("line", {"class": each.kind, "x1": x, "x2": x, "y2": "100%"}, hint=each.hint)
    place = {"x": x, "width": _share(each.until - each.from_, length)}
    rows = {"y": each.y, "height": each.height} if each.height else {"height": "100%"}
    return Shape("rect", {"class": each.kind, **place, **rows}, hint=each.hint)


# -- bars --------------------------------------------------------------------------------------------------------------


def _strokes(block: Block, length: int) -> Iterator[Shape]:
    """The edges of lanes, and all ticks of a class."""
    if block.edges:
        yield Shape("path", {"class": "sep", "d": "".join(f"M0 {y}h{length}" for y in block.edges)})
    for classes, places in block.ticks.items():
        if places:
            yield Shape("path", {"class": classes, "d": _upright(places)})
    if axis := [f"M{each.at} 0v{_AXIS_TICK}" for each in block.labels if each.kind == "at"]:
        yield Shape("path", {"class": "tick", "d": "".join(axis)})


def _upright(places: Iterable[tuple[int, int]]) -> str:
    found, x, y = [], 0, 0
    for at, top in places:
        found.append(f"m{at - x} {top - y}v{_TICK}")
        x, y = at, top + _TICK
    return "".join(found)


def _bars(block: Block) -> Iterator[Shape]:
    for classes, bars in block.by_class().items():
        hint = bars[0].label if len({bar.label for bar in bars}) == 1 else ""
        yield Shape("path", {"class": classes, "d": _path(bars, as_strokes=block.as_strokes)}, hint=hint)


def _path(bars: Iterable[Bar], *, as_strokes: bool) -> str:
    """Each at a distance from the one before: a stroke begins where the last one ended, a rectangle where it began."""
    found, x, y = [], 0, 0
    for bar in bars:
        width, row = bar.until - bar.from_, bar.row
        move = f"m{bar.from_ - x} {row.y - y}h{width}"
        found.append(move if as_strokes else f"{move}v{row.height}h-{width}z")
        x, y = (bar.until if as_strokes else bar.from_), row.y
    return "".join(found)


def _labels(block: Block, length: int) -> tuple[list[Shape], list[Shape]]:
    """The labels that fit on a narrow screen too, and the others."""
    found: tuple[list[Shape], list[Shape]] = ([], [])
    for bar in block.bars:
        needed = (LETTER * len(bar.label) + 4) * length / (bar.until - bar.from_)
        if bar.is_labelled and bar.row.height >= 8 and needed <= USUAL_WIDTH:
            y = bar.row.y + (bar.row.height + 7) // 2
            text = Shape("text", {"x": f"{100 * bar.from_ / length:.2f}%", "y": y}, bar.label)
            found[needed > NARROW_WIDTH].append(text)
    return found


# -- texts over them ---------------------------------------------------------------------------------------------------


def _texts(labels: Iterable[Label], length: int) -> Iterator[Shape]:
    free = 0.0
    for each in labels:
        classes, x = each.kind, each.at * USUAL_WIDTH / length
        if each.kind == "step":  # of those that are too close, the first
            classes += " crowded" if x < free else ""
            free = free if x < free else x + LETTER * len(each.text) + 4
        elif each.kind == "at":
            share = each.at / length
            classes += " first" if share < 0.02 else " last" if share > 0.98 else ""
        attributes: dict[str, object] = {"class": classes, "x": _share(each.at, length), "y": each.y}
        if each.ends_there:
            attributes["text-anchor"] = "end"
        if each.dx:
            attributes["dx"] = each.dx
        yield Shape("text", attributes, each.text, each.hint)


def _overlaps(overlaps: Iterable[Strip], length: int) -> Iterator[Shape]:
    """A red frame around the bars, and a strip below them with the members' names in it, or beside it."""
    free: dict[int, float] = {}
    for each in overlaps:
        low, high = _share(each.from_, length), each.until * USUAL_WIDTH / length
        place = {"x": low, "width": _share(each.until - each.from_, length)}
        foot = each.y + each.height
        yield Shape("rect", {"class": "frame", **place, "y": each.y, "height": each.height})
        yield Shape("rect", {"class": "both", **place, "y": foot, "height": OVERLAP}, hint=each.hint)
        room, beside = high - each.from_ * USUAL_WIDTH / length, LETTER * (len(each.who) + 2)
        fits = next((text for text in (f"two deliver: {each.who}", each.who) if LETTER * len(text) + 6 <= room), "")
        if fits:
            yield Shape("text", {"class": "bl", "x": low, "y": foot + OVERLAP - 3}, fits)
        elif free.get(each.y, 0.0) <= high < USUAL_WIDTH - beside:
            free[each.y] = high + beside
            yield Shape("text", {"class": "bo", "x": _share(each.until, length), "y": foot + OVERLAP - 3}, each.who)


# -- curves ------------------------------------------------------------------------------------------------------------


def _behind_curves(of: Curves) -> Iterator[Shape]:
    """The faults and changes behind curves, which are stretched with them, in few paths."""
    found: dict[str, list[str]] = {kind: [] for kind in ("band", *_LINES)}
    for each in of.behind:
        area = "" if each.kind in _LINES else f"H{each.until}V0z"
        found[each.kind].append(f"M{each.from_} 0V{of.top}{area}")
    for classes, places in found.items():
        if places:
            yield Shape("path", {"class": classes, "d": "".join(dict.fromkeys(places))})


def _curve(curve: Curve, top: int) -> Shape:
    """Steps in milliseconds and in the values themselves, in a box that is stretched to the height of the plot."""
    is_area = "area" in curve.classes.split()
    found: list[str] = []
    at, y = -1.0, top
    closed = f"V{top}z" if is_area and curve.steps else ""
    for from_, until, value in curve.steps:
        height = top - (value - curve.base)
        if from_ != at:
            y = top if is_area else height
            found.append((closed if found else "") + f"M{from_} {y}")
        if height != y:
            found.append(f"v{height - y}")
        found.append(f"h{until - from_}")
        at, y = until, height
    return Shape("path", {"class": curve.classes, "d": "".join(found) + closed})
