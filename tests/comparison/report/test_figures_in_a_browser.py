"""The figures that are generated for documents, in a browser: no text covers another or leaves its box."""

from __future__ import annotations

from docs.generators.pages import FIGURES

#: Drawn from the code, not from a run.
GENERATED = (
    "machine-*.svg",
    "map-*.svg",
    "coordinator-lookup.svg",
    "offset-*.svg",
    "phases-*.svg",
    "reconciliation.svg",
    "large-*.svg",
)
OVERLAPS = """() => {
  const texts = [...document.querySelectorAll("text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
  const page = document.documentElement.getBoundingClientRect();
  const found = texts.filter(([, box]) => box.left < page.left || box.right > page.right).map(([text]) => text);
  texts.forEach(([text, one], place) => texts.slice(place + 1).forEach(([other, two]) => {
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (across > 1 && down > 3) found.push(`${text} / ${other}`);
  }));
  const cards = [...document.querySelectorAll("rect.card, rect.box")].map((each) => each.getBoundingClientRect());
  texts.forEach(([text, box]) => cards.forEach((card) => {
    if (box.top > card.top && box.bottom < card.bottom && box.left < card.right && box.right > card.right)
      found.push(`${text} leaves its card`);
  }));
  return found;
}"""


def test_no_text_of_a_generated_figure_covers_another_or_leaves_its_box(browser):
    page = browser.new_page()
    for path in sorted(path for pattern in GENERATED for path in FIGURES.glob(pattern)):
        page.goto(path.as_uri())
        assert page.evaluate(OVERLAPS) == [], path.name
