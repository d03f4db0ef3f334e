"""A layout of lanes, as data: rows, bars, marks and labels on a common time axis. Pure, and JSON with `as_data`.

Everything that is decided about a picture stands here and in the modules that fill a `Block`: which row a stretch is
in, which bars are too many, what is named and in which colours (`palette`). Two painters draw it: `svg` the still
picture, of a file and of a page without its script, and `painter.js` what changes as one zooms. They know pixels, and
therefore which labels fit: by LETTER, the same in both. Places are milliseconds from the left end of the axis, and
pixels from the top of the block.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.drawing.scale import Scale

#: Shares of the width below which the stretches that are too many are joined, and those where few are drawn.
_JOINED, _JOINED_OF_FEW, _FEW = 1 / 400, 1 / 150, 100
#: About the width of a letter, and of the plot on a desktop: what fits is decided for it.
LETTER, USUAL_WIDTH = 6.4, 900

#: What a bar of a row means, for the page's painter.
NAMED, DELIVERS, COMMITS, REBALANCES, PHASE = "n", "d", "c", "r", "p"
WAITS, IDLE = "w", "i"


class Row(NamedTuple):
    """Where the bars of a lane are: from `y`, `height` pixels; `what` is one of NAMED, DELIVERS, ..."""

    y: int
    height: int
    lane: str
    what: str


class Bar(NamedTuple):
    """A stretch of a lane's row."""

    from_: int
    until: int
    row: Row
    classes: str
    label: str  #: what it is; '' for one of which there is nothing to say
    is_labelled: bool  #: the label is written on it, where it fits

    def numbers(self, row: int) -> tuple[int, int, int]:
        return self.from_, self.until - self.from_, row if self.is_labelled else ~row


class Area(NamedTuple):
    """Behind the bars: a lane's `gap`; as high as the block a fault's `band`, or a line: `begin`, `heal`, `change`."""

    kind: str
    from_: int
    until: int
    hint: str
    y: int = 0
    height: int = 0


class Strip(NamedTuple):
    """Several members deliver the same partition: a frame around the bars from `y`, and a strip of OVERLAP below."""

    from_: int
    until: int
    y: int
    height: int
    lane: str
    who: str
    hint: str


#: The height of the strip with their names.
OVERLAP = 13


class Group(NamedTuple):
    """Lanes that belong together begin below this `heading`, whose line begins at `y`."""

    heading: str
    y: int


#: The height of a heading of lanes.
HEADING = 15


class Label(NamedTuple):
    """A text at a moment. Of `step`s that are too close the first is seen; an `at` is a tick of the axis."""

    kind: str
    at: int
    y: float
    text: str
    hint: str = ""
    dx: int = 0
    ends_there: bool = False


class Step(NamedTuple):
    """A value from a moment until another one."""

    from_ms: float
    until_ms: float
    value: int


class Curve(NamedTuple):
    """One line of whole values; where nothing is known, it has a gap. One with `area` is filled down to `base`."""

    name: str
    classes: str
    steps: Sequence[Step]
    base: int


class Curves(NamedTuple):
    """The curves of one design in a block, with the place of their box in it; values above `top` are cut off."""

    design: str
    y: int
    height: int
    top: int
    curves: Sequence[Curve]
    behind: Sequence[Area]


@dataclass(slots=True)
class Block:
    """Lanes below each other; `title` describes them to those who cannot see them."""

    kind: str
    title: str
    height: int = 0
    as_strokes: bool = False  #: bars are lines as broad as a row, which take less room and have no edge
    names: list[Label] = field(default_factory=list)  #: beside the lanes
    behind: list[Area] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)  #: where lanes end
    groups: list[Group] = field(default_factory=list)
    ticks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  #: upright strokes: moment and y, by class
    overlaps: list[Strip] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)

    def name(self, text: str, y: float, *, is_cut: bool = True) -> None:
        self.names.append(Label("", 0, y, cut(text) if is_cut else text))

    def by_class(self) -> dict[str, list[Bar]]:
        """The bars in the order in which they are painted: those of a class are one path."""
        found: defaultdict[str, list[Bar]] = defaultdict(list)
        for bar in self.bars:
            found[bar.classes].append(bar)
        return found

    def as_data(self) -> dict[str, Any]:
        """What the page's painter reads, in few characters.

        A lane is named in its first row. A bar is three numbers: its begin, its length, and its row, which is inverted
        (~row) if it has no label.
        """
        places = {row: place for place, row in enumerate(self.rows)}
        lanes = ["", *(row.lane for row in self.rows)]
        return {
            "rows": [
                [row.y, row.height, row.what, *([row.lane] if row.lane != before else [])]
                for row, before in zip(self.rows, lanes, strict=False)
            ],
            "bars": [
                [
                    bars[0].label if len({bar.label for bar in bars}) == 1 else [bar.label for bar in bars],
                    [number for bar in bars for number in bar.numbers(places.get(bar.row, 0))],
                ]
                for bars in self.by_class().values()
            ],
            "overlaps": [each[:-1] for each in self.overlaps],  # without their hints
            **({"groups": self.groups} if self.groups else {}),
            "labels": [(each.kind, each.at, each.y, each.ends_there) for each in self.labels],
            "curves": [
                [
                    f"{of.design}: {each.name}",
                    of.y,
                    of.y + of.height,
                    [number for step in each.steps for number in step],
                ]
                for of in self.curves
                for each in of.curves
            ],
        }


def cut(text: str, letters: int = 11) -> str:
    return text if len(text) <= letters else f"{text[: letters - 5]}…{text[-4:]}"


class Bars:
    """The bars of one block, whose number is bounded: the shortest are joined into grey ones, and counted."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._bars: list[Bar] = []

    def add(
        self, from_ms: float, until_ms: float, row: Row, classes: str, label: str, *, is_labelled: bool = True
    ) -> None:
        from_ = min(self._scale.unit(from_ms), self._scale.length_ms - 1)
        self._bars.append(Bar(from_, max(from_ + 1, self._scale.unit(until_ms)), row, classes, label, is_labelled))

    def laid_into(self, block: Block, most: int) -> int:
        """The longest are kept if they are more than `most`; how many were joined instead."""
        kept = sorted(self._bars, key=lambda bar: bar.from_ - bar.until)
        joined = kept[most:]
        block.bars += sorted(kept[:most], key=lambda bar: (bar.row.y, bar.from_))
        if joined:
            distance = round(self._scale.length_ms * (_JOINED if most > _FEW else _JOINED_OF_FEW))
            block.bars += _joined(joined, max(1, distance))
        return len(joined)


def _joined(bars: Iterable[Bar], distance: int) -> list[Bar]:
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: (bar.row, bar.from_)):
        if found and found[-1].row == bar.row and bar.from_ - found[-1].until <= distance:
            found[-1] = found[-1]._replace(until=max(found[-1].until, bar.until))
        else:
            found.append(bar._replace(classes="many", label="several", is_labelled=False))
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
