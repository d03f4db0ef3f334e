"""What was found, in sentences that are filled from the figures, each with links to where it is seen.

A sentence says what differs between the designs, and names the design; one about what no design did stands once. No
figure is made here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.sections.evidence import first_moved_back, first_overlap, first_refused, longest_unowned
from comparison.report.sections.found_members import overdue, reset_behind, takeovers
from comparison.report.sections.words import by_design, counted, metric
from comparison.report.summaries import additions, restarts, strategies
from comparison.report.summaries.figures import by_change, ending, number
from comparison.report.summaries.throughput import SLOW, describe_waits
from comparison.results.outcomes import VerdictOutcome
from comparison.results.refusals import refused_in_words
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from comparison.report.sections.evidence import Evidence
    from comparison.report.view.model import RunView

    Views = Mapping[str, RunView]
    from comparison.results.run import Run

_HERD = "herd"
#: A finding about all designs links to so many of them.
LINKS_MAX = 2
#: What settles within this was never without an owner, as far as anybody would notice.
AT_ONCE_MS = 50.0
#: From here on users notice that nothing comes; and the least share of it of which a cause is named.
STANDSTILL_S_MIN, _MAIN_SHARE = 1.0, 0.2
#: How many partitions a sentence names.
_PLACES_MAX = 3


class Finding(NamedTuple):
    """A sentence, and where to look."""

    text: str
    evidence: Sequence[Evidence] = ()


def findings(scenario: str, runs: Sequence[Run], views: Views) -> list[Finding]:
    """What the runs of one scenario show; `views` are those runs by design, where they can be drawn."""
    found = [*_endings(runs), *_verdicts(runs), *_two_delivering(runs, views), *_commits(runs, views)]
    if scenario == _HERD:
        found += _herd(runs)
    if tried := strategies.outcomes(runs):
        # Totals over the strategies, and the time between two of them, say nothing about any.
        return [*found, *(Finding(strategies.sentence(each)) for each in tried), *_records(runs)]
    found += [*_catching_up(runs), *_copies(runs)]
    told = [(run.design, refused_in_words(run.refusals)) for run in runs if run.refusals]
    found += [Finding(f"In {design} members were {refused}.") for design, refused in told]
    found += [Finding(f"In {each.design}, {additions.sentence(each)}") for each in additions.additions(runs)]
    if scenario == SLOW:
        found += [Finding(f"In {run.design}: {describe_waits(run)}.") for run in runs]
    found += [Finding(f"{_capital(remark)}.") for remark in restarts.remarks(restarts.costs(runs))]
    slow = [Finding(text) for of in (takeovers, overdue) for text in of(runs)]
    return [*found, *slow, *_owners(runs, views), *_standstills(runs), *_records(runs)]


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


def _two_delivering(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    several, none = _split(runs, lambda run: metric(run, "two_delivering_longest_s"))
    for run in several:
        view = views.get(run.design)
        longest, total = metric(run, "two_delivering_longest_s"), metric(run, "two_delivering_partition_s")
        yield Finding(
            f"In {run.design} two members delivered the same partition for {number(longest)} s{_of_fault(run)}, "
            f"{number(total)} partition-seconds in all.",
            _links(view, first_overlap),
        )
    if several and none:
        yield Finding(f"In {_names(none)} no partition was delivered by two members at once.")
    elif none and _has_faults(runs):
        yield Finding("No partition was delivered by two members at once, in any design.")


def _has_faults(runs: Sequence[Run]) -> bool:
    return any(change.healed_ms is not None for run in runs for change in run.changes)


def _of_fault(run: Run) -> str:
    """How long the fault lasted, if there was only one: of several it may be any."""
    healed = [change for change in run.changes if change.healed_ms]
    return f" (the {healed[0].change} lasted {healed[0].lasted})" if len(healed) == 1 else ""


def _commits(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    for run in runs:
        view = views.get(run.design)
        stale, back = metric(run, "stale_writes"), metric(run, "moved_back")
        if stale or back:
            parts = [f"accepted {counted(stale, 'commit')} from a member that was not the owner"] if stale else []
            if back:
                offsets = counted(back, "committed offset")
                parts.append(f"{offsets} moved back, by {number(metric(run, 'moved_back_records'))} records in all")
            yield Finding(f"In {run.design}: {'; '.join(parts)}.", _links(view, first_moved_back))
    fenced = [run for run in runs if metric(run, "fenced")]
    if fenced:
        refused = [(run.design, number(metric(run, "fenced"))) for run in fenced]
        links = [each for run in fenced for each in _links(views.get(run.design), first_refused)]
        yield Finding(f"Late commits that were refused: {by_design(refused)}.", links[:LINKS_MAX])
    moved, still = _split(runs, lambda run: metric(run, "moved_back"))
    if moved and still:
        yield Finding(f"In {_names(still)} no committed offset moved back.")


def _herd(runs: Sequence[Run]) -> Iterator[Finding]:
    """What the last and largest join cost."""
    changes = list(by_change(runs))
    if not changes:
        return
    name, rows = changes[-1]
    costs = []
    for design, change in rows:
        requests = sum(change.requests.get(api, 0) for api in ("JoinGroup", "SyncGroup"))
        cost = [counted(change.notifications, "notification"), counted(change.zk_reads, "ZooKeeper read")]
        kept = [each for each, n in zip(cost, (change.notifications, change.zk_reads), strict=True) if n]
        kept += [counted(requests, "JoinGroup or SyncGroup request")] if requests else []
        costs.append(f"{' and '.join(kept) or 'nothing'} in {design}")
    yield Finding(f"One more member ({name}) cost {', '.join(costs)}.")
    waits = [(run.design, waited) for run in runs if (waited := _waited(run))]
    if waits:
        yield Finding(f"A get by an uninvolved client of the same ZooKeeper took {by_design(waits)}.")


def _waited(run: Run) -> str:
    """`0.46 ms before a join and 0.44 ms during it (median; 99th percentile 4.6 and 5.2 ms)`; '' if not timed."""
    p50, p99 = (
        [metric(run, f"bystander_get_{stage}_{share}_ms") for stage in ("before", "during")] for share in ("p50", "p99")
    )
    if None in (*p50, *p99):
        return ""
    tail = " and ".join(map(number, p99))
    return f"{number(p50[0])} ms before a join and {number(p50[1])} ms during it (median; 99th percentile {tail} ms)"


def _catching_up(runs: Sequence[Run]) -> Iterator[Finding]:
    """What adding members to a group that lags cost at first, and when it had paid."""
    for run in runs:
        before, dip = metric(run, "lag_before"), metric(run, "dip_records")
        if not before or dip is None:
            continue
        even_s = metric(run, "break_even_s")
        paid = "and that was not made up for" if even_s is None else f"made up for {number(even_s)} s after"
        cost = f"the rebalance cost up to {counted(dip, 'record')}, {paid}" if dip else "no fewer were delivered then"
        yield Finding(f"In {run.design}, with a lag of {counted(before, 'record')}, members were added: {cost}.")


def _copies(runs: Sequence[Run]) -> Iterator[Finding]:
    """What an application left that was frozen, replaced, and woke up."""
    for copies in (copies for run in runs for copies in run.copies):
        how = "In transactions" if copies.transactions else "Without transactions"
        late = f"refused ({copies.late_write})" if copies.late_write else "stored"
        yield Finding(
            f"{how}, {number(copies.twice)} of {counted(copies.records, 'copied record')} are there twice for a "
            f"read_committed reader: what the application wrote when it woke up was {late}."
        )


def _owners(runs: Sequence[Run], views: Views) -> Iterator[Finding]:
    settled = {run.design: ms for run in runs if (ms := metric(run, "converge_ms")) is not None}
    if any(ms >= AT_ONCE_MS for ms in settled.values()):
        times = [(run.design, _settled(run)) for run in runs if run.design in settled]
        slowest = sorted(settled, key=lambda design: -settled[design])[:LINKS_MAX]
        links = [each for design in slowest for each in _links(views.get(design), longest_unowned)]
        yield Finding(f"Every partition had one owner again {by_design(times)} (the slowest change).", links)
    elif settled:
        where = "" if len(runs) == 1 else ", in any design"
        yield Finding(f"No partition was without its owner for long{where}.")
    stopped = [(run.design, number(metric(run, "stopped"))) for run in runs]
    if any(metric(run, "stopped") for run in runs):
        needed = [(run.design, number(each)) for run in runs if (each := metric(run, "moved_minimum"))]
        amounts = {text for _, text in needed}
        least = by_design(needed) if len(amounts) > 1 or len(needed) < len(runs) else next(iter(amounts))
        enough = f" To balance the group, so many had to move: {least}." if needed else ""
        yield Finding(f"Partitions taken from members that stayed: {by_design(stopped)}.{enough}")
    for name, said in (
        ("rebalances_failed", "Rebalances given up after the last attempt"),
        ("left_unnamed", "Partitions without an owner at the end, by the authority"),
    ):
        if any(metric(run, name) for run in runs):
            counts = [(run.design, number(metric(run, name))) for run in runs if metric(run, name) is not None]
            yield Finding(f"{said}: {by_design(counts)}.")


def _settled(run: Run) -> str:
    """When the slowest change had settled; of a fault that lasted, by its heal."""
    slowest = max(run.changes, key=lambda change: change.converge_ms or 0.0, default=None)
    after_heal_ms = slowest.settled_after_heal_ms if slowest is not None else None
    settled_ms = metric(run, "converge_ms") or 0.0
    if after_heal_ms is None or settled_ms < AT_ONCE_MS:
        return "at once" if settled_ms < AT_ONCE_MS else f"after {settled_ms / 1000:.1f} s"
    return "before the heal" if after_heal_ms < 0 else f"{after_heal_ms / 1000:.1f} s after the heal"


def _standstills(runs: Sequence[Run]) -> Iterator[Finding]:
    """For how long records waited at worst, which can be long although each partition has its owner."""
    known = [(run, stood_s) for run in runs if (stood_s := metric(run, "standstill_s")) is not None]
    if any(stood_s >= STANDSTILL_S_MIN for _, stood_s in known):
        longest = [(run.design, f"{stood_s:.1f} s{_why(run)}" if stood_s else "0") for run, stood_s in known]
        yield Finding(f"Records of a partition waited longest while none was delivered: {by_design(longest)}.")


def _why(run: Run) -> str:
    """The main causes of the longest standstill, in brackets."""
    causes = run.standstills[0].causes if run.standstills else {}
    most_s = sum(causes.values()) * _MAIN_SHARE
    main = [cause for cause, _ in sorted(causes.items(), key=lambda each: -each[1]) if causes[cause] >= most_s]
    return f" ({', '.join(main)})" if main else ""


def _records(runs: Sequence[Run]) -> Iterator[Finding]:
    lost = [run for run in runs if metric(run, "lost")]
    for run in lost:
        yield Finding(f"In {run.design} {counted(metric(run, 'lost'), 'acknowledged record')} never arrived.")
    if not lost and all(metric(run, "lost") == 0 for run in runs):
        where = "" if len(runs) == 1 else ", in any design"
        again = [(run.design, number(metric(run, "duplicates"))) for run in runs if metric(run, "duplicates")]
        repeats = f" Delivered again: {by_design(again)}." if again else ""
        yield Finding(f"No acknowledged record was lost{where}.{repeats}")
    yield from map(Finding, reset_behind(runs))
    for run in runs:
        if run.skips:
            skipped = counted(metric(run, "skipped"), "record")
            yield Finding(f"In {run.design} auto.offset.reset={run.skips[0].reset} skipped {skipped}: {_places(run)}.")
    dropped = [(run.design, number(metric(run, "pauses_dropped"))) for run in runs if metric(run, "pauses_dropped")]
    if dropped:
        yield Finding(f"Pauses of a partition that a rebalance dropped and gave back: {by_design(dropped)}.")


def _places(run: Run) -> str:
    """Where records were skipped, the partitions with the most first."""
    records: Counter[str] = Counter()
    for skip in run.skips:
        records[f"{skip.topic}-{skip.partition}"] += skip.records
    named = [f"{number(count)} of {place}" for place, count in records.most_common(_PLACES_MAX)]
    more = len(records) - len(named)
    return ", ".join(named) + (f", and others of {counted(more, 'more partition')}" if more else "")


# -- words ----------------------------------------------------------------------------------------------------------


def _split(runs: Sequence[Run], of: Callable[[Run], float | None]) -> tuple[list[Run], list[Run]]:
    """The runs with a figure above 0, and those in which it is 0; unknown ones in neither."""
    return [run for run in runs if of(run)], [run for run in runs if of(run) == 0]


def _links(view: RunView | None, of: Callable[[RunView], Evidence | None]) -> list[Evidence]:
    found = of(view) if view is not None else None
    return [found] if found is not None else []


def _names(runs: Iterable[Run]) -> str:
    return listed([run.design for run in runs])
