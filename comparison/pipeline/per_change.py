"""What each change of a run cost, put together from what was measured; plain Python, no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.pipeline import model
from comparison.pipeline.delivery import BIN_NS, BINNED_NS_MAX
from comparison.pipeline.foretold import Seen, counted
from comparison.pipeline.ownership import BELIEVED, DELIVERING
from comparison.pipeline.result import Change, Delivery
from comparison.pipeline.rounds import deciders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Row

    from comparison.pipeline.collect import Measured
    from comparison.pipeline.tallies import Tallies

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
#: A round shorter than this, and the time in which each partition gets some records, shows nothing of what was kept.
ROUND_NS_MIN = 500_000_000
RECORDS_A_ROUND_MIN = 4


#: Where something else goes on than the change alone: nothing is foretold.
NOT_FORETOLD = ("slow-member", "protocol-migration", "subscription-change")


class RunKind(NamedTuple):
    """What a run is one of."""

    scenario: str
    design: str
    parameters: Mapping[str, Any]


def change_of(run: RunKind, measured: Measured, row: Row, tally: Tallies) -> Change:
    """The figures of the change, or fault, that window `row` is about."""
    believed = measured.stretches.get((row.window, BELIEVED))
    delivering = measured.stretches.get((row.window, DELIVERING))
    turnover = measured.turnover.get(row.window)
    owners = measured.owners.get(row.window)
    named_ns = tally.first_ns("authority_named")
    rounds = [number for number, each in enumerate(measured.rounds) if row.from_ns <= each.from_ns < row.until_ns]
    moved, stopped = (turnover.moved, turnover.stopped) if turnover is not None else (0, 0)
    kept, kept_shown, kept_delivered = _kept(measured, rounds, run.parameters)
    target = _target(measured, row)
    seen = Seen(
        change=row.change,
        members=row.members,
        rounds=len(rounds),
        stopped=stopped,
        moved=moved,
        owners=owners,
        leader_went=_leader_before(measured, row) == target != "",
    )
    return Change(
        change=row.change,
        round=row.round,
        members=row.members,
        from_ms=_ms(row.from_ns),
        settled_ms=_ms(row.settled_ns - row.from_ns) if row.settled_ns is not None else None,
        healed_ms=_ms(row.healed_ns - row.from_ns) if row.healed_ns is not None else None,
        converge_ms=_converged_ms(row, believed, measured.span),
        takeover_ms=_ms(named_ns - row.from_ns) if named_ns is not None else None,
        target=target,
        rounds=len(rounds),
        unowned_partition_s=_s(believed.gap) if believed is not None else 0.0,
        unowned_longest_s=_s(believed.gap_longest or 0) if believed is not None else 0.0,
        two_delivering_partition_s=_s(delivering.doubled) if delivering is not None else 0.0,
        moved=moved if owners else None,
        moved_minimum=_moved_minimum(measured, row, owners),
        stopped=stopped,
        stopped_kept=turnover.stopped_kept if turnover is not None else 0,
        kept=kept,
        kept_shown=kept_shown,
        kept_delivered=kept_delivered,
        stalled_s=_stalled_s(measured, row),
        attempts=tally.sum("attempt_ended"),
        attempts_failed=tally.sum("attempt_ended", where=lambda count: count.outcome != "ok"),
        notifications=tally.sum("zk_notified"),
        zk_reads=tally.operations(reads=True),
        zk_writes=tally.operations(reads=False, commits=False),
        zk_commits=tally.operations(reads=False, commits=True),
        requests=tally.by("request_answered", lambda count: str(count.name)),
        counted=counted(run.design, seen, tally, run.parameters) if run.scenario not in NOT_FORETOLD else [],
    )


def _moved_minimum(measured: Measured, row: Row, owners: list[Row] | None) -> int | None:
    if not owners:
        return None
    if row.change == model.RESTART:
        return 0  # who comes back could have what it had
    names = _names(measured, owners)
    pairs = [(names.get(each.before, each.before), names.get(each.after, each.after)) for each in owners]
    return model.moved_minimum(pairs, row.members or len({after for _, after in pairs if after}))


def _names(measured: Measured, owners: list[Row]) -> dict[str, str]:
    """Processes by member id, so that one that lives again under another id is the same; where several members share
    a process, nobody is named.
    """
    process_of = {phase.member: phase.process for phase in measured.phases if phase.member}
    for side in ({each.before for each in owners}, {each.after for each in owners}):
        homes = [process_of[owner] for owner in side if owner in process_of]
        if len(set(homes)) < len(homes):
            return {}
    return process_of


def _target(measured: Measured, row: Row) -> str:
    """Whom the change was made to: as the runner says, else the first process to which something happened."""
    for told in measured.told:
        if told.kind == "change_started" and told.t_ns == row.from_ns and told.detail:
            target = json.loads(told.detail).get("target")
            if isinstance(target, str):
                return target
        if told.kind in ("fault_started", "process_ended") and row.from_ns <= told.t_ns < row.until_ns:
            return str(told.target)
    return ""


def _leader_before(measured: Measured, row: Row) -> str:
    """The process that had made the assignment which was in force then."""
    return next((process for ns, process in reversed(deciders(measured.phases)) if ns < row.from_ns), "")


def _kept(
    measured: Measured, rounds: list[int], parameters: Mapping[str, Any]
) -> tuple[int | None, int | None, int | None]:
    """Partitions kept through the change's rounds; those of them in rounds that were long enough to show it, and
    those of these that were delivered meanwhile.
    """
    partitions = int(parameters.get("topics", 1)) * int(parameters.get("partitions", 0))
    rate = float(parameters.get("rate", 0)) or 1.0
    least_ns = max(ROUND_NS_MIN, round(RECORDS_A_ROUND_MIN * partitions / rate * _NS_PER_S))
    looked_at = {number: measured.kept[number] for number in rounds if number in measured.kept}
    if not looked_at:
        return None, None, None
    lasted = [
        row
        for number, row in looked_at.items()
        if (measured.rounds[number].until_ns or 0) - measured.rounds[number].from_ns >= least_ns
    ]
    return (
        sum(row.kept for row in looked_at.values()),
        sum(row.kept for row in lasted),
        sum(row.delivered for row in lasted),
    )


def delivery_of(measured: Measured) -> Delivery | None:
    """The group's records, bin by bin, from the beginning of what is measured until there was no more load."""
    by_bin = {row.bin: int(row.records) for row in measured.polls if row.bin is not None}
    if not by_bin or measured.span is None:
        return None
    end = (_drained_ns(measured, measured.span) - measured.span.start_ns) // BIN_NS
    return Delivery(
        from_ms=_ms(measured.span.start_ns),
        bin_ms=BIN_NS / _NS_PER_MS,
        records=[by_bin.get(number, 0) for number in range(min(end, max(by_bin) + 1))],
    )


