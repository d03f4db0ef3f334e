"""A block of a picture: lanes on a common time axis, in layers that a page can stretch.

- `names`: beside the lanes, never stretched.
- `under` and `over`: shapes at shares of the width, with text that keeps its form.
- `curves`: paths in milliseconds and values, stretched both ways (`drawing/curves.py`).
- `bars`: paths in milliseconds and pixels, stretched as a whole: thousands of bars in a few elements. A page finds a
  bar's lane by its height (`rows`).

`Bars` collects stretches by class, and bounds how many are drawn: the shortest are joined into grey ones, and counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.report.drawing.curves import Curves
    from comparison.report.drawing.scale import Scale

#: Shares of the width below which the stretches that are too many are joined, and those where few are drawn.
_JOINED, _JOINED_OF_FEW, _FEW = 1 / 400, 1 / 150, 100
#: About the width of a letter, and of the plot on a desktop: what fits is decided for it.
LETTER, USUAL_WIDTH = 6.4, 900
#: The height of a tick.
TICK = 6
#: On a plot narrower than this many pixels, names that would not fit are hidden.
NARROW_WIDTH = 380


#: What a bar of a row means, for the page's script.
NAMED, DELIVERS, COMMITS, REBALANCES, PHASE = "n", "d", "c", "r", "p"
WAITS, IDLE = "w", "i"


#: Between the labels of a path's bars.
SEPARATOR = "|"


class Row(NamedTuple):
    """Where the bars of a lane are: from `y`, `height` pixels; `what` is one of NAMED, DELIVERS, ..."""

    y: int
    height: int
    lane: str
    what: str


@dataclass(slots=True)
class Block:
    """Lanes below each other; `title` describes them to those who cannot see them."""

    kind: str
    title: str
    height: int = 0
    names: list[Shape] = field(default_factory=list)
    under: list[Shape] = field(default_factory=list)
    bars: list[Shape] = field(default_factory=list)
    over: list[Shape] = field(default_factory=list)
    labels: list[Shape] = field(default_factory=list)  #: of bars, over them
    narrow: list[Shape] = field(default_factory=list)  #: labels that do not fit on a narrow screen
    rows: list[Row] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)  #: where lanes end
    ticks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  #: upright strokes of `bars`, by class
    curves: list[Curves] = field(default_factory=list)

    def data(self) -> str:
        """The rows for the page's script, without markup; a lane is named in its first one (script/block.js)."""
        lines: list[str] = []
        lane = None
        for row in self.rows:
            named = f"\t{plain(row.lane)}" if row.lane != lane else ""
            lines.append(f"{row.y}\t{row.height}\t{row.what}{named}")
            lane = row.lane
        return "\n".join(lines)

    def strokes(self, length_ms: int) -> list[Shape]:
        """The edges of lanes, and all ticks of a class as one path."""
        edges = {"class": "sep", "d": "".join(f"M0 {y}h{length_ms}" for y in self.edges)}
        ticks = [Shape("path", {"class": name, "d": _upright(places)}) for name, places in self.ticks.items() if places]
        return [*([Shape("path", edges)] if self.edges else []), *ticks]

    def name(self, text: str, y: float, *, is_cut: bool = True) -> None:
        self.names.append(Shape("text", {"x": "100%", "y": y}, cut(text) if is_cut else text))


def plain(text: str) -> str:
    return " ".join(text.split())


def cut(text: str, letters: int = 11) -> str:
    return text if len(text) <= letters else f"{text[: letters - 5]}…{text[-4:]}"


class Bar(NamedTuple):
    """A stretch of a lane's row, in milliseconds from the left end."""

    from_: int
    until: int
    row: Row
    classes: str
    label: str
    is_labelled: bool


