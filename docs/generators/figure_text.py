"""What the generated figures share: paper, arrows, colours, how wide texts are at most, and where they break.

The pictures are files that a page shows as images, so they bring their colours along and know no fonts but the
reader's. Widths are those of DejaVu Sans, the widest of the usual sans-serif fonts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.drawing.palette import COLOURS, PHASES
from comparison.report.markup import drawing, path, rect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.markup import Shape

#: Of a figure, and of the picture where there is room.
WIDTH, SHOWN = 410, 520
#: Widths in ems: narrow letters, wide ones, capitals, and all others.
_NARROW, _WIDE = frozenset(" ijlft.,:;'|!()[]I-/r"), frozenset("mwMW%→")
#: Colours of lines of the kinds, dark enough to be seen on white; in the dark the lighter fills serve.
_LINES = ("#0072B2", "#A85F00", "#00735A", "#A8447F", "#7A6F00", "#C2410C", "#4457C4", "#7A5C20")
#: The same of the phases of a rebalance, in their order.
_PHASE_LINES = ("#5F5F5F", "#B3403E", "#9A5A10", "#1F6FA8", "#6A48AE", "#23763E", "#736B10", "#7A5646")
_FILLS = {
    **{f"k{number}": (colour, _LINES[number]) for number, colour in enumerate(COLOURS)},
    "k9": ("#CCCCCC", "#5F5F5F"),
    **{f"p-{name}": (colour, line) for (name, colour), line in zip(PHASES.items(), _PHASE_LINES, strict=True)},
}


def figure(title: str, shapes: Sequence[Shape], height: float, says: str = "", styled: str = "") -> str:
    """A figure on paper, as a file; `styled` is its style sheet if it has one of its own."""
    size = (WIDTH, round(height))
    shown = {"width": SHOWN, "height": round(size[1] * SHOWN / WIDTH)}
    paper = rect(0, 0, *size, class_="paper")
    return str(drawing(title, [paper, *shapes], size, says=says, style=styled or style(), **shown))


def arrow_down(x: float, top: float, bottom: float, kind: str = "ink", **attributes: str) -> tuple[Shape, Shape]:
    """The line, which has the `attributes`, and its head."""
    return (
        path(
            f"M{x} {top:.1f}V{bottom - 6:.1f}", class_="line ink" if kind == "ink" else f"line s-{kind}", **attributes
        ),
        path(f"M{x - 4.5} {bottom - 8:.1f}h9L{x} {bottom:.1f}z", class_=f"h-{kind}"),
    )


def head(x: float, y: float, side: int, kind: str = "ink") -> Shape:
    """The head of an arrow that ends at `x`, from the left if `side` is 1, from the right if it is -1."""
    return path(f"M{x - 8 * side:.1f} {y - 4.5:.1f}v9l{8 * side} -4.5z", class_=f"h-{kind}")


def style() -> str:
    """The style sheet of a figure, for light and dark."""
    fills = " ".join(f".{kind} {{ fill: {fill}; }}" for kind, (fill, _) in _FILLS.items())
    lines = " ".join(f".s-{kind} {{ stroke: {line}; }}" for kind, (_, line) in _FILLS.items())
    heads = " ".join(f".h-{kind} {{ fill: {line}; }}" for kind, (_, line) in _FILLS.items())
    dark = " ".join(
        f".s-{kind} {{ stroke: {fill}; }} .h-{kind} {{ fill: {fill}; }}" for kind, (fill, _) in _FILLS.items()
    )
    return f"""
text {{ font: 11px system-ui, sans-serif; fill: #1b1b1b; }} .paper {{ fill: #ffffff; }}
.card {{ fill: #f4f6f8; stroke: #8a8f96; }} .edge {{ stroke: #8a8f96; fill: none; }}
.name {{ font-weight: 700; font-size: 12.5px; }} .b {{ font-weight: 700; }}
.on {{ fill: #000000; }} .faint {{ fill: #5a5a5a; }} .good {{ fill: #00644b; }} .bad {{ fill: #b3261e; }}
.line {{ fill: none; stroke-width: 1.6px; }} .ink {{ stroke: #404040; }} .h-ink {{ fill: #404040; }}
{fills}
{lines}
{heads}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e8e8e8; }} .paper {{ fill: #16181b; }}
.card {{ fill: #1f2226; stroke: #6a7078; }} .edge {{ stroke: #6a7078; }}
.on {{ fill: #000000; }} .faint {{ fill: #a8a8a8; }} .good {{ fill: #5fd3ae; }} .bad {{ fill: #ff8a80; }}
.ink {{ stroke: #c8c8c8; }} .h-ink {{ fill: #c8c8c8; }}
{dark} }}
"""


def width_of(text: str, size: float = 11.0, *, bold: bool = False) -> float:
    """The width of a text, at most."""
    ems = 0.0
    for letter in text:
        if letter in _NARROW:
            ems += 0.40
        elif letter in _WIDE:
            ems += 0.98
        else:
            ems += 0.70 if letter.isupper() or letter == "_" else 0.625
    return ems * size * (1.1 if bold else 1.0)


def wrapped(text: str, width: float, *, first: float | None = None, size: float = 11.0) -> list[str]:
    """The lines of a text. `first` is the room of the first line, if it is another one; it may stay empty."""
    lines, line, room = [], "", width if first is None else first
    for word in text.split():
        longer = f"{line} {word}".strip()
        is_first = not lines and first is not None
        if width_of(longer, size) > room and (line or is_first):
            lines.append(line)
            line, room = word, width
        else:
            line = longer
    return [*lines, line]