def _drained_ns(measured: Measured, span: Row) -> int:
    """When the load had ended."""
    stages = (told for told in measured.told if told.kind == "stage_entered" and told.stage in ("drain", "final"))
    return min((int(told.t_ns) for told in stages), default=int(span.end_ns))


def _stalled_s(measured: Measured, row: Row) -> float | None:
    """Whole bins of the window without a record, while there was load."""
    if measured.span is None or not measured.polls:
        return None
    start_ns = measured.span.start_ns
    until_ns = min(row.until_ns, _drained_ns(measured, measured.span), measured.span.end_ns, start_ns + BINNED_NS_MAX)
    first, end = -(-(row.from_ns - start_ns) // BIN_NS), (until_ns - start_ns) // BIN_NS
    if first < 0 or first >= end:
        return None
    delivered = {each.bin for each in measured.polls}
    return sum(1 for number in range(first, end) if number not in delivered) * BIN_NS / _NS_PER_S


def _converged_ms(row: Row, believed: Row | None, span: Row | None) -> float | None:
    """None when it never converged within the window, or nothing was owned at all."""
    if row.from_ns >= row.until_ns:
        return 0.0  # the next change came at once: nothing is measured here
    if believed is None or span is None:
        return None
    if believed.unsettled_until is None:
        return 0.0
    end_ns = min(row.until_ns, span.end_ns)
    return _ms(believed.unsettled_until - row.from_ns) if believed.unsettled_until < end_ns else None


def _ms(ns: int) -> float:
    return round(ns / _NS_PER_MS, 3)


def _s(ns: int) -> float:
    return round(ns / _NS_PER_S, 3)
