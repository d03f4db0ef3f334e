"""Draw `diagrams/history.svg`, the timeline of `history.md`: `python -m docs.generators.history_picture`.

A test compares the file with what this module draws.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

PICTURE = Path(__file__).parents[1] / "diagrams" / "history.svg"
TITLE = "The designs of Kafka's consumer groups, 2012 to 2026, by the releases that brought them and took them away"
FIRST_YEAR, LAST_YEAR = 2012, 2026
WIDTH, LEFT, RIGHT, TOP, LANE = 1000, 14, 986, 44, 46
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


#: Releases are dated as on Kafka's download pages. Of the plans only the months are known: a branch for them was opened
#: in June 2012, and KAFKA-2464 replaced them in October 2015.
DESIGNS = (
    Design(
        "zookeeper",
        "0.7: every member decides, woken by watches; deprecated in 0.11, removed in 2.0",
        (
            Stretch("shipped", date(2012, 1, 4), date(2017, 6, 28)),
            Stretch("fading", date(2017, 6, 28), date(2018, 7, 30)),
        ),
    ),
    Design(
        "server",
        "plans and code of 2012 to 2015: the coordinator assigns; never released",
        (Stretch("planned", date(2012, 6, 1), date(2015, 10, 31)),),
    ),
    Design(
        "eager",
        "0.9: a member assigns, everybody stops",
        (Stretch("shipped", date(2015, 11, 23), OPEN),),
    ),
    Design(
        "static",
        "2.3: a restarted member gets its place back",
        (Stretch("shipped", date(2019, 6, 25), OPEN),),
    ),
    Design(
        "delayed",
        "2.3, in Connect only: lost work waits",
        (Stretch("elsewhere", date(2019, 6, 25), OPEN),),
    ),
    Design(
        "cooperative",
        "2.4: only what moves stops",
        (Stretch("shipped", date(2019, 12, 16), OPEN),),
    ),
    Design(
        "consumer",
        "KIP-848, 3.7 early, 4.0 ready: the coordinator assigns again, and no member waits for all others",
        (
            Stretch("fading", date(2024, 2, 27), date(2025, 3, 18)),
            Stretch("shipped", date(2025, 3, 18), OPEN),
        ),
    ),
)
LEGEND = (
    ("shipped", "released"),
    ("fading", "deprecated, or not for production yet"),
    ("planned", "never released"),
    ("elsewhere", "released, but not for consumers"),
)
STYLE = """
.paper { fill: #FFFFFF; } text { font: 12px sans-serif; fill: #1b1b1b; } .name { font-weight: 700; }
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


def _axis(bottom: int) -> list[str]:
    drawn = []
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        x = across(date(year, 1, 1))
        drawn.append(f'<line class="grid" x1="{x}" y1="{TOP - 12}" x2="{x}" y2="{bottom}"/>')
        drawn.append(f'<text class="year" x="{x + 3}" y="{TOP - 16}">{year}</text>')
    return drawn


def _lane(design: Design, y: int) -> list[str]:
    begin, end = across(design.life[0].begin), across(design.life[-1].end)
    # A text that would leave the picture on the right ends where its bar ends.
    late = begin > WIDTH * 0.7
    place = f'x="{end}" text-anchor="end"' if late else f'x="{begin}"'
    drawn = [
        f'<text {place} y="{y + 12}"><tspan class="name">{escape(design.name)}</tspan> {escape(design.says)}</text>'
    ]
    for stretch in design.life:
        x = across(stretch.begin)
        width = round(across(stretch.end) - x, 1)
        drawn.append(f'<rect class="bar {stretch.kind}" x="{x}" y="{y + 18}" width="{width}" height="14"/>')
    return drawn


def _legend(y: int) -> list[str]:
    drawn, x = [], LEFT
    for kind, says in LEGEND:
        drawn.append(f'<rect class="bar {kind}" x="{x}" y="{y - 10}" width="22" height="12"/>')
        drawn.append(f'<text x="{x + 28}" y="{y}">{escape(says)}</text>')
        x += 50 + round(6 * len(says))
    return drawn


def picture() -> str:
    bottom = TOP + LANE * len(DESIGNS)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" width="{WIDTH}" '
        f'height="{bottom + 34}" role="img" aria-label="{escape(TITLE)}">',
        f"<title>{escape(TITLE)}</title>",
        f"<style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        *_axis(bottom),
        *(line for number, design in enumerate(DESIGNS) for line in _lane(design, TOP + LANE * number)),
        *_legend(bottom + 22),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
