"""Assemble one run's figures from the measured values; plain Python, no Spark.

A figure that the trace does not show is None, never 0: `lost` without numbered records, `stale_writes` without a
traced authority.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

from comparison.pipeline.figures.bystanders import bystander_metrics, bystanders_of
from comparison.pipeline.figures.catching_up import scale_out_metrics
from comparison.pipeline.figures.coordinators import terms
from comparison.pipeline.figures.per_change import RunKind, change_of, delivery_of
from comparison.pipeline.figures.refusals import refusals_of
from comparison.pipeline.figures.server_counters import compare_counters
from comparison.pipeline.figures.waits import phase_times, waits_of
from comparison.pipeline.figures.window_counts import WindowCounts, counts_by_window
from comparison.pipeline.measured import CopiesRead, RunEnded, RunStarted, StageEntered
from comparison.results.causes import Cause
from comparison.results.counts import COUNTS
from comparison.results.keys import (
    AUTHORITY,
    BELIEVED,
    COMPLETE,
    DELIVERING,
    FORMING,
    OFFSETS,
    SERIALS,
    WHOLE_RUN,
)
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Copies, Overlap, Run, Skipped, Standstill
from kernel.clock import NS_PER_MS, in_ms, in_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.pipeline import measured_standstills
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.measured import FirstOverlap, Measured
    from comparison.pipeline.measured_offsets import Skip

#: The figures that are what was measured of all commits, by the same names.
_OF_COMMITS = (
    *("moved_back", "moved_back_records", "of_ended_sessions", "old_accepted", "refused", "fenced"),
    *("started_behind", "reset_behind"),
)


def assemble(run: TraceRun, measured: Measured) -> Run:
    """The run's figures; until they are judged, `verdicts` is empty and `verdict` is unknown."""
    by_window = counts_by_window(measured)
    whole = by_window[WHOLE_RUN]
    parameters = _parameters(measured)
    kind = RunKind(run.design, parameters)
    ended = next((event for event in measured.runner if isinstance(event, RunEnded)), None)
    is_complete = ended is not None and ended.outcome == COMPLETE
    changes = [change_of(kind, measured, window, by_window[window.window]) for window in measured.changes]
    if not is_complete:
        changes = _cut_short(changes)
    drained = any(isinstance(event, StageEntered) and event.stage == "final" for event in measured.runner)
    stood = measured.standstills
    metrics = _metrics(measured, whole, [c for c in changes if c.change != FORMING])
    return Run(
        path=run.path,
        run_id=run.run_id,
        repeat=run.repeat,
        scenario=run.scenario,
        design=run.design,
        implementations=sorted(run.implementations),
        groups=measured.groups,
        seed=run.seed,
        outcome=ended.outcome if ended else "",
        error=(ended.error or "") if ended else "",
        drained=drained,
        parameters=parameters,
        duration_s=in_s((measured.span.end_ns - measured.span.start_ns) if measured.span else 0),
        tolerance_ms=run.tolerance_ns / NS_PER_MS,
        events=sum(file.events for file in measured.files),
        quarantined=dict(sum((Counter(file.quarantined) for file in measured.files), Counter())),
        missing_events=sum(file.seq_missing for file in measured.files),
        files=measured.files,
        problems=measured.problems,
        metrics=metrics | _without_an_end(metrics, drained=drained, is_complete=is_complete),
        requests=whole.by("request_answered", lambda count: count.name),
        zk_operations=whole.by(
            "zk_op", lambda count: count.name if count.outcome == "ok" else f"{count.name} ({count.outcome})"
        ),
        phases=phase_times(measured.phases),
        changes=changes,
        waits=waits_of(measured),
        delivery=delivery_of(measured),
        counters=compare_counters(measured.runner, measured.operations),
        bystanders=bystanders_of(measured),
        copies=[msgspec.convert(event.detail, Copies) for event in measured.runner if isinstance(event, CopiesRead)],
        skips=[_skipped(each) for each in measured.skips],
        standstills=[_standstill(each) for each in stood.longest] if stood is not None else [],
        standstill_causes=_by_cause(stood.causes) if stood is not None else {},
        coordinators=terms(measured.takeovers, measured.acting),
        overlaps=[
            _overlap(measured.first_overlaps[view], view)
            for view in (DELIVERING, BELIEVED)
            if view in measured.first_overlaps
        ],
        failures=[f"{failure.process}: {failure.error}" for failure in measured.failures],
        refusals=refusals_of(measured.refusals),
        verdicts=[],
        verdict=VerdictOutcome.UNKNOWN,
    )


def _cut_short(changes: list[Change]) -> list[Change]:
    """A change that was under way when the run ended has not settled: nobody knows what it would have come to."""
    last = max(changes, key=lambda change: change.from_ms, default=None)
    if last is None or last.settled_ms is not None:
        return changes
    cut = msgspec.structs.replace(last, converge_ms=None, moved=None, moved_minimum=None, counted=[])
    return [cut if change is last else change for change in changes]


def _without_an_end(
    metrics: Mapping[str, float | None], *, drained: bool, is_complete: bool
) -> dict[str, float | None]:
    """The figures that are unknown because the run did not go to its end. What was seen by then was seen."""
    unknown: list[str] = []
    if not drained and metrics["lost"]:
        unknown.append("lost")  # it may have been on its way
    if not is_complete and not (metrics["final_behind"] or metrics["final_beyond"]):
        unknown += ["final_read", "final_behind", "final_beyond"]
    return dict.fromkeys(unknown)


def _parameters(measured: Measured) -> dict[str, Any]:
    started = next((event for event in measured.runner if isinstance(event, RunStarted)), None)
    return started.parameters if started else {}


