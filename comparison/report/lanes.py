"""A timeline as an SVG picture: a lane for each member's phases, and two bars in each partition's lane.

The upper bar is whom the authority names (the owner node, the coordinator), the lower one who delivers by its own
belief, each in its member's colour: a gap is a partition that nobody owns, two colours over one another are a zombie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from comparison.report.timeline import ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.timeline import Span, Timeline

WIDTH, GUTTER, RIGHT = 1000, 120, 34
TOP, LANE, BAR, GAP = 56, 26, 18, 12
#: Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: Paler than the members' ones, so that neither is taken for the other.
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
_LETTER = 6.2  #: width of a letter, about


def lanes(drawn: Timeline, title: str) -> str:
    """The picture's text: the same for the same timeline."""
    places = list(dict.fromkeys(drawn.places[member] for member in drawn.members))
    colours = {member: COLOURS[places.index(drawn.places[member]) % len(COLOURS)] for member in drawn.members}
    body: list[str] = []
    y = TOP
    for place, phases in _by_place(drawn).items():
        body += _lane(y, place, LANE)
        body += [_bar(drawn, span, y + 4, BAR, PHASE_COLOURS.get(span.what, "#FFFFFF"), span.what) for span in phases]
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
    return "\n".join([*_opening(height, title), *head, *body, *foot, "</svg>"]) + "\n"


def _by_place(drawn: Timeline) -> dict[str, list[Span]]:
    """Phases of all lives of a member in one lane: they follow one another."""
    found: dict[str, list[Span]] = {}
    for member, phases in drawn.phases.items():
        found.setdefault(drawn.places[member], []).extend(phases)
    return found


def _opening(height: int, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label={quoteattr(title)} font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#FFFFFF"/>',
        f'<text x="{GUTTER}" y="18" font-size="14">{escape(title)}</text>',
    ]


def _x(drawn: Timeline, ns: int) -> float:
    whole = drawn.ended_ns - drawn.began_ns
    return GUTTER + (WIDTH - GUTTER - RIGHT) * (ns - drawn.began_ns) / whole


def _lane(y: int, label: str, height: int) -> list[str]:
    return [
        f'<text x="{GUTTER - 8}" y="{y + 17}" text-anchor="end">{escape(label)}</text>',
        f'<line x1="{GUTTER}" y1="{y + height}" x2="{WIDTH - RIGHT}" y2="{y + height}" stroke="#EEEEEE"/>',
    ]


def _bar(drawn: Timeline, span: Span, y: int, height: int, colour: str, label: str, hint: str = "") -> str:
    x = _x(drawn, span.began_ns)
    width = max(1.0, _x(drawn, span.ended_ns) - x)
    length_ms = (span.ended_ns - span.began_ns) / 1e6
    told = escape(f"{label} {hint}".strip() + f", {length_ms:.1f} ms")
    rect = (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"><title>{told}</title></rect>'
    )
    if width < _LETTER * len(label) + 6 or height < BAR // 2:
        return rect
    ink = "#FFFFFF" if colour in _DARK else "#000000"
    size = "" if height >= BAR else ' font-size="9"'
    below = y + height - max(1, (height - 9) // 2)
    return rect + f'<text x="{x + 3:.1f}" y="{below}" fill="{ink}"{size}>{escape(label)}</text>'


def _owners(drawn: Timeline, spans: Iterable[Span], y: int, colours: dict[str, str], what: str) -> list[str]:
    """Bars of 9; who delivers what another one delivers too gets a share of the height."""
    kept: list[tuple[Span, int]] = []
    for span in sorted(spans, key=lambda each: (each.began_ns, each.what)):
        taken = {row for other, row in kept if other.ended_ns > span.began_ns}
        kept.append((span, min(set(range(len(kept) + 1)) - taken)))
    rows = max((row for _, row in kept), default=0) + 1
    height = 9 // rows
    return [
        _bar(drawn, span, y + row * height, height, colours.get(span.what, "#000000"), span.what, what)
        for span, row in kept
    ]


def _axis(drawn: Timeline, bottom: int) -> list[str]:
    places = ticks(drawn.ended_ns - drawn.began_ns)
    step = places.step if isinstance(places, range) else 1
    digits = 0 if step >= 1_000_000 else 3
    found = []
    for distance in places:
        x = _x(drawn, drawn.began_ns + distance)
        found.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#DDDDDD"/>')
        label = f"{distance / 1e6:.{digits}f} ms"
        found.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="#555555">{label}</text>')
    return found


def _marks(drawn: Timeline, bottom: int) -> list[str]:
    """Changes and faults: a line where they begin, a shade where they last; what is close together shares a label."""
    found = []
    labels: list[tuple[float, str]] = []
    for mark in drawn.marks:
        x, end = _x(drawn, mark.began_ns), _x(drawn, mark.ended_ns)
        if end - x > 1:
            found.append(
                f'<rect x="{x:.1f}" y="{TOP - 6}" width="{end - x:.1f}" height="{bottom - TOP + 6}" fill="#FFF3C4"/>'
            )
        found.append(f'<line x1="{x:.1f}" y1="{TOP - 14}" x2="{x:.1f}" y2="{bottom}" stroke="#CC0000"/>')
        if labels and x < labels[-1][0] + _LETTER * len(labels[-1][1]) + 8:
            labels[-1] = (labels[-1][0], f"{labels[-1][1]}, {mark.what}")
        else:
            labels.append((x, mark.what))
    found += [f'<text x="{x + 3:.1f}" y="{TOP - 10}" fill="#CC0000">{escape(what)}</text>' for x, what in labels]
    return found


def _legend(y: int, colours: dict[str, str], places: Sequence[str], drawn: Timeline) -> list[str]:
    used = {span.what for spans in drawn.phases.values() for span in spans}
    phases = [(name, colour) for name, colour in PHASE_COLOURS.items() if name in used]
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
        ("phases", phases),
        ("members", [(name, colour) for name, colour in colours.items() if name in places]),
    )
    found = []
    for place, (heading, entries) in enumerate(rows):
        row = y + 20 * place
        found.append(f'<text x="{GUTTER - 8}" y="{row}" text-anchor="end" fill="#555555">{heading}</text>')
        x = float(GUTTER)
        for name, colour in entries:
            found.append(f'<rect x="{x:.1f}" y="{row - 9}" width="10" height="10" fill="{colour}"/>')
            found.append(f'<text x="{x + 14:.1f}" y="{row}">{escape(name)}</text>')
            x += 26 + _LETTER * len(name)
    authority = drawn.authority if drawn.authority.startswith("the ") else f"the {drawn.authority}"
    note = f"in each partition's lane: above, whom {authority} names; below, who delivers"
    found.append(f'<text x="{GUTTER}" y="{y + 40}" fill="#555555">{note}</text>')
    return found
