"""How long the bystander waited, the slow way."""

from __future__ import annotations

from comparison.pipeline.measured import BystanderLatency
from tests.support.oracle.intervals import Event, of
from tests.support.oracle.runs import changes_of

_WHOLE_RUN = -1


def latencies_of(events: list[Event]) -> list[BystanderLatency]:
    """By change, stage and operation; and together for all changes before which the group was left alone."""
    places = [(_place_of(event, events), event) for event in of(events, "bystander_op")]
    rested = {change.window for change in changes_of(events) if _rest_before(change.window, events) is not None}
    found: dict[tuple[int, str, str], list[Event]] = {}
    for place, event in places:
        if place is not None:
            window, stage = place
            for each in (window, _WHOLE_RUN) if window in rested else (window,):
                found.setdefault((each, stage, event["op"]), []).append(event)
    return [_latency(*key, found[key]) for key in sorted(found)]


def _place_of(event: Event, events: list[Event]) -> tuple[int, str] | None:
    """The change that an operation belongs to, and whether it was before it or during it."""
    begin, end = event["t_ns"] - event["latency_ns"], event["t_ns"]
    changes = changes_of(events)
    begun = [change for change in changes if change.from_ns <= end]
    if begun:
        settled = begun[-1].settled_ns
        if begin < (begun[-1].until_ns if settled is None else settled):
            return begun[-1].window, "during"
    if len(begun) < len(changes):
        rest = _rest_before(len(begun), events)
        if rest is not None and begin >= rest:
            return len(begun), "before"
    return None


def _rest_before(window: int, events: list[Event]) -> int | None:
    changes = changes_of(events)
    begin = changes[window - 1].from_ns if window else None
    stages = [e["t_ns"] for e in of(events, "stage_entered") if e["role"] == "runner" and e["stage"] == "steady"]
    rests = [ns for ns in stages if (begin is None or ns >= begin) and ns < changes[window].from_ns]
    return max(rests, default=None)


def _latency(window: int, stage: str, op: str, events: list[Event]) -> BystanderLatency:
    ordered = sorted(event["latency_ns"] for event in events if event["ok"])

    def not_exceeded_by(percent: int) -> int | None:
        return next((ns for n, ns in enumerate(ordered, start=1) if 100 * n >= percent * len(ordered)), None)

    return BystanderLatency(
        window=window,
        stage=stage,
        op=op,
        answered=len(ordered),
        failed=len(events) - len(ordered),
        p50_ns=not_exceeded_by(50),
        p99_ns=not_exceeded_by(99),
        max_ns=max(ordered, default=None),
    )
