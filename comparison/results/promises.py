"""What a user of a consumer group wants to rely on, whichever design it has, and whether each run kept it.

A verdict says whether a run went as the model says, and the model says that some designs break some promises: such a
run is as expected, and not good. These outcomes are the second column beside each verdict.

They are derived from a run's figures and verdicts, and not stored beside them: there is nothing to measure, no two
columns can contradict each other, and results that were written before have them as well. As for verdicts, nothing is
kept in a trace with problems, or in a run that did not go to its end; what was seen to break is broken.

That nothing is delivered twice is no promise here: no design makes it (`comparison.pipeline.figures.unpromised`). How
long a partition stands still, and what moves, is a price and not a promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from comparison.results.keys import COMPLETE, FORMING
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.refusals import refused_as_set, refused_in_words
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run, Verdict

    _ByDesign = Mapping[str, Sequence["Outcome"]]

#: The check of whether every partition has one owner again.
SETTLES = "settles"
#: Of more sets of designs than these that broke promises, a title counts what each design broke.
_GROUPS_MAX = 3
_ONE = {
    VerdictOutcome.EXPECTED: "the run is as the model says",
    VerdictOutcome.NOT_EXPECTED: "the run is not as the model says",
    VerdictOutcome.UNKNOWN: "whether the run is as the model says is unknown",
}


class PromiseOutcome(StrEnum):
    """What became of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    NOT_ASKED = "not asked"  #: nothing happened that could have broken it


KEPT, BROKEN, UNKNOWN, NOT_ASKED = PromiseOutcome
#: The worst first.
_WORST = (BROKEN, UNKNOWN, KEPT, NOT_ASKED)


def _always(_run: Run) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise: broken by a figure that is not 0, or by a check on a design's promise that came out otherwise."""

    name: str
    meaning: str
    figures: Mapping[str, str]  #: by names of metrics, as they are shown; unknown if one of these is
    if_known: Mapping[str, str]  #: likewise, but these need not be known
    checks: tuple[str, ...]  #: on promises of designs that this one includes, by their names
    not_asked: Callable[[Run], str] = _always  #: why it was not asked; '' if it was
    others: Callable[[Run], str] = _always  #: what else broke it; '' if nothing did

    def failed(self, run: Run) -> list[Verdict]:
        """The checks on it that are not as expected, so that it was broken against the model."""
        verdicts = (_verdict(run, check) for check in self.checks)
        return [each for each in verdicts if each is not None and each.outcome == VerdictOutcome.NOT_EXPECTED]


class Outcome(NamedTuple):
    """What became of a promise in one run or several, and the figure that shows it, or why nothing does."""

    promise: Promise
    outcome: PromiseOutcome
    shown: str


def _without_commits(run: Run) -> str:
    return "nothing was committed" if run.metrics.get("commit_requests") == 0 and not _any(run, "commits") else ""


def _without_pauses(run: Run) -> str:
    names = ("pauses_dropped", "pauses_moved", "pauses_outlasting")
    return "" if any(_any(run, name) for name in names) else "no partition was paused in a rebalance"


def _without_changes(run: Run) -> str:
    if _verdict(run, SETTLES) is None:
        return "the scenario does not wait for it"
    return "" if any(change.change != FORMING for change in run.changes) else "no change was made in this run"


def _unread(run: Run) -> str:
    added = [change.added for change in run.changes if change.added is not None]
    unowned = sum(each.partitions - each.owned for each in added)
    return f"added partitions without an owner: {unowned}" if unowned else ""


def _as_set(run: Run) -> str:
    if run.refusals and all(refused_as_set(each) for each in run.refusals):
        return "a member was refused as the group's limit or its instance id demand"
    return ""


def _refused(run: Run) -> str:
    return refused_in_words(each for each in run.refusals if not refused_as_set(each))


