"""What the first table cannot say, in sentences that are filled from the figures, with links to where it is seen.

What a cell says needs no sentence. Sentences are for what is unknown or not as the model says, for causes, and for what
only some designs did and no figure of the table shows. No figure is made here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.sections.evidence import first_moved_back, stretch
from comparison.report.sections.found_members import overdue, reset_behind, takeovers
from comparison.report.sections.words import by_design, counted, metric
from comparison.report.summaries import additions
from comparison.report.summaries.figures import ending, number
from comparison.report.summaries.repeats import RunOfRepeats
from comparison.report.summaries.throughput import SLOW, describe_waits
from comparison.report.view.model import About, Stretch
from comparison.results.meanings import Glance
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.promises import PromiseOutcome
from comparison.results.refusals import refused_in_words
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from comparison.report.sections.evidence import Evidence
    from comparison.report.view.model import Overlap, RunView
    from comparison.results.promises import Outcome
    from comparison.results.run import Run

    Views = Mapping[str, RunView]
    Promises = Mapping[str, Sequence[Outcome]]

#: From here on users notice that nothing comes; and the least share of it of which a cause is named.
STANDSTILL_S_MIN, _MAIN_SHARE = 1.0, 0.2
#: How many partitions a sentence names.
_PLACES_MAX = 3
#: A reason is that of a stretch if it explains this share of it: analysis and lanes differ by rounding.
_SAME_SHARE = 0.9


class Finding(NamedTuple):
    """A sentence, and where to look."""

    text: str
    evidence: Sequence[Evidence] = ()


def findings(scenario: str, runs: Sequence[Run], views: Views, promises: Promises) -> list[Finding]:
    """What the runs of one scenario show; `views` are those runs by design, where they can be drawn."""
    found = [*_endings(runs), *_verdicts(runs), *_two_delivering(runs, views), *_moved_back(runs, views)]
    found += _broken(runs, promises)
    found += _copies(runs)
    told = [(run.design, refused_in_words(run.refusals)) for run in runs if run.refusals]
    found += [Finding(f"In {design} members were {refused}.") for design, refused in told]
    missed = [each for each in additions.additions(runs) if each.total_ms is None]
    found += [Finding(f"In {each.design}, {additions.sentence(each)}") for each in missed]
    if scenario == SLOW:
        found += [Finding(f"In {run.design}: {describe_waits(run)}.") for run in runs]
    slow = [Finding(text) for of in (takeovers, overdue) for text in of(runs)]
    return [*found, *slow, *_standstills(runs, views), *map(Finding, reset_behind(runs)), *_skips(runs)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _endings(runs: Sequence[Run]) -> Iterator[Finding]:
    """Why there is less to find than was planned."""
    for run in runs:
        if reason := ending(run):
            yield Finding(f"In {run.design} {reason}.")


def _verdicts(runs: Sequence[Run]) -> Iterator[Finding]:
    for outcome in (VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN):
        for run in runs:
            checks = [each for each in run.verdicts if each.outcome == outcome]
            for each in checks[:3]:
                yield Finding(f"{_capital(outcome)} in {run.design}: {each.check}: {each.reason}.")


def _broken(runs: Sequence[Run], promises: Promises) -> Iterator[Finding]:
    """Which promises were broken, those of the same designs together."""
    together: dict[tuple[str, ...], list[str]] = {}
    for place in range(max(map(len, promises.values()), default=0)):
        of = {design: outcomes[place] for design, outcomes in promises.items()}
        if broken := {design: each for design, each in of.items() if each.outcome is PromiseOutcome.BROKEN}:
            (name,) = {each.promise.name for each in broken.values()}
            seen = [(run.design, broken[run.design].shown) for run in runs if _is_untold(run, broken)]
            why = by_design(seen) if len(broken) > 1 else "".join(text for _, text in seen)
            together.setdefault(tuple(broken), []).append(f"{name} ({why})" if why else name)
    for designs, names in together.items():
        is_all = len(designs) == len(promises) > 1
        yield Finding(f"Broken in {'every design' if is_all else listed(designs)}: {'; '.join(names)}.")


def _is_untold(run: Run, broken: Mapping[str, Outcome]) -> bool:
    """Whether this run broke a promise, and the table has no figure that shows how; of repeats it has medians."""
    if run.design not in broken:
        return False
    if isinstance(run, RunOfRepeats):
        return True
    promise = broken[run.design].promise
    seen = [name for name in (*promise.figures, *promise.if_known) if metric(run, name)]
    return not seen or any(METRICS[name].glance is not Glance.HARM for name in seen)


def _two_delivering(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    longest = [(run, longest_s) for run in runs if (longest_s := metric(run, "two_delivering_longest_s"))]
    if longest:
        faults = [_of_fault(run) for run, _ in longest]
        alike = len(set(faults)) == 1
        texts = [
            (run.design, f"{number(longest_s)} s{'' if alike else fault}")
            for (run, longest_s), fault in zip(longest, faults, strict=True)
        ]
        seen = {run.design: each for run, _ in longest if (each := _longest_overlap(views.get(run.design)))}
        links = [stretch(views[design], lane, each.from_ms, each.until_ms) for design, (lane, each) in seen.items()]
        said = f"Two members delivered the same partition for up to {by_design(texts)}{faults[0] if alike else ''}."
        worst, _ = max(longest, key=lambda each: each[1])
        told = seen.get(worst.design)
        chain = list(_chain(worst, views[worst.design], About.OVERLAP, *told)) if told else []
        yield Finding(" ".join(chain if chain and len(longest) == 1 else [said, *chain]), links)


def _longest_overlap(view: RunView | None) -> tuple[str, Overlap] | None:
    """With its partition; the first one of several."""
    found = [(lane.name, each) for lane in view.partitions for each in lane.overlaps] if view is not None else []
    return max(found, key=lambda each: (each[1].length_ms, -each[1].from_ms), default=None)


def _of_fault(run: Run) -> str:
    """How long the fault lasted, if there was only one: of several it may be any."""
    healed = [change for change in run.changes if change.healed_ms]
    return f" (the {healed[0].change} lasted {healed[0].lasted})" if len(healed) == 1 else ""


def _moved_back(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    moved = [(run.design, counted(records, "record")) for run in runs if (records := metric(run, "moved_back_records"))]
    if moved:
        links = [link for design, _ in moved for link in _links(views.get(design), first_moved_back)]
        yield Finding(f"In all, committed offsets moved back by {by_design(moved)}.", links)


def _copies(runs: Sequence[Run]) -> Iterator[Finding]:
    """What an application left that was frozen, replaced, and woke up."""
    for copies in (copies for run in runs for copies in run.copies):
        how = "In transactions" if copies.transactions else "Without transactions"
        late = f"refused ({copies.late_write})" if copies.late_write else "stored"
        yield Finding(
            f"{how}, {number(copies.twice)} of {counted(copies.records, 'copied record')} are there twice for a "
            f"read_committed reader: what the application wrote when it woke up was {late}."
        )


def _standstills(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    """What records waited for in the longest standstill, which can be long although each partition has its owner."""
    long = [run for run in runs if (metric(run, "standstill_s") or 0) >= STANDSTILL_S_MIN]
    causes = [(run.design, why) for run in long if (why := _why(run))]
    if causes:
        alike = len(causes) == len(runs) > 1 and len({why for _, why in causes}) == 1
        said = f"Behind the longest standstill: {f'{causes[0][1]}, in every design' if alike else by_design(causes)}."
        worst = max((run for run in long if run.standstills), key=lambda run: metric(run, "standstill_s") or 0)
        stood, view = worst.standstills[0], views.get(worst.design)
        place, when = f"{stood.topic}-{stood.partition}", Stretch(stood.from_ms, stood.until_ms)
        yield Finding(
            " ".join([said, *_chain(worst, view, About.PAUSE, place, when)]),
            _links(view, lambda view: stretch(view, place, when.from_ms, when.until_ms)),
        )


def _why(run: Run) -> str:
    """The main causes of the longest standstill."""
    causes = run.standstills[0].causes if run.standstills else {}
    most_s = sum(causes.values()) * _MAIN_SHARE
    return ", ".join(cause for cause, _ in sorted(causes.items(), key=lambda each: -each[1]) if causes[cause] >= most_s)


def _skips(runs: Sequence[Run]) -> Iterator[Finding]:
    """How records were skipped; where, if only one design did."""
    skipping = [run for run in runs if run.skips]
    if len(skipping) > 1:
        resets = [(run.design, f"{run.skips[0].reset} of {_partitions(run)}") for run in skipping]
        yield Finding(f"auto.offset.reset skipped to the {by_design(resets)}.")
        return
    for run in skipping:
        skipped = counted(metric(run, "skipped"), "record")
        yield Finding(f"In {run.design} auto.offset.reset={run.skips[0].reset} skipped {skipped}: {_places(run)}.")


def _partitions(run: Run) -> str:
    return counted(len({(each.topic, each.partition) for each in run.skips}), "partition")


def _places(run: Run) -> str:
    """Where records were skipped, the partitions with the most first."""
    records: Counter[str] = Counter()
    for skip in run.skips:
        records[f"{skip.topic}-{skip.partition}"] += skip.records
    named = [f"{number(count)} of {place}" for place, count in records.most_common(_PLACES_MAX)]
    more = len(records) - len(named)
    return ", ".join(named) + (f", and others of {counted(more, 'more partition')}" if more else "")


def _chain(run: Run, view: RunView | None, about: About, partition: str, seen: Stretch) -> Iterator[str]:
    """When and why a stretch of a partition's lane came about; nothing of repeats, whose figures are medians."""
    if view is None or isinstance(run, RunOfRepeats):
        return
    alike = [each for each in view.reasons if each.about is about and partition in each.partitions]
    # Of several partitions, a reason lasts from the first one's beginning to the last one's end.
    if told := [each for each in alike if _shared_ms(each, seen) >= _SAME_SHARE * seen.length_ms]:
        text = min(told, key=lambda each: each.length_ms).text
        yield f"In {run.design}, {text[:1].lower() + text[1:] if about is About.PAUSE else text}"


def _shared_ms(one: Stretch, other: Stretch) -> float:
    return min(one.until_ms, other.until_ms) - max(one.from_ms, other.from_ms)


# -- words ----------------------------------------------------------------------------------------------------------


def _links(view: RunView | None, of: Callable[[RunView], Evidence | None]) -> list[Evidence]:
    found = of(view) if view is not None else None
    return [found] if found is not None else []
