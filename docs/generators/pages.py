"""Pages whose places are filled from the code or from runs, and the tables that are put there.

A place is `<!-- drawn: NAME -->` up to `<!-- end -->`; the prose around it is the page's own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DOCS = Path(__file__).parents[1]
FIGURES = DOCS / "diagrams" / "figures"


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
    """Markdown that a page shows when asked."""
    return "\n\n".join((f"<details markdown>\n<summary>{summary}</summary>", *parts, "</details>"))
