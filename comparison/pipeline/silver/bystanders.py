"""How long an uninvolved client of the same ZooKeeper waited: before each change, and during it.

*During* a change is from its begin until the group has settled; an operation counts as during it if any part of it was.
*Before* a change is while the runner left the group alone for it: from the stage `steady` until the change. Operations
of other times belong to neither. A percentile is the smallest latency that so many percent of the answers did not
exceed, so the 99th of fewer than a hundred is the largest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from comparison.pipeline.measured import BystanderLatency
from comparison.pipeline.silver.arrays import codes, integers
from comparison.results.keys import WHOLE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.measured import ChangeWindow
    from comparison.pipeline.silver.context import Context

KIND = "bystander_op"
#: The columns that are needed beside those that are counted by.
NEEDED = ("t_ns", "op", "ok", "latency_ns")
BEFORE, DURING = "before", "during"


@dataclass(frozen=True, slots=True)
class Answers:
    """The latencies of some operations, and how many others failed."""

    ns: NDArray[np.int64]
    failed: int


#: By the number of the change, the stage and the operation.
AnswersBy = dict[tuple[int, str, str], Answers]


def answers_of(tables: Tables, context: Context) -> AnswersBy:
    """The operations of a part of a run."""
    if KIND not in tables or not context.changes:
        return {}
    table = tables[KIND]
    ends = integers(table["t_ns"])
    latencies = integers(table["latency_ns"])
    ok = table["ok"].to_numpy(zero_copy_only=False).astype(np.bool_)
    ops, names = codes(table["op"])
    change, is_before = _places(ends - latencies, ends, context)
    found: AnswersBy = {}
    placed = change >= 0
    for place, stage, op in sorted(set(zip(change[placed], is_before[placed], ops[placed], strict=True))):
        mine = (change == place) & (is_before == stage) & (ops == op)
        key = (int(place), BEFORE if stage else DURING, str(names[op]))
        found[key] = Answers(latencies[mine & ok], int((mine & ~ok).sum()))
    return found


def _places(
    begins: NDArray[np.int64], ends: NDArray[np.int64], context: Context
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The change that each operation belongs to, or -1; and whether it was before it."""
    changes = context.changes
    froms = np.array([each.from_ns for each in changes], dtype=np.int64)
    settled = np.array([_end_of(each) for each in changes], dtype=np.int64)
    never = np.iinfo(np.int64).max
    # Behind the last change there is none to be before.
    rests = np.array([*(never if ns is None else ns for ns in context.rests), never], dtype=np.int64)
    begun = np.searchsorted(froms, ends, side="right") - 1
    is_during = (begun >= 0) & (begins < settled[begun])
    is_before = ~is_during & (begins >= rests[begun + 1])
    return np.where(is_during, begun, np.where(is_before, begun + 1, -1)), is_before


def _end_of(change: ChangeWindow) -> int:
    return change.until_ns if change.settled_ns is None else change.settled_ns


def latencies(parts: Sequence[AnswersBy], context: Context) -> list[BystanderLatency]:
    """Percentiles by change, stage and operation; and over all changes before which the group was left alone."""
    rested = {change.window for change, ns in zip(context.changes, context.rests, strict=True) if ns is not None}
    together: defaultdict[tuple[int, str, str], list[Answers]] = defaultdict(list)
    for part in parts:
        for (window, stage, op), answers in part.items():
            together[window, stage, op].append(answers)
            if window in rested:
                together[WHOLE_RUN, stage, op].append(answers)
    return [_latency(key, answers) for key, answers in sorted(together.items())]


def _latency(key: tuple[int, str, str], answers: Iterable[Answers]) -> BystanderLatency:
    window, stage, op = key
    pieces = list(answers)
    ns = np.sort(np.concatenate([each.ns for each in pieces]))
    return BystanderLatency(
        window=window,
        stage=stage,
        op=op,
        answered=len(ns),
        failed=sum(each.failed for each in pieces),
        **_percentiles(ns),
    )


def _percentiles(ordered: NDArray[np.int64]) -> Mapping[str, int | None]:
    ranks = {"p50_ns": 50, "p99_ns": 99, "max_ns": 100}
    if not len(ordered):
        return dict.fromkeys(ranks)
    return {name: int(ordered[-(-len(ordered) * rank // 100) - 1]) for name, rank in ranks.items()}
