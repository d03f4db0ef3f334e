"""Two results compared, on the terminal: the circumstances first, then what differs of each scenario and design."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from comparison.report.summaries.differences import (
    Sides,
    by_scenario,
    change_of,
    checks_of,
    conclusion,
    has_differences,
    judged_lists,
    judged_text,
    judgement_of,
    left_out_of,
    median_and_range,
    promises_of,
    rule_of,
    shown_figures,
    where_of,
)
from comparison.results.metrics import label_of
from comparison.screen.counted import counted
from comparison.screen.text_table import Column, Heading, TextTable, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from comparison.differences.bounds import Judged
    from comparison.differences.compared import Difference, PairDifference
    from comparison.differences.figures import FigureDifference

#: To which width labels and values are wrapped to make room for other columns.
_LABELS, _VALUES = 16, 12
#: Judgements that are listed, and scenarios of which there is nothing more to say.
_JUDGED_MAX, _SCENARIOS_MAX = 20, 12
_STYLES = {"worse": "bold red", "better": "green"}


def render(difference: Difference, console: Console, *, with_all: bool = False) -> str:
    """What the console shows; `with_all` figures, or only those that differ."""
    differing = [pair for pair in difference.pairs if has_differences(pair) or with_all]
    parts: list[RenderableType] = [*_circumstances(difference)]
    for pair in differing:
        parts += _pair(difference, pair, with_all=with_all)
    parts += _others(difference, [pair for pair in difference.pairs if pair not in differing])
    return trimmed(console, *parts, *_conclusion(difference))


def _circumstances(difference: Difference) -> Iterator[RenderableType]:
    sides = (difference.before, difference.after)
    for side in sides:
        yield Text.assemble((side.name, "bold"), f": {side.folder}")
        for command in side.commands:
            yield Padding(Text(shlex.join(command), style="dim"), (0, 0, 0, 2))
    pairs = [pair.place for pair in difference.pairs]
    # Both values in one column: names of settings are long, and a table in blocks would part the values.
    table = TextTable(
        [
            Column(heading="what differs", is_label=True, wraps=True, narrowest=_LABELS),
            Column(heading=f"{difference.before.name} → {difference.after.name}", wraps=True, narrowest=_VALUES),
        ],
        is_framed=True,
    )
    for each in difference.circumstances:
        place = where_of(each.where, pairs)
        table.add(each.what, f"{each.before} → {each.after}{f' ({place})' if place else ''}")
    if difference.circumstances:
        yield table
    else:
        yield Text("\nthe same settings, versions, machine and seeds on both sides\n")
    for text in difference.doubts:
        yield Text(f"warning: {text}", style="yellow")
    yield Text(rule_of(difference) + "\n", style="dim")


def _pair(difference: Difference, pair: PairDifference, *, with_all: bool) -> Iterator[RenderableType]:
    before, after = pair.repeats
    repeats = counted(before, "run") if before == after else f"{before} and {after} runs"
    yield Heading(Text.assemble((str(pair.place), "bold"), f"  {repeats}"))
    for texts in (promises_of(pair), checks_of(pair, Sides(difference.before.name, difference.after.name))):
        for text, is_worse in texts:
            yield Padding(Text(text, style=_STYLES["worse"] if is_worse else ""), (0, 0, 0, 1))
    figures = pair.figures if with_all else shown_figures(pair)
    if figures:
        yield _figures(difference, figures)
    if not with_all and (text := left_out_of(pair)):
        yield Text(f"{text} (--details)", style="dim")
    yield Text()


def _figures(difference: Difference, figures: Sequence[FigureDifference]) -> TextTable:
    table = TextTable(
        [
            Column(heading="figure", is_label=True, wraps=True, narrowest=_LABELS),
            *(Column(heading=side.name, is_right=True) for side in (difference.before, difference.after)),
            Column(heading="change", is_right=True),
            Column(wraps=True, narrowest=len("measured")),
        ],
        is_framed=True,
    )
    for each in figures:
        judgement = judgement_of(each)
        values = ("\n".join(filter(None, median_and_range(spread))) for spread in (each.before, each.after))
        table.add(label_of(each.figure), *values, change_of(each), Text(judgement, style=_STYLES.get(judgement, "")))
    return table


def _others(difference: Difference, alike: Sequence[PairDifference]) -> Iterator[RenderableType]:
    if alike:
        yield Text(f"nothing differs in {by_scenario((pair.place for pair in alike), _SCENARIOS_MAX)}")
    for side, only in ((difference.before, difference.only_before), (difference.after, difference.only_after)):
        if only:
            yield Text(f"only {side.name}: {by_scenario(only, _SCENARIOS_MAX)}")


def _conclusion(difference: Difference) -> Iterator[RenderableType]:
    for title, judged in judged_lists(difference).items():
        yield Text(f"{title}:")
        yield Padding(Group(*_listed(difference, judged)), (0, 0, 0, 2))
    if text := conclusion(difference):
        yield Text(f"{text}", style=_STYLES["worse"] if difference.worse else "")


def _listed(difference: Difference, judged: Sequence[Judged]) -> Iterator[RenderableType]:
    yield from (Text(judged_text(difference, each)) for each in judged[:_JUDGED_MAX])
    if more := judged[_JUDGED_MAX:]:
        yield Text(f"{len(more)} more (--format json)")