#: All promises, in display order.
PROMISES: tuple[Promise, ...] = (
    Promise(
        "every record is delivered",
        "Each record that was acknowledged to its producer reached a member, once or more often.",
        {"lost": "lost"},
        {},
        ("no record lost",),
    ),
    Promise(
        "no record is skipped",
        "No reset of a position left out records that came after the group.",
        {"skipped": "skipped by a reset"},
        {},
        ("reset only without a commit",),
    ),
    Promise(
        "one member delivers a partition",
        "No two members delivered a partition at once, and none delivered one that another one owned.",
        {"two_delivering_partition_s": "two delivering, partition-s", "stale_deliveries": "delivered by a non-owner"},
        {},
        (),
    ),
    Promise(
        "only the owner commits",
        "No commit was accepted from a member while another one owned the partition.",
        {"stale_writes": "commits by a non-owner"},
        {},
        ("no stale write", "old commits refused", "old coordinator silenced", "no write of an ended session"),
        not_asked=_without_commits,
    ),
    Promise(
        "no offset moves back",
        "No accepted commit moved the committed offset of a partition back.",
        {"moved_back": "offsets moved back"},
        {},
        ("no offset moved back",),
        not_asked=_without_commits,
    ),
    Promise(
        "reading goes on where it was committed",
        "Who takes over a partition begins at its committed offset, and no committed offset was lost.",
        {"started_behind": "started behind a commit"},
        {
            "reset_behind": "reset behind a commit",
            "final_behind": "final offsets behind the last commit",
            "final_beyond": "final offsets beyond the log",
            "old_offsets_used": "begun at an old topic's offset",
        },
        ("final offsets", "no commit lost", "offsets carried over", "offsets kept", "begins the new topic anew"),
        not_asked=_without_commits,
    ),
    Promise(
        "every partition has an owner again",
        "After each change and each fault every partition had one owner, and so had those that were added.",
        {},
        {"left_unnamed": "partitions without an owner at the end"},
        (SETTLES, "new partitions read", "owner znodes kept"),
        not_asked=_without_changes,
        others=_unread,
    ),
    Promise(
        "no member gives up",
        "No member gave up a rebalance, so that its application got an error.",
        {"rebalances_failed": "rebalances given up"},
        {},
        ("nobody gives up", "outlasts the session"),
    ),
    Promise(
        "every member gets in",
        "The group refused no member, except by its limit of members, or for the instance id of another one.",
        {},
        {},
        ("nobody is refused",),
        not_asked=_as_set,
        others=_refused,
    ),
    Promise(
        "a paused partition stays paused",
        "No rebalance ended the pause of a partition that stayed with its member.",
        {"pauses_dropped": "pauses dropped by a rebalance"},
        {},
        ("pauses kept",),
        not_asked=_without_pauses,
    ),
)


def promises_of(run: Run) -> list[Outcome]:
    """What became of each promise in a run."""
    return [Outcome(promise, *_outcome(promise, run)) for promise in PROMISES]


def _outcome(promise: Promise, run: Run) -> tuple[PromiseOutcome, str]:
    if run.problems:
        return UNKNOWN, run.problems[0]
    figures = {name: run.metrics.get(name) for name in (*promise.figures, *promise.if_known)}
    words = {**promise.figures, **promise.if_known}
    if seen := [_shown(words[name], value) for name, value in figures.items() if value]:
        return BROKEN, "; ".join(seen)
    if other := promise.others(run) or "; ".join(each.reason for each in promise.failed(run)):
        return BROKEN, other
    if reason := promise.not_asked(run):
        return NOT_ASKED, reason
    return _unless_broken(promise, run, figures)


def _unless_broken(promise: Promise, run: Run, figures: Mapping[str, float | None]) -> tuple[PromiseOutcome, str]:
    if lacking := next((words for name, words in promise.figures.items() if figures[name] is None), ""):
        return UNKNOWN, f"{lacking}: not known from this trace"
    if run.outcome != COMPLETE:
        return UNKNOWN, "the run did not go to its end"
    if SETTLES in promise.checks and (settles := _verdict(run, SETTLES)) is not None:
        return (UNKNOWN if settles.outcome == VerdictOutcome.UNKNOWN else KEPT), settles.reason
    known = [_shown(words, figures[name] or 0) for name, words in promise.figures.items()]
    return KEPT, "; ".join(known) or "nothing was seen that breaks it"


def _verdict(run: Run, check: str) -> Verdict | None:
    return next((each for each in run.verdicts if each.check == check and each.kind == Kind.PROMISE), None)


def _any(run: Run, name: str) -> bool:
    return bool(run.metrics.get(name))


def _shown(words: str, value: float) -> str:
    return f"{words}: {value:,.10g}"


# -- several runs ------------------------------------------------------------------------------------------------------


def over(runs: Sequence[Run]) -> list[Outcome]:
    """What became of each promise in several runs: broken if in one of them, and kept if in all that asked."""
    of_runs = [promises_of(run) for run in runs]
    return [_worst([outcomes[place] for outcomes in of_runs]) for place in range(len(PROMISES))]


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    found = min(outcomes, key=lambda each: _WORST.index(each.outcome))
    times = sum(each.outcome == found.outcome for each in outcomes)
    if times == len(outcomes) and len({each.shown for each in outcomes}) == 1:
        return found
    return found._replace(shown=f"in {times} of {len(outcomes)} runs, the first: {found.shown}")


def by_design(scenario: Scenario, result: Result) -> dict[str, list[Outcome]]:
    """What became of each promise in a scenario, by design."""
    runs: dict[str, list[Run]] = {}
    for place in scenario.runs:
        runs.setdefault(result.runs[place].design, []).append(result.runs[place])
    return {design: over(made) for design, made in runs.items()}


# -- words -------------------------------------------------------------------------------------------------------------


