"""The windows of time that are measured: the whole run, and each change in it.

A *window* is a stretch of one run in which things are counted. Every run has the window WHOLE_RUN; every
`change_started`, and every fault that changes no membership by itself (a freeze, a cut), opens another, which
lasts until the next one, or until the members are stopped. It does not end at `change_settled`: a rebalance's
last reads (the leader finder's) come after the last claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from comparison.ownership.cover import begins, stops
from comparison.pipeline.measured import ChangeWindow, FaultPeriod, RunSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Faults that are already traced as changes of membership.
TRACED_AS_CHANGES = frozenset({"kill", "join", "leave", "unsubscribe", "rolling-restart"})
#: Beyond any clock, and far enough from the end of 64 bits that differences fit.
FOREVER_NS = 1 << 61


#: One row a fault of one target; `healed_ns` is null if it was not healed.
FAULT_SCHEMA = pa.schema(
    [("fault", pa.string()), ("target", pa.string()), ("from_ns", pa.int64()), ("healed_ns", pa.int64())]
)


def span_of(runner: Sequence[Mapping[str, Any]], members_ns: Sequence[int], bounds: tuple[int, int]) -> RunSpan:
    """Where the group is measured as running.

    From the first steady stage, change or fault (or the first member, if the runner traced none) to the final reads or
    the end of the trace. Growth to the first size and the shutdown are not measured. `runner` has the runner's events
    in order, `bounds` the first and the last moment of the trace.
    """
    first_ns, last_ns = bounds
    begun = [row["t_ns"] for row in runner if begins(row)]
    ended = [row["t_ns"] for row in runner if stops(row)]
    return RunSpan(
        start_ns=min(begun or members_ns, default=first_ns),
        end_ns=min(ended, default=last_ns + 1),
    )


def _opens(row: Mapping[str, Any]) -> bool:
    is_fault = row["kind"] == "fault_started" and row["fault"] not in TRACED_AS_CHANGES
    return bool(row["kind"] == "change_started" or is_fault)


def changes_of(runner: Sequence[Mapping[str, Any]]) -> list[ChangeWindow]:
    """Each change and each fault with its window; `runner` has the runner's events in order."""
    found: list[ChangeWindow] = []
    for place, row in enumerate(runner):
        if not _opens(row):
            continue
        later = runner[place + 1 :]
        is_fault = row["kind"] == "fault_started"
        name = row["fault"] if is_fault else row["change"]
        round_ = 1 if is_fault else row["round"]
        settled = next((each for each in later if each["kind"] == "change_settled"), None)
        same = settled is not None and (settled["change"], settled["round"]) == (name, round_)
        target = row["target"] if is_fault else ""
        ended = (each for each in later if each["kind"] == "fault_ended")
        healed = (each["t_ns"] for each in ended if (each["fault"], each["target"]) == (name, target))
        found.append(
            ChangeWindow(
                window=len(found),
                change=name,
                round=round_,
                members=None if is_fault else row["members"],
                from_ns=row["t_ns"],
                settled_ns=settled["t_ns"] if settled is not None and same and not is_fault else None,
                healed_ns=next(healed, None) if is_fault else None,
                until_ns=next((each["t_ns"] for each in later if _opens(each) or stops(each)), FOREVER_NS),
            )
        )
    return found


def rests_of(runner: Sequence[Mapping[str, Any]], changes: Sequence[ChangeWindow]) -> list[int | None]:
    """Since when the group was left alone for each change: since the last stage `steady` after the change before it."""
    steady = [row["t_ns"] for row in runner if row["kind"] == "stage_entered" and row["stage"] == "steady"]
    befores = [-FOREVER_NS, *(change.from_ns for change in changes)]
    return [
        max((ns for ns in steady if before <= ns < change.from_ns), default=None)
        for before, change in zip(befores, changes, strict=False)
    ]


def faults_of(runner: Iterable[Mapping[str, Any]]) -> list[FaultPeriod]:
    """Each fault of each target, in order; `runner` has the runner's events in order."""
    found: list[FaultPeriod] = []
    open_: dict[tuple[str, str], int] = {}
    for row in runner:
        if row["kind"] == "fault_started":
            open_[row["fault"], row["target"]] = len(found)
            found.append(FaultPeriod(fault=row["fault"], target=row["target"], from_ns=row["t_ns"], healed_ns=None))
        elif row["kind"] == "fault_ended":
            place = open_.pop((row["fault"], row["target"]), None)
            if place is not None:
                found[place] = msgspec.structs.replace(found[place], healed_ns=row["t_ns"])
    return found


#: One row a change or fault that is measured as one; `until_ns` is null if nothing ended it.
CHANGE_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("change", pa.string()),
        ("round", pa.int64()),
        ("members", pa.int64()),
        ("from_ns", pa.int64()),
        ("settled_ns", pa.int64()),
        ("healed_ns", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)


def change_table(changes: Iterable[ChangeWindow]) -> pa.Table:
    """CHANGE_SCHEMA."""
    rows = [
        msgspec.structs.asdict(each)
        | {"number": each.window, "until_ns": each.until_ns if each.until_ns < FOREVER_NS else None}
        for each in changes
    ]
    return pa.Table.from_pylist(rows, CHANGE_SCHEMA)


def fault_table(faults: Iterable[FaultPeriod]) -> pa.Table:
    """FAULT_SCHEMA."""
    return pa.Table.from_pylist([msgspec.structs.asdict(each) for each in faults], FAULT_SCHEMA)
