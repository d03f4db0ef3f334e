"""What each change of a run cost, from the measured values; plain Python, no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.pipeline.figures import model, shares
from comparison.pipeline.figures.additions import added_by
from comparison.pipeline.figures.predictions import ObservedChange, compare_counts
from comparison.pipeline.figures.waits import deciders
from comparison.pipeline.measured import ChangeStarted, FaultStarted, GroupChanged, ProcessEnded, StageEntered, Turnover
from comparison.pipeline.silver.deliveries import BIN_NS, BINNED_NS_MAX
from comparison.pipeline.silver.rounds import COMPLETING, PREPARING
from comparison.results.counts import SYNC
from comparison.results.keys import BELIEVED, CONFLICT, DELIVERING
from comparison.results.run import Change, Delivery, FirstAttempt
from kernel.clock import NS_PER_MS, NS_PER_S, in_ms, in_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.figures.window_counts import WindowCounts
    from comparison.pipeline.measured import AttemptEnded, ChangeWindow, Coverage, Measured, PartitionOwners, RunSpan

#: A shorter round, or one in which a partition gets fewer records, does not show whether kept partitions deliver.
ROUND_NS_MIN = 500_000_000
RECORDS_A_ROUND_MIN = 4


#: The type of a group in a state that no other type has.
_TYPES = dict.fromkeys((PREPARING, COMPLETING), "classic") | dict.fromkeys(("Assigning", "Reconciling"), "consumer")

#: What the detail of a fault calls the time that it is to last.
_LENGTHS = ("for_ms", "processing_ms")
_NONE_TURNED_OVER = Turnover(moved=0, stopped=0, stopped_kept=0)


class RunKind(NamedTuple):
    """The kind of a run: its design and parameters."""

    design: str
    parameters: Mapping[str, Any]


def change_of(run: RunKind, measured: Measured, window: ChangeWindow, counts: WindowCounts) -> Change:
    """The figures of one change or fault."""
    believed = measured.coverage.get((window.window, BELIEVED))
    delivering = measured.coverage.get((window.window, DELIVERING))
    turnover = measured.turnover.get(window.window, _NONE_TURNED_OVER)
    owners = measured.owners.get(window.window)
    rounds = [number for number, each in enumerate(measured.rounds) if window.from_ns <= each.from_ns < window.until_ns]
    kept, kept_shown, kept_delivered = _kept(measured, rounds, run.parameters)
    is_measured = measured.span is not None and window.from_ns >= measured.span.start_ns
    target, predicted = _target(measured, window), run.parameters.get("counts_predicted", True)
    observed = ObservedChange(
        change=window.change,
        members=window.members,
        rounds=len(rounds),
        stopped=turnover.stopped,
        moved=turnover.moved,
        owners=owners,
        leader_went=_leader_before(measured, window) == target != "",
    )
    return Change(
        change=window.change,
        round=window.round,
        members=window.members,
        from_ms=in_ms(window.from_ns),
        settled_ms=_since(window, window.settled_ns),
        healed_ms=_since(window, window.healed_ns),
        asked_ms=_asked_ms(measured, window),
        converge_ms=_converged_ms(window, believed, measured.span),
        takeover_ms=_since(window, counts.first_ns("authority_named")),
        silent_ms=_silent_ms(measured, window),
        target=target,
        rounds=len(rounds),
        unowned_partition_s=in_s(believed.gap if believed else 0) if is_measured else None,
        unowned_longest_s=in_s((believed.gap_longest or 0) if believed else 0) if is_measured else None,
        two_delivering_partition_s=in_s(delivering.doubled) if delivering is not None else 0.0,
        moved=turnover.moved if owners else None,
        moved_minimum=_moved_minimum(measured, window, owners),
        balance=shares.balance(measured, window, run.parameters),
        unsubscribed=shares.unsubscribed(measured, window, run.parameters),
        stopped=turnover.stopped,
        stopped_kept=turnover.stopped_kept,
        kept=kept,
        kept_shown=kept_shown,
        kept_delivered=kept_delivered,
        stalled_s=_stalled_s(measured, window),
        standstill_s=_standstill_s(measured, window) if is_measured else None,
        attempts=counts.sum("attempt_ended"),
        attempts_failed=counts.sum("attempt_ended", where=lambda count: count.outcome != "ok"),
        **_tried(measured, window, target),
        syncs=counts.sum("zk_op", where=lambda count: count.name == SYNC),
        notifications=counts.sum("zk_notified"),
        zk_reads=counts.operations(reads=True),
        zk_writes=counts.operations(reads=False, commits=False),
        zk_commits=counts.operations(reads=False, commits=True),
        requests=counts.by("request_answered", lambda count: count.name),
        counted=compare_counts(run.design, observed, counts, run.parameters) if predicted else [],
        added=added_by(measured, window),
        generation=_last_generation(measured, window),
        group_type=_group_type(measured, window),
    )


def _since(window: ChangeWindow, at_ns: int | None) -> float | None:
    return in_ms(at_ns - window.from_ns) if at_ns is not None else None


def _moved_minimum(measured: Measured, window: ChangeWindow, owners: list[PartitionOwners] | None) -> int | None:
    if not owners or len(measured.groups) > 1:
        return None  # of several groups, nobody knows which one was changed
    if window.change in (model.RESTART, model.RETURN):
        return 0  # a member that comes back could keep its partitions
    names = _names(measured, owners)

    def process(owner: str | None) -> str | None:
        return names.get(owner, owner) if owner is not None else None

    pairs = [(process(each.before), process(each.after)) for each in owners]
    return model.moved_minimum(
        pairs, shares.members_in(measured, window) or len({after for _, after in pairs if after})
    )


def _names(measured: Measured, owners: list[PartitionOwners]) -> dict[str, str]:
    """Processes by member id, so that a restarted member counts as the same one; empty where several members share a
    process.
    """
    process_of = {phase.member: phase.process for phase in measured.phases if phase.member}
    for side in ({each.before for each in owners}, {each.after for each in owners}):
        homes = [process_of[owner] for owner in side if owner in process_of]
        if len(set(homes)) < len(homes):
            return {}
    return process_of


def _in_window(measured: Measured, window: ChangeWindow) -> list[GroupChanged]:
    inside = (event for event in measured.group if window.from_ns <= event.t_ns < window.until_ns)
    return [event for event in inside if isinstance(event, GroupChanged)]


def _last_generation(measured: Measured, window: ChangeWindow) -> int | None:
    return next((event.generation for event in reversed(_in_window(measured, window))), None)


def _group_type(measured: Measured, window: ChangeWindow) -> str:
    """By the last state that only one type of group has."""
    return next((kind for e in reversed(_in_window(measured, window)) if (kind := _TYPES.get(e.state))), "")


def _target(measured: Measured, window: ChangeWindow) -> str:
    """The process that was changed: as the runner says, else the first one that ended or had a fault."""
    for event in measured.runner:
        if isinstance(event, ChangeStarted) and event.t_ns == window.from_ns and event.detail:
            target = event.detail.get("target")
            if isinstance(target, str):
                return target
        if isinstance(event, FaultStarted | ProcessEnded) and window.from_ns <= event.t_ns < window.until_ns:
            return event.target
    return ""


def _asked_ms(measured: Measured, window: ChangeWindow) -> float | None:
    """How long the fault was to last, as the runner says."""
    for event in measured.runner:
        if isinstance(event, FaultStarted) and event.t_ns == window.from_ns and event.detail:
            return next((float(event.detail[name]) for name in _LENGTHS if name in event.detail), None)
    return None


def _attempts(measured: Measured, window: ChangeWindow, process: str) -> list[AttemptEnded]:
    """The attempts of a process that ended in the window, in order."""
    inside = (each for each in measured.attempts if window.from_ns <= each.t_ns < window.until_ns)
    return sorted((each for each in inside if each.process == process), key=lambda each: each.t_ns)


def _tried(measured: Measured, window: ChangeWindow, target: str) -> Mapping[str, Any]:
    """The figures of the attempts of the member that a change is about."""
    tried = _attempts(measured, window, target)
    return {
        "target_attempts": len(tried),
        "target_conflicts": sum(each.outcome == CONFLICT for each in tried),
        "target_first": _first_attempt(measured, window, tried),
    }


def _first_attempt(measured: Measured, window: ChangeWindow, tried: Sequence[AttemptEnded]) -> FirstAttempt | None:
    """The first of them, with the phases that it had since the window began."""
    if not tried:
        return None
    first = tried[0]
    lasted = {
        phase.phase: in_ms(phase.until_ns - phase.from_ns)
        for phase in reversed(measured.phases)
        if phase.process == first.process and window.from_ns <= phase.from_ns and phase.until_ns <= first.t_ns
    }
    return FirstAttempt(outcome=first.outcome, detect_ms=lasted.get("detect"), join_ms=lasted.get("join"))


def _silent_ms(measured: Measured, window: ChangeWindow) -> float | None:
    inside = (each.longest_ns for each in measured.silences if window.from_ns <= each.t_ns < window.until_ns)
    return min(map(in_ms, inside), default=None)


def _leader_before(measured: Measured, window: ChangeWindow) -> str:
    """The process that computed the assignment in force before the change."""
    return next((process for ns, process in reversed(deciders(measured.phases)) if ns < window.from_ns), "")


def _kept(
    measured: Measured, rounds: list[int], parameters: Mapping[str, Any]
) -> tuple[int | None, int | None, int | None]:
    """Partitions kept through the change's rounds: in all rounds, in long ones, and delivered during long ones."""
    partitions = int(parameters.get("topics", 1)) * int(parameters.get("partitions", 0))
    rate = float(parameters.get("rate", 0)) or 1.0
    least_ns = max(ROUND_NS_MIN, round(RECORDS_A_ROUND_MIN * partitions / rate * NS_PER_S))
    examined = {number: measured.kept[number] for number in rounds if number in measured.kept}
    if not examined:
        return None, None, None
    lasted = [
        kept
        for number, kept in examined.items()
        if (measured.rounds[number].until_ns or 0) - measured.rounds[number].from_ns >= least_ns
    ]
    return (
        sum(kept.kept for kept in examined.values()),
        sum(kept.kept for kept in lasted),
        sum(kept.delivered for kept in lasted),
    )


