"""Pictures from shapes: well-formed XML with any texts."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from jinja2 import UndefinedError

from comparison.report.markup import drawing, line, rect, render, text

HOSTILE = '"/></svg><script>&amp; \'x\' "y"'
SVG = "{http://www.w3.org/2000/svg}"


def test_hostile_texts_are_escaped() -> None:
    shapes = [text(HOSTILE, 1, 2, fill=HOSTILE), rect(0.25, 0, 3.0, 4, hint=HOSTILE), line(0, 1, 2, 3)]
    root = ElementTree.fromstring(drawing(HOSTILE, shapes, (10, 20), class_=HOSTILE))
    assert root.attrib == {"viewBox": "0 0 10 20", "role": "img", "aria-label": HOSTILE, "class": HOSTILE}
    assert [(each.tag.removeprefix(SVG), each.text) for each in root] == [
        ("title", HOSTILE),
        ("text", HOSTILE),
        ("rect", None),
        ("line", None),
    ]
    assert root[1].attrib == {"x": "1", "y": "2", "fill": HOSTILE}
    assert (root[2].attrib, root[2][0].text) == ({"x": "0.2", "y": "0", "width": "3.0", "height": "4"}, HOSTILE)


def test_missing_value_in_a_template_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("page.html.j2")