class Bars:
    """The bars of one block."""

    def __init__(self, scale: Scale, *, as_strokes: bool = False) -> None:
        """`as_strokes`: as lines as broad as a row, which take less room and have no edge."""
        self._scale = scale
        self._as_strokes = as_strokes
        self._bars: list[Bar] = []

    def add(
        self, from_ms: float, until_ms: float, row: Row, classes: str, label: str, *, is_labelled: bool = True
    ) -> None:
        from_ = min(self._scale.unit(from_ms), self._scale.length_ms - 1)
        self._bars.append(Bar(from_, max(from_ + 1, self._scale.unit(until_ms)), row, classes, label, is_labelled))

    def drawn_into(self, block: Block, most: int) -> int:
        """Draw them, the longest first if they are more than `most`; how many were joined instead."""
        kept = sorted(self._bars, key=lambda bar: bar.from_ - bar.until)
        joined = kept[most:]
        kept = sorted(kept[:most], key=lambda bar: (bar.row.y, bar.from_))
        by_class: defaultdict[str, list[Bar]] = defaultdict(list)
        for bar in kept:
            by_class[bar.classes].append(bar)
        for classes, bars in by_class.items():
            labels = [bar.label for bar in bars]
            attributes = {"class": classes, "data-n": _together(labels), "d": self._path(bars)}
            block.bars.append(Shape("path", attributes, hint=labels[0] if len(set(labels)) == 1 else ""))
        if joined:
            distance = round(self._scale.length_ms * (_JOINED if most > _FEW else _JOINED_OF_FEW))
            grey = self._path(_joined(joined, max(1, distance)))
            block.bars.append(Shape("path", {"class": "many", "data-n": "several", "d": grey}, hint="several"))
        for bar in kept:
            self._label(bar, block)
        return len(joined)

    def _path(self, bars: Iterable[Bar]) -> str:
        places = ((bar.from_, bar.row.y, bar.until - bar.from_, bar.row.height) for bar in bars)
        return path_of(places, as_strokes=self._as_strokes)

    def _label(self, bar: Bar, block: Block) -> None:
        share = (bar.until - bar.from_) / self._scale.length_ms
        needed = (LETTER * len(bar.label) + 4) / share
        if needed > USUAL_WIDTH or bar.row.height < 8 or not bar.is_labelled:
            return
        at = f"{100 * bar.from_ / self._scale.length_ms:.2f}%"
        y = bar.row.y + (bar.row.height + 7) // 2
        (block.labels if needed <= NARROW_WIDTH else block.narrow).append(Shape("text", {"x": at, "y": y}, bar.label))


def _together(labels: list[str]) -> str:
    """The bars' labels in the order of the path; one label if it is that of all."""
    return labels[0] if len(set(labels)) == 1 else SEPARATOR.join(label.replace(SEPARATOR, " ") for label in labels)


def path_of(places: Iterable[tuple[int, int, int, int]], *, as_strokes: bool = False) -> str:
    """Rectangles as one path, each at a distance from the one before; `places` are x, y, width and height.

    A stroke begins where the last one ended, a rectangle where the last one began.
    """
    found = []
    at = 0, 0
    for x, y, width, height in places:
        move = f"m{x - at[0]} {y - at[1]}h{width}"
        found.append(move if as_strokes else f"{move}v{height}h-{width}z")
        at = (x + width if as_strokes else x), y
    return "".join(found)


def _upright(places: Iterable[tuple[int, int]]) -> str:
    found, at = [], (0, 0)
    for x, y in places:
        found.append(f"m{x - at[0]} {y - at[1]}v{TICK}")
        at = x, y + TICK
    return "".join(found)


def _joined(bars: Iterable[Bar], distance: int) -> list[Bar]:
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: (bar.row, bar.from_)):
        if found and found[-1].row == bar.row and bar.from_ - found[-1].until <= distance:
            found[-1] = found[-1]._replace(until=max(found[-1].until, bar.until))
        else:
            found.append(bar)
    return found


def packed(stretches: Iterable[tuple[float, float]], most: int) -> list[int]:
    """The row of each of some stretches, in order, so that those at the same time are below each other."""
    ends: list[float] = []
    rows = []
    for from_ms, until_ms in stretches:
        row = next((number for number, end in enumerate(ends) if end <= from_ms), len(ends))
        row = min(row, most - 1)
        ends[row : row + 1] = [max(until_ms, ends[row] if row < len(ends) else until_ms)]
        rows.append(row)
    return rows
