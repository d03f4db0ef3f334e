"""What a week costs in each design as a page, or as a section of a sweep's page; it loads nothing and needs no script.

It shows one input, with the command for others: all arithmetic is in `comparison.choosing`, and none on the page.
"""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple

from comparison.choosing.answer import choice_of
from comparison.choosing.choice import DEFAULT_EVENTS, EVENTS, Group, Tolerated
from comparison.choosing.costs import MEASURES, STANDSTILL_IN_ALL, condensed, why_unusable
from comparison.report.markup import drawing, line, rect, render, text
from comparison.report.sweep.choice_words import (
    CLASSES,
    IN_A_CLIENT,
    cells_texts,
    figure_texts,
    is_judged,
    meets_text,
    outcome_of,
    question,
    reasons,
    runs_text,
    source_text,
)
from comparison.screen.brief_number import brief, brief_range

if TYPE_CHECKING:
    from markupsafe import Markup

    from comparison.choosing.answer import Choice
    from comparison.choosing.choice import DesignCosts
    from comparison.results.sweep import SweepData

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LEFT, _WIDTH, _ROW = 90, 350, 26


class _Row(NamedTuple):
    """A design."""

    design: str
    outcome: str
    meets: str
    cells: list[tuple[str, str]]
    runs: str


class Chosen(NamedTuple):
    """A choice as its section shows it."""

    question: str
    source: str
    judged: bool
    headings: list[str]
    rows: list[_Row]
    picture: Markup | None
    reasons: list[str]
    answered_by: str
    advice: str
    why: str
    clients: str
    in_a_client: dict[str, str]
    left_out: list[str]
    command: str


def chosen(choice: Choice) -> Chosen:
    """The section of a choice."""
    return Chosen(
        question=question(choice),
        source=source_text(choice),
        judged=is_judged(choice),
        headings=[each.heading for each in MEASURES],
        rows=[_row(each) for each in choice.designs],
        picture=_ranges(choice),
        reasons=[*cells_texts(choice), *reasons(choice)],
        answered_by=choice.answered_by,
        advice=choice.advice,
        why=choice.why,
        clients=IN_A_CLIENT,
        in_a_client=choice.in_a_client,
        left_out=choice.left_out,
        command=choice.command,
    )


def choice_page(choice: Choice) -> str:
    """The whole file."""
    return str(render("sweep/choice.html.j2", policy=POLICY, classes=CLASSES, chosen=chosen(choice)))


def chosen_by(data: SweepData) -> Chosen | None:
    """The section of a sweep's page, for a group in the middle of its grid; None if nothing can be chosen by it."""
    if why_unusable(data):
        return None
    costs = condensed(data)
    has = {cell.scenario for cell in costs.cells}
    events = {each.name: DEFAULT_EVENTS.get(each.name, 0) for each in EVENTS if has.issuperset(each.scenarios or ["-"])}
    if not any(events.values()):
        return None
    group = Group(
        members=median_low({cell.members for cell in costs.cells}),
        partitions=median_low({cell.partitions for cell in costs.cells}),
        rate=costs.rate or 0,
        slowest_record_s=0,
    )
    return chosen(choice_of(costs, group, events, Tolerated(), of=f"runs/{data.name}"))


def _row(design: DesignCosts) -> _Row:
    return _Row(
        design=design.design,
        outcome=outcome_of(design),
        meets=meets_text(design),
        cells=[figure_texts(design.figures[each.metric]) for each in MEASURES],
        runs=runs_text(design),
    )


def _ranges(choice: Choice) -> Markup | None:
    """How long partitions stand still in all, a line for each design; None if nobody can say of any."""
    found = [(each.design, bounds) for each in choice.designs if (bounds := each.figures[STANDSTILL_IN_ALL].bounds)]
    highest = max((bounds.high for _, bounds in found), default=0)
    if not highest:
        return None
    scale = (_WIDTH - _LEFT - 20) / highest
    shapes = [text(f"standstill of all partitions, 0 to {brief(highest)} partition-s a week", 4, 12, class_="legend")]
    for place, (design, bounds) in enumerate(found):
        y = 22 + _ROW * (place + 0.5)
        low, middle, high = (_LEFT + scale * value for value in (bounds.low, bounds.middle, bounds.high))
        hint = f"{design}: about {brief(bounds.middle)}, {brief_range(bounds.low, bounds.high, ' to ')}"
        shapes.append(text(design, _LEFT - 8, y + 4, text_anchor="end", class_="lane"))
        shapes.append(line(_LEFT, y, _WIDTH - 20, y, class_="rail"))
        shapes.append(rect(low, y - 5, max(high - low, 2.0), 10, class_="range", hint=hint))
        shapes.append(rect(middle - 1.5, y - 9, 3, 18, class_="middle", hint=hint))
    title = "Standstill of all partitions in a week, by design: the range of the runs, and their middle"
    return drawing(title, shapes, (_WIDTH, 22 + _ROW * len(found) + 6), class_="heat ranges", width=_WIDTH)
