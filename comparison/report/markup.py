"""HTML and SVG from the templates beside this module; Jinja2 escapes whatever is put into them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TEMPLATES = Environment(
    loader=FileSystemLoader((Path(__file__).parent, Path(__file__).parents[1])),  # other pages' by their package
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Shape(NamedTuple):
    """One SVG element: its attributes in order, its text, and the hint that a browser shows when pointed at it."""

    name: str
    attributes: Mapping[str, object]
    text: str = ""
    hint: str = ""


def text(shown: str, x: float, y: float, **attributes: object) -> Shape:
    return Shape("text", _named({"x": x, "y": y, **attributes}), text=shown)


def line(x1: float, y1: float, x2: float, y2: float, *, hint: str = "", **attributes: object) -> Shape:
    return Shape("line", _named({"x1": x1, "y1": y1, "x2": x2, "y2": y2, **attributes}), hint=hint)


def rect(x: float, y: float, width: float, height: float, *, hint: str = "", **attributes: object) -> Shape:
    return Shape("rect", _named({"x": x, "y": y, "width": width, "height": height, **attributes}), hint=hint)


def path(data: str, **attributes: object) -> Shape:
    return Shape("path", _named({"d": data, **attributes}))


def _named(attributes: Mapping[str, object]) -> dict[str, object]:
    """Attributes as SVG names them (`class_` is class, `text_anchor` is text-anchor), with one decimal place."""
    return {
        name.removesuffix("_").replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else value
        for name, value in attributes.items()
    }


def drawing(
    title: str,
    shapes: Sequence[Shape],
    size: tuple[int, int],
    *,
    says: str = "",
    style: str = "",
    **attributes: object,
) -> Markup:
    """A whole SVG picture; `attributes` are those of its root element, beside its size and title.

    A picture in a file of its own also `says` in words what it shows, and brings its `style` along.
    """
    return render(
        "drawing.svg.j2",
        title=title,
        shapes=shapes,
        size=size,
        says=says,
        style=Markup(style),
        attributes=_named(attributes),
    )


def render(template: str, /, **values: Any) -> Markup:
    return Markup(_TEMPLATES.get_template(template).render(values))


def own_script_only(script: str) -> str:
    """The policy of a file that loads nothing, and runs this script only."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
