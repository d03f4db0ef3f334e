"""Draw `diagrams/history.svg`, the timeline of `history.md`."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import line, rect, text
from docs.generators.figure_text import figure, width_of, wrapped
from docs.generators.pages import DOCS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from comparison.report.markup import Shape

PICTURE = DOCS / "diagrams" / "history.svg"
TITLE = "The designs of Kafka's consumer groups, 2012 to 2026, by the releases that brought them and took them away"
FIRST_YEAR, LAST_YEAR = 2012, 2026
LEFT, RIGHT, TOP, LINE, BAR, GAP = 8, 402, 28, 14.5, 13, 12
#: The end of a bar that has no end yet.
OPEN = date(LAST_YEAR, 12, 31)


class Stretch(NamedTuple):
    """A part of a design's life; `kind` is its class in the style sheet."""

    kind: str
    begin: date
    end: date


class Design(NamedTuple):
    name: str
    says: str
    life: tuple[Stretch, ...]


def _life(*stretches: str) -> tuple[Stretch, ...]:
    """Each as its kind, its first day and, unless it goes on, its last one."""
    words = map(str.split, stretches)
    return tuple(Stretch(kind, *map(date.fromisoformat, days), *[OPEN][len(days) - 1 :]) for kind, *days in words)


#: Releases are dated as on Kafka's download pages. Of the plans only the months are known: a branch for them was opened
#: in June 2012, and KAFKA-2464 replaced them in October 2015.
DESIGNS = (
    Design(
        "zookeeper",
        "0.7: every member decides, woken by watches; deprecated in 0.11, removed in 2.0",
        _life("shipped 2012-01-04 2017-06-28", "fading 2017-06-28 2018-07-30"),
    ),
    Design(
        "server",
        "plans and code of 2012 to 2015: the coordinator assigns; never released",
        _life("planned 2012-06-01 2015-10-31"),
    ),
    Design("eager", "0.9: a member assigns, everybody stops", _life("shipped 2015-11-23")),
    Design("static", "2.3: a restarted member gets its place back", _life("shipped 2019-06-25")),
    Design("delayed", "2.3, in Connect only: lost work waits", _life("elsewhere 2019-06-25")),
    Design("cooperative", "2.4: only what moves stops", _life("shipped 2019-12-16")),
    Design(
        "consumer",
        "KIP-848, 3.7 early, 4.0 ready: the coordinator assigns again, and no member waits for all others",
        _life("fading 2024-02-27 2025-03-18", "shipped 2025-03-18"),
    ),
)
LEGEND = (
    ("shipped", "released"),
    ("fading", "deprecated, or not for production yet"),
    ("planned", "never released"),
    ("elsewhere", "released, but not for consumers"),
)
STYLE = """
.paper { fill: #FFFFFF; } text { font: 11px system-ui, sans-serif; fill: #1b1b1b; } .name { font-weight: 700; }
.year { fill: #5f5f5f; } .grid { stroke: #dddddd; } rect.bar { stroke: #404040; stroke-width: 0.6px; }
.shipped { fill: #56B4E9; } .fading { fill: #56B4E9; fill-opacity: 0.35; }
.planned { fill: #F0E442; fill-opacity: 0.6; } rect.planned { stroke-dasharray: 4 3; stroke-width: 1.2px; }
.elsewhere { fill: #E69F00; }
@media (prefers-color-scheme: dark) {
.paper { fill: #16191d; } text { fill: #e8e8e8; } .year { fill: #a8a8a8; } .grid { stroke: #33383e; }
rect.bar { stroke: #c8c8c8; } }
"""


def across(day: date) -> float:
    """The place of a day on the axis."""
    first = date(FIRST_YEAR, 1, 1)
    share = (day - first).days / (date(LAST_YEAR + 1, 1, 1) - first).days
    return round(LEFT + share * (RIGHT - LEFT), 1)


def _axis(bottom: float) -> Iterator[Shape]:
    """A line for each year, and every second one's number."""
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        x = across(date(year, 1, 1))
        yield line(x, TOP - 8, x, bottom, class_="grid")
        if (year - FIRST_YEAR) % 2 == 0:
            yield text(f"{year}", x + 2, TOP - 12, class_="year")


def _lane(design: Design, y: float) -> tuple[float, list[Shape]]:
    """Where it ends, and a design's name, what it does, and its life."""
    indent = width_of(design.name, bold=True) + 5
    first, *others = wrapped(design.says, RIGHT - LEFT, first=RIGHT - LEFT - indent)
    drawn = [text(design.name, LEFT, y + 11, class_="name"), text(first, LEFT + indent, y + 11)]
    drawn += [text(said, LEFT, y + 11 + LINE * number) for number, said in enumerate(others, start=1)]
    y += LINE * (1 + len(others)) + 3
    for stretch in design.life:
        x = across(stretch.begin)
        drawn.append(rect(x, y, round(across(stretch.end) - x, 1), BAR, class_=f"bar {stretch.kind}"))
    return y + BAR + GAP, drawn


def _legend(y: float) -> tuple[float, list[Shape]]:
    drawn: list[Shape] = []
    x: float = LEFT
    for kind, says in LEGEND:
        width = 32 + width_of(says)
        if x + width > RIGHT:
            x, y = LEFT, y + 18
        drawn += [rect(x, y, 20, 11, class_=f"bar {kind}"), text(says, x + 25, y + 9.5)]
        x += width + 8
    return y + 20, drawn


def picture() -> str:
    y: float = TOP
    lanes: list[Shape] = []
    for design in DESIGNS:
        y, drawn = _lane(design, y)
        lanes += drawn
    bottom, legend = _legend(y)
    return figure(TITLE, [*_axis(y - GAP), *lanes, *legend], bottom, styled=STYLE)


def files() -> dict[Path, str]:
    return {PICTURE: picture()}
