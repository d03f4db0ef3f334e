"""The figures that are generated for documents, in a browser: no text covers another or leaves its box."""

from __future__ import annotations

from docs.generators.draw import DRAWINGS
from docs.generators.pages import DOCS, FIGURES

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


#: Which callouts there are, and which of them leave the picture or stand on another text.
CALLOUTS = """() => {
  const box = (text) => text.getBoundingClientRect();
  const meets = (one, two) => Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1
    && Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 3;
  const texts = [...document.querySelectorAll("text")].filter((text) => text.getClientRects().length);
  const callouts = texts.filter((text) => text.classList.contains("say"));
  const page = box(document.documentElement);
  const wrong = callouts.filter((one) => box(one).left < page.left || box(one).right > page.right
    || texts.some((two) => two !== one && meets(box(one), box(two))));
  return [callouts, wrong].map((each) => each.map((text) => text.textContent));
}"""


def test_drawings_of_runs_say_what_happens_and_no_callout_stands_on_another_text(browser):
    page = browser.new_page()
    for name in DRAWINGS:
        page.goto((DOCS / "diagrams" / name).as_uri())
        callouts, wrong = page.evaluate(CALLOUTS)
        assert 3 <= len(callouts) <= 6, (name, callouts)
        assert wrong == [], name
