"""Fill `four-phases.md`, the phases of a member in each design, and draw its figures.

They come from the recorded conversations in `four-phases.json` (`phases` records them anew); a test compares page,
figures and recording.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from docs.generators.pages import DOCS, FIGURES, filled, folded, markdown_table
from docs.generators.phase_picture import picture
from docs.generators.phases import LEADER, NEW, OTHER, PHASES, WAITS, conversations
from kernel.designs import CONSUMER, COOPERATIVE, EAGER, SERVER, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from docs.generators.phases import Happened

PAGE = DOCS / "four-phases.md"
#: The designs whose conversation is drawn.
DRAWN = (EAGER, COOPERATIVE, CONSUMER, SERVER, ZOOKEEPER)
_ALT_TEXT = "{}: the new member's phases and requests in the order of the table below"


def _shown(design: str) -> str:
    return f"![{_ALT_TEXT.format(design)}](diagrams/figures/phases-{design}.svg)"


def matrix(recorded: Mapping[str, Sequence[Happened]]) -> str:
    """Phases by design: what the new member sent."""
    rows = [
        (f"{phase} {name}", *(sent(conversation, phase) for conversation in recorded.values()))
        for phase, name in PHASES.items()
    ]
    return markdown_table(("phase", *(f"`{design}`" for design in recorded)), rows)


def sent(conversation: Iterable[Happened], phase: int) -> str:
    """The new member's requests and operations of a phase, counted, in the order of their first one."""
    counts: dict[str, int] = {}
    for each in conversation:
        if each.who == NEW and each.phase == phase and each.kind in ("request", "operation"):
            what = each.what
            if each.kind == "operation":
                what = f"{what} {_place(each.detail)}"
            elif each.detail == WAITS:
                what = f"{what}, waiting"
            counts[what] = counts.get(what, 0) + 1
    return "<br>".join(f"{what}{f' x {number}' if number > 1 else ''}" for what, number in counts.items()) or "–"


def _place(path: str) -> str:
    """The folder of a node: `ids` for ids/<member>, `/brokers/ids` for /brokers/ids/1."""
    return next(
        (place for place in ("owners", "offsets", "/brokers/ids", "/brokers/topics", "ids") if path.startswith(place)),
        path,
    )


def _rows(conversation: Sequence[Happened]) -> str:
    """A row for each step, one for the same step several times in a row; `ms` is the first one's.

    A column that says the same in every row is left out.
    """
    rows = []
    for (who, phase, what, answer), steps in groupby(conversation, key=_row):
        first, *others = steps
        rows.append((f"{first.ms:.0f}", who, phase, f"{what}{f' x {1 + len(others)}' if others else ''}", answer))
    headings = ("ms", "who", "phase", "what", "answer")
    shown = [number for number, _ in enumerate(headings) if len({row[number] for row in rows}) > 1]
    return markdown_table([headings[number] for number in shown], [[row[number] for number in shown] for row in rows])


def _row(each: Happened) -> tuple[str, str, str, str]:
    who = {NEW: "new member", LEADER: "leader", OTHER: "another member"}.get(each.who, "coordinator")
    what = f"{each.what} {each.detail}" if each.kind == "operation" else each.what
    marked = f"*{what}*" if each.kind in ("note", "state") else f"`{what}`"
    return who, str(each.phase or ""), marked, "" if each.kind == "operation" else each.detail


def files() -> Mapping[Path, str]:
    """The page and its figures."""
    recorded = conversations()
    shown = {design: f"{_shown(design)}\n\n{folded('As a table', _rows(recorded[design]))}" for design in DRAWN}
    figures = {FIGURES / f"phases-{name}.svg": picture(name, recorded[name]) for name in DRAWN}
    return {PAGE: filled(PAGE, {"matrix": matrix(recorded), **shown}), **figures}
