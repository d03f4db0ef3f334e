"""A choice on a terminal: the question, a row for each design, the advice, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from comparison.choosing.costs import MEASURES
from comparison.report.sweep.choice_words import (
    IN_A_CLIENT,
    cells_texts,
    figure_texts,
    is_judged,
    meets_text,
    question,
    reasons,
    runs_text,
    source_text,
)
from comparison.screen.text_table import Column, TextTable, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from comparison.choosing.answer import Choice


#: Headings are wrapped at this width.
_WIDEST = 12


def print_choice(choice: Choice, console: Console) -> None:
    """Print everything, without blanks at the ends of lines."""
    console.file.write(trimmed(console, *_parts(choice)))


def _parts(choice: Choice) -> Iterator[RenderableType]:
    yield Text(question(choice), style="bold")
    yield Text(source_text(choice), style="dim")
    yield Text()
    yield _table(choice)
    yield Text()
    yield from (Text(each) for each in (*cells_texts(choice), *reasons(choice)))
    if choice.answered_by:
        yield Text(f"This sweep would answer it, then --from runs/choice: {choice.answered_by}")
    yield Text(f"\n{choice.advice}", style="bold")
    if choice.why:
        yield Text(choice.why)
    if choice.in_a_client:
        yield Text(f"\n{IN_A_CLIENT}:")
        yield from (Text(f"- {design}: {how}") for design, how in choice.in_a_client.items())
    yield Text("\nLeft out:")
    yield from (Text(f"- {each}") for each in choice.left_out)
    yield Text(f"\nThe same again: {choice.command}", style="dim")


def _table(choice: Choice) -> TextTable:
    judged = is_judged(choice)
    columns = [Column(heading="design", is_label=True)]
    columns += [Column(heading="tolerated")] if judged else []
    columns += [Column(heading=each.heading, is_right=True, wraps=True, widest=_WIDEST) for each in MEASURES]
    columns.append(Column(heading="runs", is_right=True))
    table = TextTable(columns, gaps=(2, 1))
    for design in choice.designs:
        cells = ["\n".join(filter(None, figure_texts(design.figures[each.metric]))) for each in MEASURES]
        table.add(design.design, *([meets_text(design)] if judged else []), *cells, runs_text(design))
    return table