def _metrics(measured: Measured, whole: WindowCounts, changes: list[Change]) -> dict[str, float | None]:
    was_healed = any(change.lasted_ms is not None for change in changes)
    moved = [(change.moved, change.moved_minimum) for change in changes]
    all_known, minimum_known = (bool(moved) and all(pair[place] is not None for pair in moved) for place in (0, 1))
    return {
        "converge_ms": _longest(change.converge_ms for change in changes),
        "converge_healed_ms": _longest(change.converge_healed_ms for change in changes) if was_healed else None,
        "rounds": sum(change.rounds for change in changes) if changes else None,
        "authority_requests": sum(change.authority_requests for change in changes) if changes else None,
        **{name: whole.figure(name) for name in COUNTS},
        **_ownership_metrics(measured),
        "stalled_s": _sum_of_known(change.stalled_s for change in changes),
        "moved": sum(pair[0] or 0 for pair in moved) if all_known else None,
        "moved_minimum": sum(pair[1] or 0 for pair in moved) if minimum_known else None,
        "balance": max((change.balance for change in changes if change.balance is not None), default=None),
        "stopped": sum(change.stopped for change in changes) if changes else None,
        "stopped_kept": sum(change.stopped_kept for change in changes) if changes else None,
        **scale_out_metrics(measured),
        **_delivery_metrics(measured),
        **_commit_metrics(measured, whole),
        **bystander_metrics(measured),
    }


def _longest(times: Iterable[float | None]) -> float | None:
    """None if one of them is not known, or if there is none."""
    known = list(times)
    return None if None in known else max((ms for ms in known if ms is not None), default=None)


def _sum_of_known(values: Iterable[float | None]) -> float | None:
    """The sum; None if no value is known."""
    known = [value for value in values if value is not None]
    return round(sum(known), 3) if known else None


def _ownership_metrics(measured: Measured) -> dict[str, float | None]:
    believed, authority, delivering = (
        measured.coverage.get((WHOLE_RUN, view)) for view in (BELIEVED, AUTHORITY, DELIVERING)
    )
    delivered_at_all = (WHOLE_RUN, OFFSETS) in measured.coverage
    authority_traced = any(count.kind == "authority_named" for count in measured.counts)
    doubled = delivering.doubled if delivering is not None else 0
    doubled_longest = (delivering.doubled_longest or 0) if delivering is not None else 0
    return {
        "unowned_partition_s": in_s(believed.gap) if believed is not None else None,
        "memberless_partition_s": in_s(measured.memberless_ns) if believed is not None else None,
        "unowned_authority_partition_s": in_s(authority.gap) if authority is not None and authority_traced else None,
        "left_unnamed": measured.left_unnamed if authority_traced and measured.changes else None,
        "double_owned_partition_s": in_s(believed.doubled) if believed is not None else None,
        "two_delivering_partition_s": in_s(doubled) if delivered_at_all else None,
        "two_delivering_longest_s": in_s(doubled_longest) if delivered_at_all else None,
    }


def _delivery_metrics(measured: Measured) -> dict[str, float | None]:
    serials, offsets = (measured.coverage.get((WHOLE_RUN, view)) for view in (SERIALS, OFFSETS))
    numbered = serials is not None and serials.held > 0
    stood = measured.standstills
    return {
        "delivered": float(offsets.held + offsets.doubled) if offsets is not None else None,
        "duplicates": offsets.doubled if offsets is not None else None,
        "lost": serials.gap if serials is not None and numbered else None,
        "standstill_s": None
        if stood is None
        else in_s(max((each.until_ns - each.from_ns for each in stood.longest), default=0)),
        "standstill_partition_s": None if stood is None else in_s(sum(stood.causes.values())),
        "skipped": sum(each.records for each in measured.skips) if offsets is not None else None,
        "old_offsets_used": measured.old_offsets_used,
        **{f"pauses_{name}": getattr(measured.pauses, name, None) for name in ("dropped", "moved", "outlasting")},
        "out_of_order": measured.out_of_order if measured.delivered else None,
    }


def _commit_metrics(measured: Measured, whole: WindowCounts) -> dict[str, float | None]:
    commits, final = measured.commits, measured.final_offsets
    authority_traced = whole.first_ns("authority_named") is not None
    written = commits if commits is not None and commits.written + commits.refused > 0 else None
    return {
        "stale_deliveries": commits.stale_delivered if commits is not None and authority_traced else None,
        "commits": written.written if written is not None else None,
        "stale_writes": written.stale_writes if written is not None and authority_traced else None,
        **{name: None if written is None else getattr(written, name) for name in _OF_COMMITS},
        "final_read": final.read if final is not None else None,
        "final_behind": final.behind if final is not None else None,
        "final_beyond": final.beyond if final is not None else None,
    }


def _skipped(skip: Skip) -> Skipped:
    fields = asdict(skip)
    return Skipped(at_ms=in_ms(fields.pop("t_ns")), **fields)


def _standstill(standstill: measured_standstills.Standstill) -> Standstill:
    fields = asdict(standstill)
    from_ms, until_ms = (in_ms(fields.pop(name)) for name in ("from_ns", "until_ns"))
    return Standstill(from_ms=from_ms, until_ms=until_ms, **fields | {"causes": _by_cause(standstill.causes)})


def _by_cause(causes: Mapping[str, int]) -> dict[str, float]:
    return {cause.value: in_s(causes[cause]) for cause in Cause if cause in causes}


def _overlap(first: FirstOverlap, view: str) -> Overlap:
    return Overlap(
        view=view,
        topic=first.topic,
        partition=first.partition,
        from_ms=in_ms(first.low),
        until_ms=in_ms(first.high),
        owners=sorted({first.owner, first.other}),
    )
