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
#: The place of a member of ours, and which of the members of its process it is.
_PLACE = re.compile(r"m([1-9][0-9]{0,8})(?:-([0-9]{1,8}))?")
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
ADDITION = {"grow": "#B9C2CE", "notice": "#6B7684", "hear": "#B0692E", "wait": "#D8D2C4", "deliver": "#3FA79B"}
#: What the templates need.
PALETTE = {"colours": COLOURS, "phases": {**PHASES, **ADDITION}}


def styles(views: Iterable[RunView]) -> Mapping[str, str]:
    """The classes of each member and place of these runs; a member has the same ones in all its lives.

    m1 has the first, as in the playground and a replay, where others have no lane; m1-0 and m1-1, members of one
    process, have its colour, each with another pattern. Other names have an order.
    """
    views = list(views)
    places = sorted({place for view in views for place in view.lanes}, key=natural)
    ours = [
        (int(found[1]) - 1, int(found[2]) + 1 if found[2] else 0)
        for place in places
        if (found := _PLACE.fullmatch(place))
    ]
    are_ours = len(ours) == len(places) and all(number < len(COLOURS) * PATTERNS for number, _ in ours)
    own = ours if are_ours else [(number, 0) for number in range(len(places))]
    by_place = {place: style(*of) for place, of in zip(places, own, strict=True)}
    return {**by_place, **{member: by_place[place] for view in views for member, place in view.places.items()}}


def style(number: int, part: int = 0) -> str:
    return f"k{number % len(COLOURS)} t{(number // len(COLOURS) + part) % PATTERNS}"
