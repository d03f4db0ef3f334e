"""How members and phases are distinguished: a colour and a pattern by a member's place, a name inside the bar.

Okabe and Ito's hues, lightened so that black text is readable on each; three patterns make twenty-four members
distinct. Bars are drawn stretched, so patterns have horizontal lines only. `palette.css.j2` and `patterns.svg.j2` are
made from these tables, for the report, for files and for the playground.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.report.view.model import RunView

COLOURS = ("#56B4E9", "#E69F00", "#3DB88B", "#DB94BB", "#F0E442", "#EF8354", "#9FB2F5", "#C2AD7F")
#: The place of a member of ours.
_PLACE = re.compile(r"m[1-9][0-9]{0,8}")
#: Patterns by number, with the stripes that they have in a height of 4: plain, lines, and two halves.
PATTERNS = 3
#: Phases of a rebalance in their order, and of an addition of partitions.
PHASES = {
    "detect": "#8F8F8F",
    "stop": "#E07A78",
    "release": "#B8DCD0",
    "join": "#40887C",
    "decide": "#A68BD8",
    "claim": "#88B828",
    "resume": "#B5AC3E",
    "backoff": "#A07C6C",
}
ADDITION = {"grow": "#B9C2CE", "notice": "#6B7684", "hear": "#E3B341", "wait": "#D8D2C4", "deliver": "#3FA79B"}
#: What the templates need.
PALETTE = {"colours": COLOURS, "phases": {**PHASES, **ADDITION}}


def styles(views: Iterable[RunView]) -> Mapping[str, str]:
    """The classes of each member and place of these runs; a member has the same ones in all its lives.

    m1 has the first, as in the playground and a replay, where others have no lane. Other names have an order.
    """
    views = list(views)
    places = sorted({place for view in views for place in view.lanes}, key=natural)
    numbers = [int(place[1:]) - 1 if _PLACE.fullmatch(place) else -1 for place in places]
    are_ours = all(0 <= each < len(COLOURS) * PATTERNS for each in numbers)
    own = numbers if are_ours else range(len(places))
    by_place = {place: style(number) for place, number in zip(places, own, strict=True)}
    return {**by_place, **{member: by_place[place] for view in views for member, place in view.places.items()}}


def style(number: int) -> str:
    return f"k{number % len(COLOURS)} t{number // len(COLOURS) % PATTERNS}"
