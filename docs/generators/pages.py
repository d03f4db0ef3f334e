"""Pages whose places are filled from the code or from runs, and the tables that are put there.

A place is `<!-- drawn: NAME -->` up to `<!-- end -->`; the prose around it is the page's own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.designs import CONSUMER, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from comparison.results.result import Spread

DOCS = Path(__file__).parents[1]
FIGURES = DOCS / "diagrams" / "figures"
_CHAPTERS = {ZOOKEEPER: "zookeeper-consumer", CONSUMER: "consumer-protocol"}


def chapter(design: str) -> str:
    """The page about a design, without `.md`."""
    return _CHAPTERS.get(design, f"design-{design}")


def filled(page: Path, places: Mapping[str, str]) -> str:
    """The text of a page with these contents of its places, by name."""
    text = page.read_text(encoding="utf-8")
    for name, content in places.items():
        place = re.compile(rf"(<!-- drawn: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = place.subn(lambda found, content=content: f"{found[1]}{content.rstrip()}\n{found[2]}", text)
        assert count == 1, f"{count} places for {name} in {page.name}"
    return text


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """A Markdown table; `rule` has the line below the headings, if columns are aligned otherwise than usual."""
    lines = (headings, rule or ["---"] * len(headings), *rows)
    cells = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in cells)


def folded(summary: str, *parts: str) -> str:
    """Markdown that a reader unfolds."""
    return "\n\n".join((f"<details markdown><summary>{summary}</summary>", *parts, "</details>"))


def with_range(spread: Spread | None, text: Callable[[float], str]) -> str:
    """A median with its range, as `268 (60–967)`, or alone if all runs agree; '' if nothing was measured."""
    if spread is None:
        return ""
    median, low, high = map(text, (spread.median, spread.low, spread.high))
    return median if low == high else f"{median} ({low}–{high})"
