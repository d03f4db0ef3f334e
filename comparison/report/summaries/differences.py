"""The words for what differs between two results, the same in the terminal and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.differences.figures import Differs, by_chance
from comparison.report.summaries.figures import KINDS, number
from comparison.results.metrics import METRICS
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.promised import PROMISES
from comparison.results.promises import PromiseOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.differences.bounds import Judged
    from comparison.differences.compared import Difference, PairDifference
    from comparison.differences.figures import FigureDifference
    from comparison.differences.places import Place
    from comparison.results.result import Spread

#: From ten times as much on, percentages are hard to read.
_MANY = 9
#: What may be chance and changed by less is not shown.
SMALL = 0.05
#: What is said of simulated runs of the same seeds, of which there are too few for a spread.
_SEED_RULE = (
    "The same seed in virtual time on both sides: what differs comes from what was changed alone, for this seed. "
    "--repeat shows others."
)
#: Places that a line names.
_PLACES_MAX = 4


WORSE, CANNOT_BE_KNOWN = "worse than allowed", "cannot be known"


class Sides(NamedTuple):
    """What the two sides are called."""

    before: str
    after: str


DEFAULT_SIDES = Sides("before", "after")


def median_and_range(spread: Spread | None) -> tuple[str, str]:
    """A figure's median, and its range if it has one."""
    if spread is None:
        return "-", ""
    has_range = spread.low != spread.high
    return number(spread.median), f"{number(spread.low)}-{number(spread.high)}" if has_range else ""


def change_of(each: FigureDifference) -> str:
    """By how much a figure changed: `+74%`, or `12x`; from 0, by what; '' where it was not measured."""
    if each.before is None or each.after is None:
        return ""
    if each.change is None:
        return f"{each.after.median - each.before.median:+,.4g}"
    if each.change >= _MANY:
        return f"{each.change + 1:.0f}x"
    return f"{each.change:+.0%}" if abs(each.change) >= 0.1 or not each.change else f"{each.change:+.1%}"


def judgement_of(each: FigureDifference) -> str:
    """Whether a change is for the worse; with a question mark if it may be chance."""
    if each.differs is Differs.UNKNOWN:
        return "not measured on one side"
    if each.differs is Differs.NO:
        return ""
    judgement = ("worse" if each.rises else "better") if METRICS[each.figure].more_is_worse else ""
    return f"{judgement}?" if each.differs is Differs.MAYBE else judgement


def shown_figures(pair: PairDifference) -> list[FigureDifference]:
    """Those that reports show and that differ, without what may be chance and is small."""
    return [each for each in _in_reports(pair) if each.differs is not Differs.NO and not _is_small(each)]


def _in_reports(pair: PairDifference) -> list[FigureDifference]:
    return [each for each in pair.figures if METRICS[each.figure].label]


def _is_small(each: FigureDifference) -> bool:
    return each.differs in (Differs.MAYBE, Differs.FOR_SEED) and each.change is not None and abs(each.change) < SMALL


def left_out_of(pair: PairDifference) -> str:
    """What is said of the figures that are not shown."""
    alike = [each for each in _in_reports(pair) if each.differs is Differs.NO]
    same = sum(median_and_range(each.before) == median_and_range(each.after) for each in alike)
    counts = {
        "the same": same,
        "within the ranges of the repeats": len(alike) - same,
        f"changed by less than {SMALL:.0%}": sum(map(_is_small, _in_reports(pair))),
    }
    return f"not shown: {', '.join(f'{count} {what}' for what, count in counts.items() if count)}"


def has_differences(pair: PairDifference) -> bool:
    return bool(pair.promises or [each for each in pair.verdicts if each.is_on_both_sides] or shown_figures(pair))


def promises_of(pair: PairDifference) -> list[tuple[str, bool]]:
    """What became of the promises that one side alone kept or broke; and whether that is worse."""
    return [
        (
            f"{KINDS[Kind.PROMISE]}, {each.promise}: {_with_evidence(each.before, each.shown_before)}, then "
            f"{_with_evidence(each.after, each.shown_after)}",
            each.became_worse,
        )
        for each in pair.promises
    ]


def _with_evidence(outcome: PromiseOutcome, shown: str) -> str:
    return f"{outcome} ({shown})" if shown and outcome != PromiseOutcome.KEPT else str(outcome)


def checks_of(pair: PairDifference, sides: Sides) -> list[tuple[str, bool]]:
    """The checks that came to another verdict, and whether that is worse; those of one side together."""
    found = []
    for each in pair.verdicts:
        if each.is_on_both_sides:
            counts = f" ({each.expected_before} and {each.expected_after} runs as expected)"
            text = f"{KINDS[each.kind]}, {each.check}: {each.before}, then {each.after}"
            found.append((f"{text}{counts if max(pair.repeats) > 1 else ''}", each.became_worse))
    for side, checks in (
        (sides.before, [each.check for each in pair.verdicts if each.after is None]),
        (sides.after, [each.check for each in pair.verdicts if each.before is None]),
    ):
        if checks:
            found.append((f"checked, only {side}: {', '.join(checks)}", False))
    return found


