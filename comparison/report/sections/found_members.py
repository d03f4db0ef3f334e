"""What was found of members that were too slow, of offsets that a group lost, and of its coordinators, in sentences."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from comparison.report.sections.words import by_design, counted, metric
from comparison.report.summaries.figures import number
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.results.run import Run, Term

_MAX_POLL, _SERVER_TIMEOUT = "max.poll.interval.ms", "group.server.rebalance.timeout.ms"
_RESET, _RETENTION = "auto.offset.reset", "offsets.retention.minutes"
#: How many takeovers of a run a sentence names.
_TAKEOVERS_MAX = 3


def overdue(runs: Sequence[Run]) -> Iterator[str]:
    """How often members were out of their group because they were slow, and by which setting."""
    polls = [(run.design, _times(times)) for run in runs if (times := metric(run, "poll_overdue"))]
    if polls:
        limited = [run for run in runs if _setting(run, _MAX_POLL)]
        others = [run.design for run in runs if run not in limited]
        free = f"; {listed(others)} {'has' if len(others) == 1 else 'have'} no such limit" if limited and others else ""
        yield (
            f"Members left their group because they had not polled for {_limit(limited, _MAX_POLL)}: "
            f"{by_design(polls)}{free}."
        )
    for setting in (_MAX_POLL, _SERVER_TIMEOUT):
        slow = [run for run in runs if metric(run, "rebalance_overdue") and _waits_for(run) == setting]
        if slow:
            removed = [(run.design, _times(metric(run, "rebalance_overdue"))) for run in slow]
            yield (
                f"Coordinators removed members that were not done in a rebalance within {_limit(slow, setting)}: "
                f"{by_design(removed)}."
            )


def _waits_for(run: Run) -> str:
    """The setting by which the group's coordinator stops waiting for a member in a rebalance."""
    return _MAX_POLL if _setting(run, _MAX_POLL) else _SERVER_TIMEOUT


def _times(times: float | None) -> str:
    return "once" if times == 1 else f"{number(times)} times"


def _limit(runs: Sequence[Run], setting: str) -> str:
    """`max.poll.interval.ms (5 s)`; the runs may differ in it."""
    seconds = sorted({int(value) / 1000 for run in runs if (value := _setting(run, setting))})
    return f"{setting} ({' or '.join(f'{each:g}' for each in seconds)} s)" if seconds else setting


def _setting(run: Run, name: str) -> str:
    """Of members or brokers; '' where neither have it, or the trace does not say."""
    value = next((of[name] for part in ("member", "broker") if name in (of := _settings(run, part))), "")
    return str(value)


def _settings(run: Run, part: str) -> dict[str, str]:
    settings: dict[str, str] = run.parameters.get(f"{part}_settings", {})
    return settings


def reset_behind(runs: Sequence[Run]) -> Iterator[str]:
    """Where a group had committed, but its positions were set to before that."""
    back = [run for run in runs if metric(run, "reset_behind")]
    if back:
        resets = " or ".join(sorted({value for run in back if (value := _setting(run, _RESET))}))
        minutes = " or ".join(sorted({value for run in back if (value := _setting(run, _RETENTION))}))
        kept = f" ({_RETENTION}={minutes})" if minutes else ""
        costs = [
            (
                run.design,
                f"{counted(metric(run, 'reset_behind'), 'time')} "
                f"({counted(metric(run, 'duplicates'), 'record')} delivered again in all)",
            )
            for run in back
        ]
        yield (
            f"The group no longer had a usable offset where it had committed one{kept}, and "
            f"{_RESET}{f'={resets}' if resets else ''} began a partition behind that commit: {by_design(costs)}."
        )


def takeovers(runs: Sequence[Run]) -> Iterator[str]:
    """Which brokers took a group over from which, and when."""
    told = [(run.design, moves) for run in runs if (moves := _moves(run))]
    if told:
        yield f"Another broker took over the group: {by_design(told)}."


def _moves(run: Run) -> str:
    moved = [
        _move(run, before, after)
        for before, after in pairwise(run.coordinators)
        if before.group == after.group and before.broker != after.broker
    ]
    more = len(moved) - _TAKEOVERS_MAX
    named = [*moved[:_TAKEOVERS_MAX], *([f"{number(more)} more"] if more > 0 else [])]
    return listed(named) if named else ""


def _move(run: Run, before: Term, after: Term) -> str:
    """`broker-1 from broker-2 0.4 s after the failover`; with the group's name where there are several."""
    group = f"{after.group}: " if len({term.group for term in run.coordinators}) > 1 else ""
    begun = [change for change in run.changes if change.from_ms <= after.from_ms]
    last = max(begun, key=lambda change: change.from_ms, default=None)
    since = f" {(after.from_ms - last.from_ms) / 1000:.1f} s after the {last.change}" if last else ""
    return f"{group}{after.broker} from {before.broker}{since}"
