"""The pictures of the pages in light and in dark: every text stands out from what is behind it, as WCAG AA asks."""

from __future__ import annotations

import pytest

from docs.generators.pages import DOCS

#: What is too faint: its text, its colour and the one behind it, and their contrast. Behind a text is the topmost shape
#: that is filled there, or a thick line, or the paper of the whole picture.
FAINT = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const filled = (shape, x, y) =>
    shape.isPointInFill && shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse()));
  const colour = (shape, x, y) => {
    const { fill, fillOpacity, stroke, strokeWidth } = getComputedStyle(shape);
    if (fill === "none") return parseFloat(strokeWidth) > 6 && stroke;
    return fillOpacity > 0.6 && !fill.startsWith("url") && filled(shape, x, y) && fill;
  };
  const paper = getComputedStyle(document.documentElement).backgroundColor;
  const texts = [...document.querySelectorAll("text")];
  const shown = texts.filter((text) => text.textContent && text.getClientRects().length);
  return shown.flatMap((each) => {
    const box = each.getBoundingClientRect();
    const at = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const behind = document.elementsFromPoint(...at).map((shape) => colour(shape, ...at)).find(Boolean) || paper;
    const ink = getComputedStyle(each).fill;
    const [lower, higher] = [light(ink), light(behind)].sort((one, two) => one - two);
    const contrast = (higher + 0.05) / (lower + 0.05);
    return contrast < 4.5 ? [[each.textContent, ink, behind, contrast]] : [];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_of_pictures_stand_out(browser, scheme):
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1_100, "height": 5_000})
    for path in sorted((DOCS / "diagrams").rglob("*.svg")):
        page.goto(path.as_uri())
        assert page.evaluate(FAINT) == [], path.name
        assert "prefers-color-scheme: dark" in path.read_text(encoding="utf-8"), path.name
    page.close()
