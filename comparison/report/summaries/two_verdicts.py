"""Both verdicts on a run: whether it went as the model says, and which promises it kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.summaries.figures import MARKS, NOT_APPLICABLE
from comparison.results.outcomes import VerdictOutcome
from comparison.results.promises import Outcome, PromiseOutcome, overall, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The headings of the two.
MODEL, PROMISES = "as the model says", "promises"
#: How a reader is to take each: good, bad, in doubt, or not at all.
GOOD, BAD, DOUBT, FAINT = "good", "bad", "doubt", "faint"
CLASSES: Mapping[str, str] = {
    VerdictOutcome.EXPECTED: GOOD,
    VerdictOutcome.UNKNOWN: DOUBT,
    VerdictOutcome.NOT_EXPECTED: BAD,
    NOT_APPLICABLE: FAINT,
}
#: On a terminal; colours only repeat what the marks say.
STYLES = {GOOD: "green", BAD: "bold red", DOUBT: "yellow", FAINT: "dim"}
_PROMISE_CLASSES = {
    PromiseOutcome.KEPT: GOOD,
    PromiseOutcome.BROKEN: BAD,
    PromiseOutcome.UNKNOWN: DOUBT,
    PromiseOutcome.NOT_ASKED: FAINT,
}
_PROMISE_MARKS = {
    PromiseOutcome.KEPT: MARKS[VerdictOutcome.EXPECTED],
    PromiseOutcome.BROKEN: MARKS[VerdictOutcome.NOT_EXPECTED],
    PromiseOutcome.UNKNOWN: MARKS[VerdictOutcome.UNKNOWN],
    PromiseOutcome.NOT_ASKED: MARKS[NOT_APPLICABLE],
}
#: What the marks of a cell mean: the model's first.
LEGEND = (
    f"the model's verdict: {', '.join(f'{mark} {outcome}' for outcome, mark in MARKS.items())}; "
    f"then promises: + kept, !2 two broken, ?2 two unknown"
)


class Promised(NamedTuple):
    """The promises of one run or several: a mark, how many are broken or else unknown, both in words, and the class."""

    mark: str
    number: str
    text: str  #: below a heading that says of what
    sentence: str
    class_: str
    broken: Sequence[Outcome]
    unknown: Sequence[tuple[str, Sequence[Outcome]]]  #: by the reason


def promised(outcomes: Sequence[Outcome]) -> Promised:
    worst = overall(outcomes)
    broken = [each for each in outcomes if each.outcome is PromiseOutcome.BROKEN]
    unknown: dict[str, list[Outcome]] = {}
    for each in outcomes:
        if each.outcome is PromiseOutcome.UNKNOWN:
            unknown.setdefault(each.shown, []).append(each)
    return Promised(
        mark=_PROMISE_MARKS[worst],
        number=str(len(broken) or sum(map(len, unknown.values())) or ""),
        text=summary(outcomes),
        sentence=summary(outcomes, noun="promises"),
        class_=_PROMISE_CLASSES[worst],
        broken=broken,
        unknown=list(unknown.items()),
    )