def delivery_of(measured: Measured) -> Delivery | None:
    """The group's records in each bin, from the start of the measured span to the end of the load."""
    by_bin = {each.bin: each.records for each in measured.delivered if each.bin is not None}
    if not by_bin or measured.span is None:
        return None
    end = (_drained_ns(measured, measured.span) - measured.span.start_ns) // BIN_NS
    return Delivery(
        from_ms=in_ms(measured.span.start_ns),
        bin_ms=BIN_NS / NS_PER_MS,
        records=[by_bin.get(number, 0) for number in range(min(end, max(by_bin) + 1))],
    )


def _drained_ns(measured: Measured, span: RunSpan) -> int:
    """When the load ended."""
    stages = (event for event in measured.runner if isinstance(event, StageEntered))
    return min((event.t_ns for event in stages if event.stage in ("drain", "final")), default=span.end_ns)


def _standstill_s(measured: Measured, window: ChangeWindow) -> float | None:
    return in_s(measured.standstills.by_window.get(window.window, 0)) if measured.standstills is not None else None


def _stalled_s(measured: Measured, window: ChangeWindow) -> float | None:
    """Seconds in the window without a delivered record, in whole bins, while there was load."""
    if measured.span is None or not measured.delivered:
        return None
    start_ns = measured.span.start_ns
    until_ns = min(
        window.until_ns, _drained_ns(measured, measured.span), measured.span.end_ns, start_ns + BINNED_NS_MAX
    )
    first, end = -(-(window.from_ns - start_ns) // BIN_NS), (until_ns - start_ns) // BIN_NS
    if first < 0 or first >= end:
        return None
    delivered = {each.bin for each in measured.delivered}
    return sum(1 for number in range(first, end) if number not in delivered) * BIN_NS / NS_PER_S


def _converged_ms(window: ChangeWindow, believed: Coverage | None, span: RunSpan | None) -> float | None:
    """Time until every partition had one owner; None if that did not happen within the window, or nothing was owned."""
    if window.from_ns >= window.until_ns:
        return 0.0  # the next change followed immediately, so nothing is measured here
    if believed is None or span is None:
        return None
    if believed.unsettled_until is None:
        return 0.0
    end_ns = min(window.until_ns, span.end_ns)
    return in_ms(believed.unsettled_until - window.from_ns) if believed.unsettled_until < end_ns else None
