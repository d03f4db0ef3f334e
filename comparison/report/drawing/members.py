"""How members are distinguished: a colour and a pattern by their place, a name inside the bar.

Okabe and Ito's hues, lightened so that black text is readable on each; three patterns make twenty-four members
distinct. Bars are drawn stretched, so patterns have horizontal lines only. The classes are in lanes.css.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.report.view.model import RunView

COLOURS = ("#56B4E9", "#E69F00", "#3DB88B", "#DB94BB", "#F0E442", "#EF8354", "#9FB2F5", "#C2AD7F")
#: Patterns by number, with the stripes that they have in a height of 4: plain, lines, and two halves.
PATTERNS = 3


def styles(views: Iterable[RunView]) -> Mapping[str, str]:
    """The classes of each member of these runs; a member has the same ones in all of them, and in all its lives."""
    views = list(views)
    places = sorted({place for view in views for place in view.lanes}, key=natural)
    by_place = {place: style(number) for number, place in enumerate(places)}
    return {member: by_place[place] for view in views for member, place in view.places.items()}


def style(number: int) -> str:
    return f"k{number % len(COLOURS)} t{number // len(COLOURS) % PATTERNS}"