def overall(outcomes: Iterable[Outcome]) -> PromiseOutcome:
    """The worst of several promises: what became of all that were asked."""
    return min((each.outcome for each in outcomes), key=_WORST.index, default=NOT_ASKED)


def summary(outcomes: Iterable[Outcome], *, noun: str = "") -> str:
    """`kept`, `broke 2 of 6`, `broke 1 of 6, 2 unknown`, `3 of 6 unknown`, or `not asked`.

    With a noun, `promises kept`, `broke 2 of 6 promises`, and so on.
    """
    asked = [each.outcome for each in outcomes if each.outcome != NOT_ASKED]
    broken, unknown = asked.count(BROKEN), asked.count(UNKNOWN)
    before, after = (f"{noun} ", f" {noun}") if noun else ("", "")
    if broken:
        return f"broke {broken} of {len(asked)}{after}" + (f", {unknown} unknown" if unknown else "")
    if unknown:
        return f"{before}unknown" if unknown == len(asked) else f"{unknown} of {len(asked)}{after} unknown"
    return f"{before}{KEPT if asked else NOT_ASKED}"


def title(result: Result) -> str:
    """`all 21 runs as the model says; zookeeper broke 2 promises that the others keep`: a result in one sentence."""
    return "; ".join(part for part in (as_the_model_says(result.runs), *_of_promises(result)) if part)


def as_the_model_says(runs: Sequence[Run]) -> str:
    """How many runs went as the model says."""
    verdicts = [run.verdict for run in runs]
    counts = {each: verdicts.count(each) for each in VerdictOutcome}
    if len(runs) == 1:
        return _ONE[verdicts[0]]
    if counts[VerdictOutcome.EXPECTED] == len(runs):
        return f"{'both' if len(runs) == 2 else f'all {len(runs)}'} runs as the model says"
    expected = f"{counts[VerdictOutcome.EXPECTED] or 'none'} of {len(runs)} runs as the model says"
    others = ((VerdictOutcome.NOT_EXPECTED, "not"), (VerdictOutcome.UNKNOWN, "unknown"))
    return ", ".join([expected, *(f"{counts[outcome]} {words}" for outcome, words in others if counts[outcome])])


def _of_promises(result: Result) -> list[str]:
    found = [by_design(scenario, result) for scenario in result.scenarios]
    designs = list(dict.fromkeys(run.design for run in result.runs))
    broken = {design: names for design in designs if (names := broken_by(design, found))}
    if not broken:
        return [_none_broken(found)]
    if len(result.runs) == 1:
        return [f"it {summary(promises_of(result.runs[0]), noun='promises')}"]
    together = _broken_together(broken)
    if len(together) > _GROUPS_MAX:
        return [", ".join(f"{design} broke {_counted(len(names))}" for design, names in broken.items())]
    return [_of_group(who, names, designs, found) for who, names in together.items()]


def _broken_together(broken: Mapping[str, Sequence[str]]) -> dict[tuple[str, ...], list[str]]:
    """The promises by the designs that broke them; those of one design first."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name in (promise.name for promise in PROMISES):
        if who := tuple(design for design, names in broken.items() if name in names):
            together.setdefault(who, []).append(name)
    return dict(sorted(together.items(), key=lambda each: len(each[0])))


def _of_group(who: Sequence[str], names: Sequence[str], designs: Sequence[str], found: Sequence[_ByDesign]) -> str:
    if len(who) == len(designs) > 2:
        return f"all designs broke {_counted(len(names))}"
    kept = sum(_others_keep(who[0], name, found) for name in names) if len(who) == 1 else 0
    keep = f", {kept} of which the others keep" if kept else ""
    return f"{listed(who)} broke {_counted(len(names))}{' that the others keep' if kept == len(names) else keep}"


def broken_by(design: str, found: Iterable[_ByDesign]) -> list[str]:
    """The names of the promises that a design broke, in display order; `found` has what `by_design` says."""
    names = {each.promise.name for of in found for each in of.get(design, ()) if each.outcome == BROKEN}
    return [promise.name for promise in PROMISES if promise.name in names]


def _none_broken(found: Iterable[_ByDesign]) -> str:
    all_outcomes = [each.outcome for of in found for outcomes in of.values() for each in outcomes]
    if UNKNOWN in all_outcomes:
        return "no promise was seen to break, but some are unknown"
    return "every promise kept" if KEPT in all_outcomes else ""


def _others_keep(design: str, name: str, found: Iterable[_ByDesign]) -> bool:
    """Whether other designs kept a promise wherever this one broke it; it is known that nobody else broke it."""
    others = {
        outcome
        for of in found
        if any(own.outcome == BROKEN and own.promise.name == name for own in of.get(design, ()))
        for other, outcomes in of.items()
        if other != design
        for promise, outcome, _ in outcomes
        if promise.name == name
    }
    return KEPT in others and UNKNOWN not in others


def _counted(count: int) -> str:
    return f"{count} promise{'' if count == 1 else 's'}"
