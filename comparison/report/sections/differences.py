"""What differs between two results, above everything else on their page."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

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
from comparison.results.metrics import METRICS, label_of
from comparison.screen.printable import printable_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.differences.compared import Difference, PairDifference
    from comparison.differences.figures import FigureDifference
    from comparison.differences.places import Place

#: Of so many scenarios and designs, all are shown beside each other; and the most, for the size of the page.
FEW, DRAWN_MAX = 8, 80
_CLASSES = {"worse": "bad", "better": "good"}


class FigureRow(NamedTuple):
    """A figure of both sides, each with its range; `judgement` says whether the change is for the worse."""

    name: str
    label: str
    meaning: str
    values: Sequence[tuple[str, str]]
    change: str
    judgement: str
    class_: str


class PairRows(NamedTuple):
    """What differs of a scenario in a design; `told` are promises and checks, each with whether it is worse."""

    name: str
    told: Sequence[tuple[str, bool]]
    figures: Sequence[FigureRow]
    left_out: str


class Differences(NamedTuple):
    """What the template shows."""

    title: str
    conclusion: str  #: what of it is worse than allowed; '' where nothing was to be judged
    class_: str  #: of the conclusion
    judged: Sequence[tuple[str, Sequence[str]]]
    sides: Sides
    folders: Sequence[tuple[str, str, Sequence[str]]]  #: each side with its commands
    circumstances: Sequence[Sequence[str]]
    doubts: Sequence[str]
    rule: str
    pairs: Sequence[PairRows]
    drawn: Sequence[Place]  #: those that have sections of their own
    alike: str
    only: Sequence[tuple[str, str]]


def differences(difference: Difference) -> Differences:
    """The section of two results compared."""
    found: Difference = printable_all(difference)
    sides = Sides(found.before.name, found.after.name)
    places = [pair.place for pair in found.pairs]
    differing = [pair for pair in found.pairs if has_differences(pair)]
    only = [(sides.before, found.only_before), (sides.after, found.only_after)]
    return Differences(
        title=_title(sides, differing, found),
        conclusion=_sentence(conclusion(found)),
        class_="bad" if found.worse else "doubt" if found.unknown else "good",
        judged=[
            (_sentence(title), [judged_text(found, each) for each in judged])
            for title, judged in judged_lists(found).items()
        ],
        sides=sides,
        folders=[
            (side.name, side.folder, [shlex.join(command) for command in side.commands])
            for side in (found.before, found.after)
        ],
        circumstances=[
            [each.what, each.before, each.after, where_of(each.where, places)] for each in found.circumstances
        ],
        doubts=found.doubts,
        rule=rule_of(found),
        pairs=[_pair(pair, sides) for pair in differing],
        drawn=drawn(found),
        alike=by_scenario(pair.place for pair in found.pairs if pair not in differing),
        only=[(name, by_scenario(missing)) for name, missing in only if missing],
    )


def drawn(difference: Difference) -> list[Place]:
    """The scenarios and designs to be shown beside each other: those that differ, and of few all."""
    pairs = [pair for pair in difference.pairs if has_differences(pair)] or difference.pairs[:FEW]
    return [pair.place for pair in (difference.pairs if len(difference.pairs) <= FEW else pairs[:DRAWN_MAX])]


def _title(sides: Sides, differing: Sequence[PairDifference], found: Difference) -> str:
    return _sentence(f"{sides.before} and {sides.after}: {_counted(differing, found)}")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _counted(differing: Sequence[PairDifference], found: Difference) -> str:
    if not differing:
        return "nothing differs"
    of = ""
    if len(found.pairs) == 1:
        of = f" in {found.pairs[0].place}"
    elif len(differing) < len(found.pairs):
        of = f", in {len(differing)} of {len(found.pairs)} scenarios and designs"
    judgements = Counter(judgement_of(each) for pair in differing for each in shown_figures(pair))
    figures = judgements.total()
    promises = sum(len(pair.promises) for pair in differing)
    parts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((promises, "promise"), (figures, "figure"))
        if count
    ]
    return f"{' and '.join(parts) or 'checks'} differ{'s' if promises + figures == 1 else ''}{of}{_judged(judgements)}"


def _judged(judgements: Counter[str]) -> str:
    """How many figures are worse and how many better."""
    words = {"worse": "worse", "better": "better", "worse?": "perhaps worse", "better?": "perhaps better"}
    counts = [f"{judgements[each]} {word}" for each, word in words.items() if judgements[each]]
    return f": {', '.join(counts)}" if counts else ""


def _pair(pair: PairDifference, sides: Sides) -> PairRows:
    return PairRows(
        name=str(pair.place),
        told=[*promises_of(pair), *checks_of(pair, sides)],
        figures=[_row(each) for each in shown_figures(pair)],
        left_out=left_out_of(pair),
    )


def _row(each: FigureDifference) -> FigureRow:
    judgement = judgement_of(each)
    return FigureRow(
        name=each.figure,
        label=label_of(each.figure),
        meaning=f"{each.figure}: {METRICS[each.figure].meaning}",
        values=[median_and_range(each.before), median_and_range(each.after)],
        change=change_of(each),
        judgement=judgement,
        class_=_CLASSES.get(judgement, "faint"),
    )
