"""A timeline as an SVG picture: a lane for each member's phases, and two bars in each partition's lane.

The upper bar is the owner by the authority (owner node, coordinator), the lower one the member that believes it owns
the partition, each in its member's colour: a gap is an unowned partition, two colours above each other are a zombie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.markup import Shape, drawing, line, rect, text
from comparison.report.timeline import ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.timeline import Span, Timeline

WIDTH, GUTTER, RIGHT = 1000, 120, 34
TOP, LANE, BAR, GAP = 56, 26, 18, 12
#: Okabe and Ito's colours, which people with any colour vision can distinguish.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: Paler than the members' colours, to avoid confusion.
PHASE_COLOURS = {
    "detect": "#D9D9D9",
    "stop": "#F4A3A3",
    "release": "#F7C99B",
    "join": "#B5D8F0",
    "decide": "#C9B8E8",
    "claim": "#B8E0C0",
    "resume": "#E8E89A",
    "backoff": "#A9A9A9",
}
_DARK = frozenset({"#0072B2", "#009E73", "#D55E00"})
_LETTER = 6.2  #: approximate width of a letter


def lanes(drawn: Timeline, title: str) -> str:
    """The SVG text; the same for the same timeline."""
    places = list(dict.fromkeys(drawn.places[member] for member in drawn.members))
    colours = {member: COLOURS[places.index(drawn.places[member]) % len(COLOURS)] for member in drawn.members}
    body: list[Shape] = []
    y = TOP
    for place, phases in _by_place(drawn).items():
        body += _lane(y, place, LANE)
        for span in phases:
            body += _bar(drawn, span, y + 4, BAR, PHASE_COLOURS.get(span.what, "#FFFFFF"), span.what)
        y += LANE
    y += GAP
    for partition in drawn.partitions:
        body += _lane(y, partition, LANE)
        for spans, offset, what in ((drawn.named, 3, drawn.authority), (drawn.delivered, 13, "delivers")):
            body += _owners(drawn, spans.get(partition, ()), y + offset, colours, what)
        y += LANE
    bottom = y
    head = [*_axis(drawn, bottom), *_marks(drawn, bottom)]
    foot = _legend(bottom + 34, colours, places, drawn)
    height = bottom + 34 + 60
    paper = [
        Shape("rect", {"width": WIDTH, "height": height, "fill": "#FFFFFF"}),
        text(title, GUTTER, 18, font_size=14),
    ]
    picture = drawing(
        title,
        [*paper, *head, *body, *foot],
        (WIDTH, height),
        width=WIDTH,
        height=height,
        font_family="sans-serif",
        font_size=11,
    )
    return str(picture)


def _by_place(drawn: Timeline) -> dict[str, list[Span]]:
    """All phases of a member in one lane, across its restarts."""
    found: dict[str, list[Span]] = {}
    for member, phases in drawn.phases.items():
        found.setdefault(drawn.places[member], []).extend(phases)
    return found


def _x(drawn: Timeline, ns: int) -> float:
    whole = drawn.ended_ns - drawn.began_ns
    return GUTTER + (WIDTH - GUTTER - RIGHT) * (ns - drawn.began_ns) / whole


def _lane(y: int, label: str, height: int) -> list[Shape]:
    return [
        text(label, GUTTER - 8, y + 17, text_anchor="end"),
        line(GUTTER, y + height, WIDTH - RIGHT, y + height, stroke="#EEEEEE"),
    ]


def _bar(drawn: Timeline, span: Span, y: int, height: int, colour: str, label: str, hint: str = "") -> list[Shape]:
    x = _x(drawn, span.began_ns)
    width = max(1.0, _x(drawn, span.ended_ns) - x)
    length_ms = (span.ended_ns - span.began_ns) / 1e6
    bar = rect(x, y, width, height, fill=colour, hint=f"{label} {hint}".strip() + f", {length_ms:.1f} ms")
    if width < _LETTER * len(label) + 6 or height < BAR // 2:
        return [bar]
    ink = "#FFFFFF" if colour in _DARK else "#000000"
    size = {} if height >= BAR else {"font_size": 9}
    below = y + height - max(1, (height - 9) // 2)
    return [bar, text(label, x + 3, below, fill=ink, **size)]


def _owners(drawn: Timeline, spans: Iterable[Span], y: int, colours: dict[str, str], what: str) -> list[Shape]:
    """Bars of height 9, shared by members that deliver the same partition at once."""
    kept: list[tuple[Span, int]] = []
    for span in sorted(spans, key=lambda each: (each.began_ns, each.what)):
        taken = {row for other, row in kept if other.ended_ns > span.began_ns}
        kept.append((span, min(set(range(len(kept) + 1)) - taken)))
    rows = max((row for _, row in kept), default=0) + 1
    height = 9 // rows
    return [
        shape
        for span, row in kept
        for shape in _bar(drawn, span, y + row * height, height, colours.get(span.what, "#000000"), span.what, what)
    ]


def _axis(drawn: Timeline, bottom: int) -> list[Shape]:
    places = ticks(drawn.ended_ns - drawn.began_ns)
    step = places.step if isinstance(places, range) else 1
    digits = 0 if step >= 1_000_000 else 3
    found = []
    for distance in places:
        x = _x(drawn, drawn.began_ns + distance)
        found.append(line(x, TOP - 6, x, bottom, stroke="#DDDDDD"))
        label = f"{distance / 1e6:.{digits}f} ms"
        found.append(text(label, x, bottom + 14, text_anchor="middle", fill="#555555"))
    return found


def _marks(drawn: Timeline, bottom: int) -> list[Shape]:
    """Changes and faults: a line at the start, a shade for the duration; marks close together share a label."""
    found = []
    labels: list[tuple[float, str]] = []
    for mark in drawn.marks:
        x, end = _x(drawn, mark.began_ns), _x(drawn, mark.ended_ns)
        if end - x > 1:
            found.append(rect(x, TOP - 6, end - x, bottom - TOP + 6, fill="#FFF3C4"))
        found.append(line(x, TOP - 14, x, bottom, stroke="#CC0000"))
        if labels and x < labels[-1][0] + _LETTER * len(labels[-1][1]) + 8:
            labels[-1] = (labels[-1][0], f"{labels[-1][1]}, {mark.what}")
        else:
            labels.append((x, mark.what))
    return found + [text(what, x + 3, TOP - 10, fill="#CC0000") for x, what in labels]


def _legend(y: int, colours: dict[str, str], places: Sequence[str], drawn: Timeline) -> list[Shape]:
    used = {span.what for spans in drawn.phases.values() for span in spans}
    phases = [(name, colour) for name, colour in PHASE_COLOURS.items() if name in used]
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
        ("phases", phases),
        ("members", [(name, colour) for name, colour in colours.items() if name in places]),
    )
    found = []
    for place, (heading, entries) in enumerate(rows):
        row = y + 20 * place
        found.append(text(heading, GUTTER - 8, row, text_anchor="end", fill="#555555"))
        x = float(GUTTER)
        for name, colour in entries:
            found += [rect(x, row - 9, 10, 10, fill=colour), text(name, x + 14, row)]
            x += 26 + _LETTER * len(name)
    authority = drawn.authority if drawn.authority.startswith("the ") else f"the {drawn.authority}"
    note = f"in each partition's lane, above: the owner that {authority} names; below: the member that delivers"
    return [*found, text(note, GUTTER, y + 40, fill="#555555")]