def rule_of(difference: Difference) -> str:
    """How a difference is told from chance."""
    before, after = (min(pair.repeats[side] for pair in difference.pairs) for side in (0, 1))
    text = "A figure differs where the ranges of its repeats have nothing in common"
    chance = by_chance(before, after)
    text += f": by chance, one in {chance:,} does." if min(before, after) > 1 else "."
    if _is_for_seed(difference):
        return f"{_SEED_RULE} {text}" if min(before, after) > 1 else _SEED_RULE
    return text


def _is_for_seed(difference: Difference) -> bool:
    return any(each.differs is Differs.FOR_SEED for pair in difference.pairs for each in pair.figures)


def where_of(places: Sequence[Place], pairs: Sequence[Place]) -> str:
    """The pairs of scenario and design in few words; '' for all of them."""
    if not places or {*places} == {*pairs}:
        return ""
    for part in ("design", "scenario"):
        names = dict.fromkeys(getattr(place, part) for place in places)
        if {*places} == {pair for pair in pairs if getattr(pair, part) in names}:
            return _listed(names)
    return _listed(map(str, places))


def by_scenario(places: Iterable[Place], most: int | None = None) -> str:
    """`crash in eager, static; pause in eager`: at most so many scenarios."""
    designs: dict[str, list[str]] = {}
    for place in places:
        designs.setdefault(place.scenario, []).append(place.design)
    found = [f"{scenario} in {', '.join(names)}" for scenario, names in designs.items()]
    more = [f"and {len(found) - most} more scenarios"] if most is not None and len(found) > most else []
    return "; ".join([*found[:most], *more])


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = [f"{len(names) - _PLACES_MAX} more"] if len(names) > _PLACES_MAX else []
    return ", ".join([*names[:_PLACES_MAX], *more])


def judged_figure(difference: Difference, judged: Judged) -> FigureDifference | None:
    """The figure that was judged; None for a check."""
    figures = [each for pair in difference.pairs if pair.place == judged.place for each in pair.figures]
    return next((each for each in figures if judged.bound and each.figure == judged.what), None)


def judged_text(difference: Difference, judged: Judged) -> str:
    """What is worse, and by how much; or why that is not known."""
    where = str(judged.place)
    each = judged_figure(difference, judged)
    if each is None:
        is_promise = judged.what in {promise.name for promise in PROMISES}
        worse = PromiseOutcome.BROKEN if is_promise else VerdictOutcome.NOT_EXPECTED
        what = f"the promise {judged.what!r}" if is_promise else judged.label or judged.what
        return f"{where}: {what} {judged.why or f'is {worse}'}" if judged.what else f"{where} {judged.why}"
    values = f"{median_and_range(each.before)[0]} to {median_and_range(each.after)[0]}"
    change = change_of(each)
    if judged.why:
        return f"{where}: {judged.label} {judged.why} ({values})"
    seed = " for this seed" if each.differs is Differs.FOR_SEED else ""
    return f"{where}: {judged.label} {change}{seed} ({values}; {judged.bound} allowed)"


def judged_lists(difference: Difference) -> dict[str, list[Judged]]:
    """What is worse and of what that cannot be known, by title; a single one is in the last line."""
    lists = {WORSE: difference.worse, CANNOT_BE_KNOWN: sorted(difference.unknown, key=lambda each: each.why)}
    return {title: judged for title, judged in lists.items() if len(judged) > 1}


def conclusion(difference: Difference) -> str:
    """The last line: what is worse and by how much; '' where nothing was to be judged."""
    if not difference.bounds:
        return ""
    if not difference.worse and not difference.unknown:
        seed = " for this seed" if _is_for_seed(difference) else ""
        return f"nothing is worse than allowed{seed} ({', '.join(_bounds(difference))})"
    if not difference.worse:
        by_reason: dict[str, list[Judged]] = {}
        for judged in difference.unknown:
            by_reason.setdefault(judged.why, []).append(judged)
        return f"{CANNOT_BE_KNOWN}: {'; '.join(_first(difference, same[0], same) for same in by_reason.values())}"
    return f"{WORSE}: {_first(difference, _most(difference), difference.worse)}"


def _first(difference: Difference, first: Judged, judged: Sequence[Judged]) -> str:
    """One of these in words, and how many more there are."""
    more = f", and {len(judged) - 1} more" if len(judged) > 1 else ""
    return f"{judged_text(difference, first)}{more}"


def _most(difference: Difference) -> Judged:
    """A check before any figure; of these the one that rose most."""

    def order(judged: Judged) -> tuple[bool, float]:
        each = judged_figure(difference, judged)
        if each is None:
            return True, 0.0
        return False, each.change if each.change is not None else float("inf")

    return max(difference.worse, key=order)


def _bounds(difference: Difference) -> list[str]:
    return [f"{bound.figure}={bound.text}" if bound.figure else bound.text for bound in difference.bounds]
